//! Frequency shift.

use std::f64::consts::TAU;

use num_complex::Complex;
use onbeat_runtime::{Change, Error, FiniteMemory, Hertz, Map, Value, tried};
use pulp::{Simd, WithSimd};

use crate::check;
use crate::vectors::Vectors;

/// Samples that share one computed angle.
const BLOCK: usize = 64;

#[doc = include_str!("../about/freq_shift.md")]
#[derive(Debug, Clone)]
pub struct Shift {
    vectors: Vectors,
    shift_hz: f64,
    /// Sample rate; 0 before it is known.
    rate_hz: f64,
    /// Number of the sample at the start or the last change, and its angle in units of 2⁻⁶⁴ turns.
    origin: u64,
    begin: u64,
    /// Turns per sample, in units of 2⁻⁶⁴.
    step: u64,
    /// Number of the next sample, since the start or the last change.
    index: u64,
    /// Rotation at the start of the current block.
    base: Complex<f32>,
    /// Rotations within a block.
    table: [Complex<f32>; BLOCK],
}

impl Shift {
    /// Creates a shift by `shift_hz` hertz, positive or negative.
    ///
    /// # Errors
    /// When `shift_hz` is not a finite number.
    pub fn new(shift_hz: f64) -> Result<Self, Error> {
        check::finite("shift", shift_hz)?;
        let one = Complex::new(1.0, 0.0);
        Ok(Shift {
            vectors: Vectors::new(),
            shift_hz,
            rate_hz: 0.0,
            origin: 0,
            begin: 0,
            step: 0,
            index: 0,
            base: one,
            table: [one; BLOCK],
        })
    }
}

impl Shift {
    /// Continues with another shift.
    fn turn_by(&mut self, shift_hz: f64) -> Result<(), Error> {
        check::finite("shift", shift_hz)?;
        if self.rate_hz > 0.0 {
            let fix = "a larger shift would alias to another frequency";
            check::below_half("shift", shift_hz, self.rate_hz, "sample", fix)?;
            self.begin = self.begin.wrapping_add(self.step.wrapping_mul(self.index));
            self.origin = self.origin.wrapping_add(self.index);
            self.index = 0;
            self.step = (shift_hz / self.rate_hz * 2f64.powi(64)).round() as i64 as u64;
            self.table = std::array::from_fn(|n| rotation(self.step.wrapping_mul(n as u64)));
        }
        self.shift_hz = shift_hz;
        Ok(())
    }

    #[inline(always)]
    fn turn(&mut self, mut samples: &mut [Complex<f32>]) {
        while !samples.is_empty() {
            let within = (self.index % BLOCK as u64) as usize;
            if within == 0 {
                self.base = rotation(self.begin.wrapping_add(self.step.wrapping_mul(self.index)));
            }
            let length = samples.len().min(BLOCK - within);
            let (now, later) = samples.split_at_mut(length);
            rotate(now, &self.table[within..within + length], self.base);
            self.index = self.index.wrapping_add(length as u64);
            samples = later;
        }
    }
}

/// The loop, compiled for the processor's vectors.
struct ShiftLoop<'s> {
    shift: &'s mut Shift,
    samples: &'s mut [Complex<f32>],
}

impl WithSimd for ShiftLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        self.shift.turn(self.samples);
    }
}

/// The rotation by an angle in units of 2⁻⁶⁴ turns.
fn rotation(angle: u64) -> Complex<f32> {
    // As a signed number the angle is within half a turn of zero, where the sine is most exact.
    let (sin, cos) = (angle as i64 as f64 * (TAU / 2f64.powi(64))).sin_cos();
    Complex::new(cos as f32, sin as f32)
}

impl Map for Shift {
    type Sample = Complex<f32>;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        (self.rate_hz, self.origin, self.index, self.step, self.begin) = (rate_hz, 0, 0, 0, 0);
        self.turn_by(self.shift_hz)
    }

    fn map(&mut self, samples: &mut [Complex<f32>]) {
        self.vectors.run(ShiftLoop { shift: self, samples });
    }

    fn settable(&self) -> &'static [&'static str] {
        &["shift"]
    }

    fn change(&self, name: &str, value: &Value) -> Result<Change<Self>, Error> {
        let Hertz(shift_hz) = value.read(name)?;
        tried(self, move |it| it.turn_by(shift_hz))
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        Some(self)
    }
}

impl FiniteMemory for Shift {
    fn memory(&self) -> usize {
        0
    }

    fn resume(&mut self, position: u64) {
        self.index = position.wrapping_sub(self.origin);
        let block = self.index - self.index % BLOCK as u64;
        self.base = rotation(self.begin.wrapping_add(self.step.wrapping_mul(block)));
    }
}

/// Multiplies each sample by its table entry and the base.
#[inline(always)]
fn rotate(samples: &mut [Complex<f32>], table: &[Complex<f32>], base: Complex<f32>) {
    for (x, entry) in samples.iter_mut().zip(table) {
        let turn = entry * base;
        *x = Complex::new(x.re * turn.re - x.im * turn.im, x.re * turn.im + x.im * turn.re);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_exact_after_hours() {
        let (shift_hz, rate_hz) = (-12_345.678, 256e3);
        let mut shift = Shift::new(shift_hz).unwrap();
        shift.start(rate_hz).unwrap();
        // Ten hours into the stream, at the start of a block.
        let hours: u64 = 10 * 3600 * 256_000;
        shift.index = hours;
        let mut samples = vec![Complex::new(1.0f32, 0.0); 1000];
        shift.map(&mut samples);
        for (n, sample) in (hours..).zip(&samples) {
            // Whole turns are subtracted as integers: 12 345 678 / 256 000 000 turns per sample.
            let turns = (u128::from(n) * 12_345_678 % 256_000_000) as f64 / 256e6;
            let (sin, cos) = (-TAU * turns).sin_cos();
            let error = f64::hypot(f64::from(sample.re) - cos, f64::from(sample.im) - sin);
            // The rounding of the frequency, at most 2⁻⁵⁷ turns per sample, has accumulated for ten hours.
            assert!(error < 5e-7 + TAU * hours as f64 * 2f64.powi(-57), "{error} at {n}");
        }
    }

    #[test]
    fn refuses_what_cannot_be() {
        assert!(Shift::new(f64::NAN).is_err());
        assert!(Shift::new(f64::INFINITY).is_err());
        let mut shift = Shift::new(-24e3).unwrap();
        let error = shift.start(48e3).unwrap_err().to_string();
        assert!(error.contains("`shift` is -24000") && error.contains("below 24000"), "{error}");
        let error = shift.start(0.0).unwrap_err().to_string();
        assert!(error.contains("give `sample_rate` at the source"), "{error}");
    }
}
