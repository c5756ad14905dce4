//! Results computed from transforms.

use crate::check;
use crate::vectors::Vectors;
use num_complex::Complex;
use onbeat_runtime::{Error, Sample};
use pulp::{Simd, WithSimd};

/// Computes the results that [`Framed`](super::Framed) sends.
pub trait Measure: Send + 'static {
    /// Sample type of a result.
    type Out: Sample;

    /// Called once, with the window's weights and whether the signal is complex.
    fn start(&mut self, weights: &[f32], is_complex: bool);

    /// Samples per result.
    fn samples(&self) -> usize;

    /// Frequency of the first sample of a result, and step to the next one, in hertz, for a signal of this
    /// rate.
    fn axis(&self, rate_hz: f64) -> (f64, f64);

    /// Number of frames per result.
    fn frames(&self) -> usize {
        1
    }

    /// Takes a transform, frequency 0 first. Returns whether a result is ready.
    fn take(&mut self, transform: &[Complex<f32>]) -> bool;

    /// Handles the end of the stream. Returns whether a result is ready.
    fn finish(&mut self) -> bool {
        false
    }

    /// Writes the result to `out`.
    fn write(&mut self, out: &mut [Self::Out]);
}

#[doc = include_str!("../about/fft.md")]
#[derive(Debug, Clone, Default)]
pub struct Fft {
    bins: Vec<Complex<f32>>,
}

impl Measure for Fft {
    type Out = Complex<f32>;

    fn start(&mut self, weights: &[f32], _: bool) {
        self.bins = vec![Complex::default(); weights.len()];
    }

    fn samples(&self) -> usize {
        self.bins.len()
    }

    fn axis(&self, rate_hz: f64) -> (f64, f64) {
        (0.0, rate_hz / self.bins.len() as f64)
    }

    fn take(&mut self, transform: &[Complex<f32>]) -> bool {
        self.bins.copy_from_slice(transform);
        true
    }

    fn write(&mut self, out: &mut [Complex<f32>]) {
        out.copy_from_slice(&self.bins);
    }
}

#[doc = include_str!("../about/spectrum.md")]
#[derive(Debug, Clone)]
pub struct Spectrum {
    vectors: Vectors,
    average: usize,
    is_complex: bool,
    size: usize,
    /// Scale of a bin's power, such that a tone is as large as its power.
    scale: f64,
    sums: Vec<f64>,
    count: usize,
}

/// Value for zero power.
const FLOOR_DB: f64 = -200.0;

impl Spectrum {
    /// Averages `average` frames.
    ///
    /// # Errors
    /// When it is 0 or above a million.
    pub fn new(average: usize) -> Result<Self, Error> {
        check::within("average", average as f64, 1.0, 1e6, "1 sends every frame")?;
        Ok(Spectrum {
            vectors: Vectors::new(),
            average,
            is_complex: true,
            size: 0,
            scale: 0.0,
            sums: Vec::new(),
            count: 0,
        })
    }
}

/// Adds powers to sums.
struct PowerLoop<'p> {
    transform: &'p [Complex<f32>],
    sums: &'p mut [f64],
}

impl WithSimd for PowerLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (sum, x) in self.sums.iter_mut().zip(self.transform) {
            *sum += f64::from(x.re) * f64::from(x.re) + f64::from(x.im) * f64::from(x.im);
        }
    }
}

impl Measure for Spectrum {
    type Out = f32;

    fn start(&mut self, weights: &[f32], is_complex: bool) {
        (self.size, self.is_complex) = (weights.len(), is_complex);
        let sum: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        self.scale = 1.0 / (sum * sum);
        self.sums = vec![0.0; if is_complex { self.size } else { self.size / 2 + 1 }];
    }

    fn samples(&self) -> usize {
        self.sums.len()
    }

    fn axis(&self, rate_hz: f64) -> (f64, f64) {
        let step_hz = rate_hz / self.size as f64;
        let below = if self.is_complex { self.size / 2 } else { 0 };
        (-(below as f64) * step_hz, step_hz)
    }

    fn frames(&self) -> usize {
        self.average
    }

    fn take(&mut self, transform: &[Complex<f32>]) -> bool {
        self.vectors.run(PowerLoop { transform, sums: &mut self.sums });
        self.count += 1;
        self.count == self.average
    }

    fn finish(&mut self) -> bool {
        self.count > 0
    }

    fn write(&mut self, out: &mut [f32]) {
        let scale = self.scale / self.count as f64;
        let middle = if self.is_complex { self.size / 2 } else { 0 };
        for (bin, sum) in self.sums.iter_mut().enumerate() {
            // A real signal has the other half of its power at the negative frequency.
            let twice = !self.is_complex && bin > 0 && 2 * bin != self.size;
            let power = std::mem::take(sum) * scale * if twice { 2.0 } else { 1.0 };
            let place = (bin + middle) % out.len();
            out[place] = (10.0 * power.log10()).max(FLOOR_DB) as f32;
        }
        self.count = 0;
    }
}
