//! Slices samples to bits.
//!
//! If a pulse begins the part `f` of a sample late, `1 - f` of it is in one sample and `f` in the next. The
//! first of a bit's two samples therefore also contains the end of the bit before. With pulses of magnitude 1
//! the samples are
//!
//! ```text
//! x[0] = (1 - f) bit + f (1 - bit before)        x[1] = (1 - f) (1 - bit) + f bit
//! ```
//!
//! At `f = 1/2` all samples of a run of equal bits are the same, and only the start of the run tells which
//! bits they are, so a single bit is not enough. We therefore search for the sequence with the least sum of
//! squared differences, by Viterbi's algorithm (IEEE Transactions on Information Theory 13, 1967) with two
//! states, the values of the last bit. Before the first bit there is a gap, as after a 1.

/// Contribution of a sample to the squared distance, less its own square.
#[inline(always)]
fn distance(size: f32, x: f32) -> f32 {
    size * (size - 2.0 * x)
}

/// Slices two samples per bit, at most 128 bits, with pulses of magnitude `pulse` that begin the part `f` of
/// a sample late. Returns the bits, the last one lowest, and their distance from the samples: the sum of
/// squared differences, less the squares of the samples.
pub(super) fn slice(samples: &[f32], f: f32, pulse: f32) -> (u128, f32) {
    let (f, g) = (f * pulse, (1.0 - f) * pulse);
    let (mut d0, mut d1) = (f32::MAX, 0.0);
    let (mut bits0, mut bits1) = (0u128, 0u128);
    for x in samples.chunks_exact(2) {
        let (from00, from10) = (d0 + distance(f, x[0]), d1);
        let (from01, from11) = (d0 + distance(pulse, x[0]), d1 + distance(g, x[0]));
        let (is0, was0) = (from00 < from10, from01 < from11);
        d0 = if is0 { from00 } else { from10 } + distance(g, x[1]);
        d1 = if was0 { from01 } else { from11 } + distance(f, x[1]);
        let (to0, to1) = (if is0 { bits0 } else { bits1 }, if was0 { bits0 } else { bits1 });
        (bits0, bits1) = (to0 << 1, to1 << 1 | 1);
    }
    if d1 < d0 { (bits1, d1) } else { (bits0, d0) }
}

/// Positions tried from one sample to the next: `f = n / PHASES`.
pub(super) const PHASES: usize = 4;

/// One number per position, so that the compiler vectorises the loop.
type Phases<T> = [T; PHASES];

/// Slices the first byte like [`slice`], at all positions at once. Returns the bytes and their distances.
pub(super) fn first_bytes(samples: &[f32; 16], pulse: f32) -> (Phases<u32>, Phases<f32>) {
    let f: Phases<f32> = std::array::from_fn(|n| n as f32 / PHASES as f32 * pulse);
    let g: Phases<f32> = f.map(|f| pulse - f);
    let (mut d0, mut d1) = ([f32::MAX; PHASES], [0.0; PHASES]);
    let (mut bits0, mut bits1) = ([0; PHASES], [0; PHASES]);
    for x in samples.chunks_exact(2) {
        let whole = distance(pulse, x[0]);
        for n in 0..PHASES {
            let (from00, from10) = (d0[n] + distance(f[n], x[0]), d1[n]);
            let (from01, from11) = (d0[n] + whole, d1[n] + distance(g[n], x[0]));
            let (is0, was0) = (from00 < from10, from01 < from11);
            d0[n] = if is0 { from00 } else { from10 } + distance(g[n], x[1]);
            d1[n] = if was0 { from01 } else { from11 } + distance(f[n], x[1]);
            let to0: u32 = if is0 { bits0[n] } else { bits1[n] };
            let to1: u32 = if was0 { bits0[n] } else { bits1[n] };
            (bits0[n], bits1[n]) = (to0 << 1, to1 << 1 | 1);
        }
    }
    for n in 0..PHASES {
        if d1[n] < d0[n] {
            (bits0[n], d0[n]) = (bits1[n], d1[n]);
        }
    }
    (bits0, d0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of these bits by the formula above.
    fn samples(bits: &[bool], f: f32, pulse: f32) -> Vec<f32> {
        let mut before = 1.0;
        let mut samples = Vec::new();
        for bit in bits.iter().map(|bit| f32::from(u8::from(*bit))) {
            samples.push(pulse * ((1.0 - f) * bit + f * (1.0 - before)));
            samples.push(pulse * ((1.0 - f) * (1.0 - bit) + f * bit));
            before = bit;
        }
        samples
    }

    #[test]
    fn every_position_gives_the_bits_back() {
        for seed in 1..50u32 {
            let bits: Vec<bool> =
                (0..112).map(|n| seed.wrapping_mul(2_654_435_761 + n * n) >> 13 & 1 == 1).collect();
            let expected = bits.iter().fold(0, |all, bit| all << 1 | u128::from(*bit));
            for phase in 0..PHASES {
                let f = phase as f32 / PHASES as f32;
                let x = samples(&bits, f, 0.7);
                let power: f32 = x.iter().map(|x| x * x).sum();
                let (got, distance) = slice(&x, f, 0.7);
                assert_eq!(got, expected);
                assert!((power + distance).abs() < 1e-4 * power);
                let (bytes, distances) = first_bytes(x.first_chunk().unwrap(), 0.7);
                let (byte, distance) = slice(&x[..16], f, 0.7);
                assert_eq!(u128::from(bytes[phase]), byte);
                assert!((distances[phase] - distance).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn noise_is_no_reason_to_give_up() {
        // Half way between two samples, where runs of equal bits have no distinct pulses.
        let bits: Vec<bool> = (0..112).map(|n| n / 5 % 2 == 1).collect();
        let expected = bits.iter().fold(0, |all, bit| all << 1 | u128::from(*bit));
        let mut x = samples(&bits, 0.5, 1.0);
        for (n, x) in x.iter_mut().enumerate() {
            *x += 0.2 * ((n * n) as f32).sin();
        }
        assert_eq!(slice(&x, 0.5, 1.0).0, expected);
    }
}
