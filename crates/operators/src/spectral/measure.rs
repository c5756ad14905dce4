//! What is made of transforms.

use crate::check;
use num_complex::Complex;
use onbeat_runtime::{Error, Sample};

/// What [`Framed`](super::Framed) sends.
pub trait Measure: Send + 'static {
    /// Type of a sample that it sends.
    type Out: Sample;

    /// Called once, with the weights of the window and whether the signal is complex.
    fn start(&mut self, weights: &[f32], is_complex: bool);

    /// Samples that it sends at a time.
    fn samples(&self) -> usize;

    /// Frequency of the first sample that it sends, and the step to the next one, in hertz, of a signal of this rate.
    fn axis(&self, rate_hz: f64) -> (f64, f64);

    /// Frames that it makes one of.
    fn frames(&self) -> usize {
        1
    }

    /// Takes a transform, frequency 0 first. Says whether it has something to send.
    fn take(&mut self, transform: &[Complex<f32>]) -> bool;

    /// The stream has ended. Says whether it has something to send.
    fn finish(&mut self) -> bool {
        false
    }

    /// Writes what it has to send, that many samples.
    fn write(&mut self, out: &mut [Self::Out]);
}

/// Each transform as it is: `X[k] = Σ w[n] x[n] e^(-2πi k n / size)`, bin 0 first, the upper half being the
/// negative frequencies.
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

/// Power by frequency in decibels, the mean of so many frames.
///
/// A complex tone of size 1 on a bin is 0 dB there, and a real one, `cos`, −3 dB: its power. Of complex
/// signals bin 0 is the lowest frequency, −rate/2, and frequency 0 in the middle; of real ones, which have
/// `size / 2 + 1` bins, bin 0 is frequency 0. Nothing at all is −200 dB. Where the stream ends within a mean,
/// that is of the frames it has.
#[derive(Debug, Clone)]
pub struct Spectrum {
    average: usize,
    is_complex: bool,
    size: usize,
    /// Of the powers of a bin, so that a tone is as large as its power.
    scale: f64,
    sums: Vec<f64>,
    count: usize,
}

/// What stands for no power at all.
const FLOOR_DB: f64 = -200.0;

impl Spectrum {
    /// The mean of `average` frames.
    ///
    /// # Errors
    /// When it is 0 or above a million.
    pub fn new(average: usize) -> Result<Self, Error> {
        check::within("average", average as f64, 1.0, 1e6, "1 is every frame by itself")?;
        Ok(Spectrum { average, is_complex: true, size: 0, scale: 0.0, sums: Vec::new(), count: 0 })
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
        for (sum, x) in self.sums.iter_mut().zip(transform) {
            *sum += f64::from(x.re) * f64::from(x.re) + f64::from(x.im) * f64::from(x.im);
        }
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
