//! White noise.

use super::{Amplitude, SignalSample, timing};
use onbeat_runtime::{Error, Generator, Hertz, Operator, Pace, Seconds, StreamTiming, operator};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// Distribution of the values of a noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoiseDistribution {
    /// Gaussian: no limit, and 99.7 % of the values within three times the RMS level.
    #[default]
    Gaussian,
    /// Uniform: all values between ±√3 times the RMS level equally likely.
    Uniform,
}

#[doc = include_str!("../about/noise.md")]
#[derive(Operator, Clone)]
#[operator(
    name = "noise.source",
    summary = "sends white noise",
    about = include_str!("../about/noise.md"),
    prepare = Self::prepare,
)]
pub struct NoiseSource<T: SignalSample> {
    /// Distribution of the values: `gaussian` or `uniform`.
    #[parameter(default)]
    distribution: NoiseDistribution,
    /// RMS level: a number, or a level in dB, where 0 dB is an RMS level of 1. For complex samples it is that
    /// of the magnitude.
    #[parameter(default = Amplitude(0.1), settable)]
    rms: Amplitude,
    /// Start of the generator. The same seed gives the same noise in every run.
    #[parameter(default)]
    seed: u64,
    /// Samples per second.
    #[parameter(example = "48 kHz", above = 0)]
    sample_rate: Hertz,
    /// How many samples to send; without `count` and `duration`, the source never ends.
    #[parameter]
    count: Option<u64>,
    /// How long a stream to send, rounded to the nearest sample; give either `count` or `duration`.
    #[parameter(min = 0)]
    duration: Option<Seconds>,
    /// `real`: a chunk is sent when its last sample is due. `fast`: as soon as there is room.
    #[parameter(default = Pace::Real)]
    pace: Pace,
    timing: StreamTiming,
    /// `None` before it gets its seed.
    generator: Option<Xoshiro256PlusPlus>,
    sample: PhantomData<T>,
}

impl<T: SignalSample> NoiseSource<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        self.rms.check("rms")?;
        self.timing = timing(self.sample_rate, self.count, self.duration, self.pace)?;
        self.generator.get_or_insert_with(|| Xoshiro256PlusPlus::seed_from_u64(self.seed));
        Ok(())
    }

    /// Writes samples whose parts have this standard deviation, made of values with a deviation of 1.
    fn write(&mut self, samples: &mut [T], value: impl Fn(&mut Xoshiro256PlusPlus) -> f64) {
        let Some(generator) = &mut self.generator else { return };
        let deviation = self.rms.0 / f64::from(T::PARTS).sqrt();
        for y in samples {
            let re = deviation * value(generator);
            let im = if T::PARTS == 2 { deviation * value(generator) } else { 0.0 };
            *y = T::of(re, im);
        }
    }
}

/// A value between −√3 and √3.
fn uniform(generator: &mut Xoshiro256PlusPlus) -> f64 {
    // The middle of one of 2⁵² intervals, so that the mean is 0.
    let place = (generator.next_u64() >> 12) as f64 + 0.5;
    (place * 2f64.powi(-51) - 1.0) * 3f64.sqrt()
}

#[operator]
impl<T: SignalSample> Generator for NoiseSource<T> {
    type Sample = T;

    fn timing(&self) -> StreamTiming {
        self.timing
    }

    fn generate(&mut self, samples: &mut [T]) {
        match self.distribution {
            NoiseDistribution::Gaussian => self.write(samples, |generator| StandardNormal.sample(generator)),
            NoiseDistribution::Uniform => self.write(samples, uniform),
        }
    }
}
