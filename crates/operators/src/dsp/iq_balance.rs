//! Blind correction of the imbalance between the two branches of a receiver.

use super::not_finite;
use crate::check;
use num_complex::Complex;
use onbeat_runtime::{Error, Map, Operator, Seconds, operator};

/// Samples from one new estimate to the next, counted from the start of the stream.
const BLOCK: usize = 64;

/// Largest correction: a gain imbalance of 6 dB, or a phase error of 37 degrees.
const MOST: f64 = 1.0 / 3.0;

#[doc = include_str!("../about/iq_balance.md")]
#[derive(Debug, Clone, Operator)]
#[operator(
    name = "iq.balance",
    summary = "corrects gain and phase imbalance of the I and Q branches",
    prepare = Self::prepare
)]
pub struct IqBalance {
    /// Time constant of the estimate, at most 1000 s. A longer one is more exact, and follows changes more
    /// slowly.
    #[parameter(default = "1 s", above = 0, max = 1000, settable)]
    tau: Seconds,
    /// Sample rate; 0 before it is known.
    rate_hz: f64,
    /// Weight of a new block in the means.
    part: f64,
    /// Means of the samples, of their squares and of their powers, and the sum of the weights in them.
    mean: Complex<f64>,
    square: Complex<f64>,
    power: f64,
    weight: f64,
    /// Sums of the current block, and its samples so far.
    sums: BlockSums,
    /// Weight of the conjugate sample.
    correction: Complex<f64>,
    not_finite: u64,
}

/// Sums of the samples of a block.
#[derive(Debug, Clone, Copy, Default)]
struct BlockSums {
    x: Complex<f64>,
    square: Complex<f64>,
    power: f64,
    /// Finite samples.
    count: f64,
    samples: usize,
}

impl IqBalance {
    fn prepare(&mut self) -> Result<(), Error> {
        if self.rate_hz > 0.0 {
            self.part = -(-(BLOCK as f64) / (self.rate_hz * self.tau.0)).exp_m1();
        }
        Ok(())
    }

    #[inline(always)]
    fn correct(&mut self, sample: &mut Complex<f32>) {
        let x = Complex::new(f64::from(sample.re), f64::from(sample.im));
        self.sums.samples += 1;
        if !x.is_finite() {
            self.not_finite += 1;
            *sample = Complex::new(0.0, 0.0);
            return;
        }
        self.sums.x += x;
        self.sums.square += x * x;
        self.sums.power += x.norm_sqr();
        self.sums.count += 1.0;
        let y = x + self.correction * x.conj();
        *sample = Complex::new(y.re as f32, y.im as f32);
    }

    /// Takes a whole block into the means, and computes the correction from them.
    fn estimate(&mut self) {
        let sums = std::mem::take(&mut self.sums);
        if sums.count == 0.0 {
            return;
        }
        let part = self.part;
        self.mean += (sums.x / sums.count - self.mean) * part;
        self.square += (sums.square / sums.count - self.square) * part;
        self.power += (sums.power / sums.count - self.power) * part;
        self.weight += (1.0 - self.weight) * part;
        // The means begin at 0, so they are too small by the same factor at first.
        let mean = self.mean / self.weight;
        let square = self.square / self.weight - mean * mean;
        let power = self.power / self.weight - mean.norm_sqr();
        // A constant alone leaves nothing but rounding errors.
        if power <= 1e-30 + 1e-12 * mean.norm_sqr() {
            return;
        }
        let shape = square / power;
        let correction = -shape / (1.0 + (1.0 - shape.norm_sqr()).max(0.0).sqrt());
        let size = correction.norm();
        let limit = if size > MOST { MOST / size } else { 1.0 };
        // Estimates from few samples are trusted little, until one time constant has passed.
        let trust = (self.weight / -(-1f64).exp_m1()).min(1.0);
        self.correction = correction * limit * trust;
    }
}

#[operator]
impl Map for IqBalance {
    type Sample = Complex<f32>;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        *self = IqBalance {
            tau: self.tau,
            rate_hz,
            part: 0.0,
            mean: Complex::default(),
            square: Complex::default(),
            power: 0.0,
            weight: 0.0,
            sums: BlockSums::default(),
            correction: Complex::default(),
            not_finite: self.not_finite,
        };
        self.prepare()
    }

    fn map(&mut self, samples: &mut [Complex<f32>]) {
        let mut left = samples;
        while !left.is_empty() {
            let count = (BLOCK - self.sums.samples).min(left.len());
            let (now, later) = left.split_at_mut(count);
            now.iter_mut().for_each(|sample| self.correct(sample));
            if self.sums.samples == BLOCK {
                self.estimate();
            }
            left = later;
        }
    }

    fn note(&self) -> Option<String> {
        let bad = not_finite(self.not_finite, "were replaced by 0");
        if self.correction.norm() < 1e-9 {
            return bad;
        }
        // gain e^(-j phase) of the Q branch, against the I branch.
        let branch = (1.0 + self.correction) / (1.0 - self.correction);
        let text = format!(
            "the Q branch was found to have a gain of {:.3} dB and a phase error of {:.3} degrees: images at \
             {:.1} dB before the correction",
            20.0 * branch.norm().log10(),
            -branch.arg().to_degrees(),
            20.0 * self.correction.norm().log10()
        );
        Some(bad.map_or(text.clone(), |bad| format!("{bad}; {text}")))
    }
}
