//! A gain in decibels.

use crate::dsp::GainSample;
use onbeat_runtime::{Decibels, Error, Map, Operator, operator};
use std::marker::PhantomData;

/// Multiplies samples by a gain in decibels.
///
/// `y = 10^(gain / 20) x`: 6.02 dB doubles the samples, −20 dB makes a tenth of them. The factor is rounded
/// to a 32-bit float. `saxpy` takes a plain factor.
#[derive(Operator, Clone)]
#[operator(prepare = Self::prepare)]
pub struct Gain<T: GainSample> {
    /// Gain; negative for an attenuation.
    #[parameter(example = "-6 dB", max = "700 dB", settable)]
    gain: Decibels,
    factor: f32,
    sample: PhantomData<T>,
}

impl<T: GainSample> Gain<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        self.factor = 10f64.powf(self.gain.0 / 20.0) as f32;
        Ok(())
    }
}

#[operator]
impl<T: GainSample> Map for Gain<T> {
    type Sample = T;

    fn map(&mut self, samples: &mut [T]) {
        samples.iter_mut().for_each(|x| *x = x.times(self.factor));
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
}
