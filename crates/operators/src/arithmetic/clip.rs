//! A limit of the magnitude.

use crate::check;
use num_complex::Complex;
use onbeat_runtime::{Error, Map, Operator, Sample, operator};
use std::marker::PhantomData;

/// A sample whose magnitude can be limited.
pub trait ClipSample: Sample {
    /// The sample with this magnitude, if its own is larger; `None` for a sample within the limit, or
    /// without a magnitude.
    fn clipped(self, limit: f32) -> Option<Self>;
}

impl ClipSample for f32 {
    #[inline(always)]
    fn clipped(self, limit: f32) -> Option<f32> {
        (self.abs() > limit).then(|| limit.copysign(self))
    }
}

impl ClipSample for Complex<f32> {
    #[inline(always)]
    fn clipped(self, limit: f32) -> Option<Self> {
        let (re, im, limit) = (f64::from(self.re), f64::from(self.im), f64::from(limit));
        let power = re * re + im * im;
        (power > limit * limit && power.is_finite()).then(|| {
            let factor = limit / power.sqrt();
            Complex::new((re * factor) as f32, (im * factor) as f32)
        })
    }
}

#[derive(Operator, Clone)]
#[operator(
    summary = "limits the magnitude of samples",
    about = include_str!("../about/clip.md"),
    prepare = Self::prepare,
)]
#[doc = include_str!("../about/clip.md")]
pub struct Clip<T: ClipSample> {
    /// Largest magnitude.
    #[parameter(default = 1.0, above = 0, settable)]
    limit: f64,
    /// Samples that were beyond it.
    beyond: u64,
    sample: PhantomData<T>,
}

impl<T: ClipSample> Clip<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        check::single("limit", self.limit)
    }
}

#[operator]
impl<T: ClipSample> Map for Clip<T> {
    type Sample = T;

    fn start(&mut self, _: f64) -> Result<(), Error> {
        self.beyond = 0;
        Ok(())
    }

    fn map(&mut self, samples: &mut [T]) {
        let limit = self.limit as f32;
        for x in samples {
            if let Some(clipped) = x.clipped(limit) {
                *x = clipped;
                self.beyond += 1;
            }
        }
    }

    fn note(&self) -> Option<String> {
        (self.beyond > 0).then(|| format!("{} samples were beyond `limit` and were clipped", self.beyond))
    }
}
