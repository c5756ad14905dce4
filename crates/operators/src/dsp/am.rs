//! Amplitude demodulation.

use super::not_finite;
use crate::check;
use num_complex::Complex;
use onbeat_runtime::{Error, Hertz, Kernel, Operator, Progress, operator};
use std::f64::consts::TAU;

/// Carriers below this magnitude count as none.
const LEAST_CARRIER: f64 = 1e-9;

#[doc = include_str!("../about/am_demod.md")]
#[derive(Debug, Clone, Operator)]
#[operator(name = "am.demod", summary = "amplitude demodulation", prepare = Self::prepare)]
pub struct AmDemod {
    /// Cutoff frequency of the mean that is taken as the carrier, below half of the sample rate: lower
    /// frequencies of the sound are lost, and fading that is slower is followed.
    #[parameter(default = "5 Hz", above = 0, settable)]
    cutoff: Hertz,
    /// Whether to divide by the carrier: an output of 1 is then a modulation of 100 %.
    #[parameter(default = true, settable)]
    normalise: bool,
    /// Sample rate; 0 before it is known.
    rate_hz: f64,
    /// Weight of a new sample in the mean.
    part: f64,
    mean: f64,
    /// The mean of the mean: what the sound leaves in it would distort the quotient.
    level: f64,
    /// Samples in the mean, as long as it is that of all samples.
    count: f64,
    not_finite: u64,
}

impl AmDemod {
    fn prepare(&mut self) -> Result<(), Error> {
        if self.rate_hz > 0.0 {
            let fix = "use a higher sample rate";
            check::below_half("cutoff", self.cutoff.0, self.rate_hz, "sample", fix)?;
            self.part = -(-TAU * self.cutoff.0 / self.rate_hz).exp_m1();
        }
        Ok(())
    }

    #[inline(always)]
    fn demodulate(&mut self, x: Complex<f32>) -> f32 {
        let (re, im) = (f64::from(x.re), f64::from(x.im));
        let size = (re * re + im * im).sqrt();
        if !size.is_finite() {
            self.not_finite += 1;
            return 0.0;
        }
        self.count += 1.0;
        let part = self.part.max(1.0 / self.count);
        self.mean += (size - self.mean) * part;
        self.level += (self.mean - self.level) * part;
        let sound = size - self.mean;
        let sound = match self.normalise {
            false => sound,
            true if self.level > LEAST_CARRIER => sound / self.level,
            true => 0.0,
        };
        sound as f32
    }
}

#[operator]
impl Kernel for AmDemod {
    type In = Complex<f32>;
    type Out = f32;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        self.rate_hz = rate_hz;
        (self.mean, self.level, self.count) = (0.0, 0.0, 0.0);
        self.prepare()
    }

    fn process(&mut self, input: &[Complex<f32>], output: &mut [f32]) -> Progress {
        let count = input.len().min(output.len());
        output.iter_mut().zip(input).for_each(|(y, x)| *y = self.demodulate(*x));
        Progress { consumed: count, produced: count }
    }

    fn note(&self) -> Option<String> {
        not_finite(self.not_finite, "gave an output of 0")
    }
}
