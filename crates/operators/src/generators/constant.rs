//! One value for ever.

use super::timing;
use crate::check;
use num_complex::Complex;
use onbeat_runtime::{Error, Generator, Hertz, Operator, Pace, Seconds, StreamTiming, operator};

/// Sends samples of one value.
///
/// The value can change during a run, at any sample: a step, for example, for the response of a filter.
#[derive(Operator, Clone)]
#[operator(name = "constant.source", prepare = Self::prepare)]
pub struct ConstantSource {
    /// The value of each sample.
    #[parameter(default = 0.0, settable)]
    value: f64,
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
}

impl ConstantSource {
    fn prepare(&mut self) -> Result<(), Error> {
        check::single("value", self.value)?;
        self.timing = timing(self.sample_rate, self.count, self.duration, self.pace)?;
        Ok(())
    }
}

#[operator]
impl Generator for ConstantSource {
    type Sample = f32;

    fn timing(&self) -> StreamTiming {
        self.timing
    }

    fn generate(&mut self, samples: &mut [f32]) {
        samples.fill(self.value as f32);
    }
}

/// Sends complex samples of one value.
///
/// Both parts can change during a run, at any sample.
#[derive(Operator, Clone)]
#[operator(name = "constant.source.complex", prepare = Self::prepare)]
pub struct ComplexConstant {
    /// The real part of each sample.
    #[parameter(default = 0.0, settable)]
    real: f64,
    /// The imaginary part of each sample.
    #[parameter(default = 0.0, settable)]
    imaginary: f64,
    /// Samples per second.
    #[parameter(example = "256 kHz", above = 0)]
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
}

impl ComplexConstant {
    fn prepare(&mut self) -> Result<(), Error> {
        check::single("real", self.real)?;
        check::single("imaginary", self.imaginary)?;
        self.timing = timing(self.sample_rate, self.count, self.duration, self.pace)?;
        Ok(())
    }
}

#[operator]
impl Generator for ComplexConstant {
    type Sample = Complex<f32>;

    fn timing(&self) -> StreamTiming {
        self.timing
    }

    fn generate(&mut self, samples: &mut [Complex<f32>]) {
        samples.fill(Complex::new(self.real as f32, self.imaginary as f32));
    }
}
