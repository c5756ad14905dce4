//! An oscillator whose phase does not drift.

use super::SignalSample;
use crate::vectors::Vectors;
use num_complex::Complex;
use pulp::{Simd, WithSimd};
use std::f64::consts::TAU;

/// Samples that share one computed angle.
const BLOCK: usize = 64;

/// Part of a turn, in units of 2⁻¹²⁸ turns; whole turns wrap around.
pub(super) type Turns = u128;

/// Converts a part of a turn, from −1/2 to 1/2.
fn turns(part: f64) -> Turns {
    // Bits below 2⁻¹²⁶ are dropped.
    ((part * 2f64.powi(126)) as i128 as u128) << 2
}

/// Converts an angle in degrees. Whole turns are dropped before any rounding.
pub(super) fn degrees(angle: f64) -> Turns {
    let within = angle % 360.0;
    let nearest = within - 360.0 * (within / 360.0).round();
    quotient(nearest, 360.0)
}

/// The quotient, from −1/2 to 1/2, with twice the digits of a double.
pub(super) fn quotient(part: f64, whole: f64) -> Turns {
    let high = part / whole;
    // The rest of a division is exact when it is computed with one rounding.
    let low = high.mul_add(-whole, part) / whole;
    turns(high).wrapping_add(turns(low))
}

/// Turns a pointer by a fixed angle per sample. The angle of a sample follows from its number alone, in
/// integers, so no error accumulates.
#[derive(Clone)]
pub(super) struct Oscillator {
    vectors: Vectors,
    /// Angle at the start or the last change.
    begin: Turns,
    /// Turns per sample.
    step: Turns,
    /// Number of the next sample, since the start or the last change.
    index: u64,
    amplitude: f64,
    phase: Turns,
    /// Pointer at the start of the current block.
    base: Complex<f64>,
    /// Rotations within a block.
    table: [Complex<f64>; BLOCK],
}

impl Default for Oscillator {
    fn default() -> Self {
        let one = Complex::new(1.0, 0.0);
        let (begin, step, index, phase) = (0, 0, 0, 0);
        let vectors = Vectors::new();
        Oscillator { vectors, begin, step, index, amplitude: 1.0, phase, base: one, table: [one; BLOCK] }
    }
}

impl Oscillator {
    /// Goes on with another angle per sample, amplitude or phase, from the angle that it has reached.
    pub fn set(&mut self, step: Turns, amplitude: f64, phase: Turns) {
        self.begin = self.begin.wrapping_add(self.step.wrapping_mul(u128::from(self.index)));
        (self.index, self.step, self.amplitude, self.phase) = (0, step, amplitude, phase);
        self.table = std::array::from_fn(|n| pointer(step.wrapping_mul(n as u128)));
    }

    /// Writes the next samples.
    pub fn write<T: SignalSample>(&mut self, samples: &mut [T]) {
        self.vectors.run(OscillatorLoop { oscillator: self, samples });
    }

    #[inline(always)]
    fn turn<T: SignalSample>(&mut self, mut samples: &mut [T]) {
        while !samples.is_empty() {
            let within = (self.index % BLOCK as u64) as usize;
            if within == 0 {
                let turned = self.step.wrapping_mul(u128::from(self.index));
                let angle = self.begin.wrapping_add(self.phase).wrapping_add(turned);
                self.base = pointer(angle) * self.amplitude;
            }
            let length = samples.len().min(BLOCK - within);
            let (now, later) = samples.split_at_mut(length);
            let base = self.base;
            for (y, entry) in now.iter_mut().zip(&self.table[within..within + length]) {
                *y = T::of(entry.re * base.re - entry.im * base.im, entry.re * base.im + entry.im * base.re);
            }
            self.index = self.index.wrapping_add(length as u64);
            samples = later;
        }
    }
}

/// The loop, compiled for the processor's vectors.
struct OscillatorLoop<'o, T> {
    oscillator: &'o mut Oscillator,
    samples: &'o mut [T],
}

impl<T: SignalSample> WithSimd for OscillatorLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        self.oscillator.turn(self.samples);
    }
}

/// The pointer of length 1 at an angle.
fn pointer(angle: Turns) -> Complex<f64> {
    // As a signed number the angle is within half a turn of zero, where the sine is most exact.
    let (sin, cos) = ((angle >> 64) as u64 as i64 as f64 * (TAU / 2f64.powi(64))).sin_cos();
    Complex::new(cos, sin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_exact_for_years() {
        // 8001/384000 turns per sample; a third of a turn; close to half of the rate; a slow one.
        let tones = [
            (8001, 384_000, 1000.125, 48e3),
            (1, 3, 16e3, 48e3),
            (-11, 23, -11.0, 23.0),
            (1, 96_001, 1.0, 96_001.0),
        ];
        for (up, down, frequency_hz, rate_hz) in tones {
            let mut oscillator = Oscillator::default();
            oscillator.set(quotient(frequency_hz, rate_hz), 1.0, 0);
            // Three years at 48 kHz, at the start of a block.
            let begin = 3 * 365 * 86_400 * 48_000u64;
            oscillator.index = begin;
            let mut samples = vec![Complex::<f32>::default(); 1000];
            oscillator.write(&mut samples);
            for (n, sample) in (begin..).zip(&samples) {
                let part = (i128::from(n) * up).rem_euclid(down) as f64 / down as f64;
                let (sin, cos) = (TAU * part).sin_cos();
                let error = f64::hypot(f64::from(sample.re) - cos, f64::from(sample.im) - sin);
                // Half a unit in the last place of both parts.
                assert!(error < 4.3e-8, "{error} at {n} of {frequency_hz} Hz");
            }
        }
    }

    #[test]
    fn whole_turns_do_not_matter() {
        assert_eq!(degrees(90.0), 1 << 126);
        assert_eq!(degrees(-90.0), 3 << 126);
        for angle in [0.0, 45.0, 180.0, -30.0, 7.25] {
            assert_eq!(degrees(angle + 360.0 * 1e6), degrees(angle));
        }
        assert_eq!(degrees(180.0), degrees(-180.0));
    }
}
