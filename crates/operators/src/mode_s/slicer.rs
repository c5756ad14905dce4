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

use super::preambles::{PREAMBLE, pulses};
use bytemuck::Pod;
use pulp::Simd;

/// Positions tried from one sample to the next: a pulse begins `n / PHASES` of a sample late.
pub(super) const PHASES: usize = 4;

/// Most bytes of a frame.
pub(super) const BYTES: usize = 14;

/// Samples of a frame: the preamble, and two samples per bit.
pub(super) const FRAME: usize = PREAMBLE + 16 * BYTES;

/// Most frames sliced at once, with the widest vectors.
pub(super) const MOST: usize = 4;

/// One number per frame and position.
pub(super) type Lanes<T> = [T; MOST * PHASES];

/// The lanes of a vector, then zeros.
#[inline(always)]
pub(super) fn lanes<S: Simd, T: Pod, V: Pod>(vector: V) -> Lanes<T> {
    let mut lanes = [T::zeroed(); MOST * PHASES];
    lanes[..S::F32_LANES].copy_from_slice(bytemuck::cast_slice(&[vector]));
    lanes
}

/// Slices frames byte by byte, with a lane for each frame and position.
pub(super) struct Slicer<'s, S: Simd> {
    lanes: FrameLanes<S>,
    /// Samples of the frame in each group of lanes. With few frames, groups repeat the first.
    frames: [&'s [f32; FRAME]; MOST],
    /// Samples of the first byte.
    first: [S::f32s; 16],
    /// Magnitude of a whole pulse, and of its parts in the second and in the first sample.
    pulse: S::f32s,
    late: S::f32s,
    early: S::f32s,
    /// Distance of the best sequence that ends in a 0, and of that in a 1: the sum of squared differences,
    /// less the squares of the samples.
    distances: [S::f32s; 2],
}

/// The two sequences of bits that end in a byte's last bit, 0 or 1: the eight bits, and above them the bit
/// before.
type Paths<S> = [<S as Simd>::u32s; 2];

/// Numbers of the lanes of the widest vectors.
const NUMBERS: Lanes<f32> = [0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15.];

/// Share of a pulse in its second sample.
const SHARES: Lanes<f32> = {
    let mut shares = [0.0; MOST * PHASES];
    let mut lane = 0;
    while lane < shares.len() {
        shares[lane] = (lane % PHASES) as f32 / PHASES as f32;
        lane += 1;
    }
    shares
};

/// Which lanes belong to which frame.
#[derive(Clone, Copy)]
struct FrameLanes<S: Simd> {
    simd: S,
    /// Lanes of the second frame and those after it, of the third, and of the fourth.
    behind: [S::m32s; MOST - 1],
}

impl<S: Simd> FrameLanes<S> {
    /// One number of each frame, in all its lanes.
    #[inline(always)]
    fn spread(&self, of: [f32; MOST]) -> S::f32s {
        let mut lanes = self.simd.splat_f32s(of[0]);
        for (of, behind) in of[1..S::F32_LANES / PHASES].iter().zip(self.behind) {
            lanes = self.simd.select_f32s(behind, self.simd.splat_f32s(*of), lanes);
        }
        lanes
    }

    #[inline(always)]
    fn samples(&self, frames: &[&[f32; FRAME]; MOST], at: usize) -> S::f32s {
        self.spread(frames.map(|frame| frame[at]))
    }
}

impl<'s, S: Simd> Slicer<'s, S> {
    /// Number of frames that the vectors have lanes for.
    pub const FRAMES: usize = S::F32_LANES / PHASES;

    /// Begins as many frames as there are lanes for. Returns their power in the first byte, too.
    #[inline(always)]
    pub fn new(simd: S, frames: [&'s [f32; FRAME]; MOST]) -> (Self, S::f32s) {
        let numbers = simd.partial_load_f32s(&NUMBERS[..S::F32_LANES]);
        let zero = simd.splat_f32s(0.0);
        // Loops, because not every closure that returns vectors is inlined.
        let mut behind = [simd.less_than_f32s(zero, zero); MOST - 1];
        for (n, behind) in behind.iter_mut().enumerate() {
            let first = simd.splat_f32s(((n + 1) * PHASES) as f32);
            *behind = simd.greater_than_or_equal_f32s(numbers, first);
        }
        let lanes = FrameLanes { simd, behind };
        let (mut first, mut sum, mut power) = ([zero; 16], zero, zero);
        for (at, first) in first.iter_mut().enumerate() {
            let x = lanes.samples(&frames, PREAMBLE + at);
            sum = simd.add_f32s(sum, x);
            power = simd.add_f32s(power, simd.mul_f32s(x, x));
            *first = x;
        }
        // The preamble has four pulses, eight bits have eight.
        let preambles = lanes.spread(frames.map(|frame| frame.first_chunk().map_or(0.0, pulses)));
        let pulse = simd.div_f32s(simd.add_f32s(preambles, sum), simd.splat_f32s(12.0));
        let share = simd.partial_load_f32s(&SHARES[..S::F32_LANES]);
        let late = simd.mul_f32s(share, pulse);
        let early = simd.mul_f32s(simd.sub_f32s(simd.splat_f32s(1.0), share), pulse);
        let distances = [simd.splat_f32s(f32::MAX), zero];
        (Slicer { lanes, frames, first, pulse, late, early, distances }, power)
    }

    /// Contribution of a sample to the squared distance, less its own square.
    #[inline(always)]
    fn distance(&self, size: S::f32s, twice: S::f32s) -> S::f32s {
        self.lanes.simd.mul_f32s(size, self.lanes.simd.sub_f32s(size, twice))
    }

    /// Slices byte number `byte`.
    #[inline(always)]
    pub fn slice(&mut self, byte: usize) -> Paths<S> {
        let Slicer { lanes, pulse, late, early, .. } = *self;
        let simd = lanes.simd;
        let [mut d0, mut d1] = self.distances;
        let one = simd.splat_u32s(1);
        let [mut bits0, mut bits1] = [simd.splat_u32s(0), one];
        for bit in 0..8 {
            let at = PREAMBLE + 16 * byte + 2 * bit;
            let [x0, x1] = match byte {
                0 => [self.first[2 * bit], self.first[2 * bit + 1]],
                _ => [lanes.samples(&self.frames, at), lanes.samples(&self.frames, at + 1)],
            };
            let [x0, x1] = [simd.add_f32s(x0, x0), simd.add_f32s(x1, x1)];
            let (from00, from10) = (simd.add_f32s(d0, self.distance(late, x0)), d1);
            let from01 = simd.add_f32s(d0, self.distance(pulse, x0));
            let from11 = simd.add_f32s(d1, self.distance(early, x0));
            let is0 = simd.less_than_f32s(from00, from10);
            let was0 = simd.less_than_f32s(from01, from11);
            d0 = simd.add_f32s(simd.min_f32s(from00, from10), self.distance(early, x1));
            d1 = simd.add_f32s(simd.min_f32s(from01, from11), self.distance(late, x1));
            let to0 = simd.select_u32s(is0, bits0, bits1);
            let to1 = simd.select_u32s(was0, bits0, bits1);
            bits0 = simd.add_u32s(to0, to0);
            bits1 = simd.or_u32s(simd.add_u32s(to1, to1), one);
        }
        self.distances = [d0, d1];
        [bits0, bits1]
    }

    /// Number of the better of the two sequences, and its distance.
    #[inline(always)]
    pub fn better(&self) -> (S::m32s, S::f32s) {
        let [d0, d1] = self.distances;
        (self.lanes.simd.less_than_f32s(d1, d0), self.lanes.simd.min_f32s(d1, d0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode_s::starts::{FrameCandidate, StartLoop};
    use crate::vectors::Vectors;

    /// Bits of a frame of format 17. The others are up to `bit`, by number.
    fn bits(bit: impl Fn(u32) -> bool) -> Vec<bool> {
        (0..112).map(|n| if n < 5 { 17 >> (4 - n) & 1 == 1 } else { bit(n) }).collect()
    }

    /// Samples of a preamble and these bits by the formula above.
    fn samples(bits: &[bool], f: f32, pulse: f32) -> Vec<f32> {
        let mut samples = vec![0.0; PREAMBLE];
        for at in [0, 2, 7, 9] {
            (samples[at], samples[at + 1]) = (pulse * (1.0 - f), samples[at + 1] + pulse * f);
        }
        let mut before = 1.0;
        for bit in bits.iter().map(|bit| f32::from(u8::from(*bit))) {
            samples.push(pulse * ((1.0 - f) * bit + f * (1.0 - before)));
            samples.push(pulse * ((1.0 - f) * (1.0 - bit) + f * bit));
            before = bit;
        }
        samples
    }

    /// The candidate at one position of a frame. All vectors give the same.
    fn sliced(samples: &[f32], phase: usize) -> FrameCandidate {
        let mut found: Vec<FrameCandidate> = Vec::new();
        Vectors::each(|_| {
            let mut starts = Vec::new();
            Vectors::new().run(StartLoop { samples, places: &[0], starts: &mut starts });
            found.push(starts[0].candidates[phase]);
        });
        assert!(
            found.iter().all(|other| (other.bytes, other.distance) == (found[0].bytes, found[0].distance))
        );
        found[0]
    }

    fn number(candidate: &FrameCandidate) -> u128 {
        candidate.bytes[..candidate.len].iter().fold(0, |all, byte| all << 8 | u128::from(*byte))
    }

    #[test]
    fn every_position_gives_the_bits_back() {
        for seed in 1..50u32 {
            let bits = bits(|n| seed.wrapping_mul(2_654_435_761 + n * n) >> 13 & 1 == 1);
            let expected = bits.iter().fold(0, |all, bit| all << 1 | u128::from(*bit));
            for phase in 0..PHASES {
                let x = samples(&bits, phase as f32 / PHASES as f32, 0.7);
                let power: f32 = x[PREAMBLE..].iter().map(|x| x * x).sum();
                let found = sliced(&x, phase);
                assert_eq!(number(&found), expected);
                // The magnitude of a pulse is estimated: it may be a twelfth too low.
                assert!((power + found.distance).abs() < power / 100.0, "{power} {}", found.distance);
            }
        }
    }

    #[test]
    fn noise_is_no_reason_to_give_up() {
        // Half way between two samples, where runs of equal bits have no distinct pulses.
        let bits = bits(|n| n / 5 % 2 == 1);
        let expected = bits.iter().fold(0, |all, bit| all << 1 | u128::from(*bit));
        let mut x = samples(&bits, 0.5, 1.0);
        for (n, x) in x[PREAMBLE..].iter_mut().enumerate() {
            *x += 0.2 * ((n * n) as f32).sin();
        }
        assert_eq!(number(&sliced(&x, PHASES / 2)), expected);
    }
}
