//! A tone of one frequency.

use super::oscillator::{Oscillator, degrees, quotient};
use super::{Amplitude, SignalSample, timing};
use crate::check;
use onbeat_runtime::{Error, Generator, Hertz, Operator, Pace, Seconds, StreamTiming, operator};
use std::marker::PhantomData;

#[doc = include_str!("../about/tone.md")]
#[derive(Operator, Clone)]
#[operator(
    name = "tone.source",
    summary = "sends a tone of one frequency",
    about = include_str!("../about/tone.md"),
    prepare = Self::prepare,
)]
pub struct ToneSource<T: SignalSample> {
    /// Frequency, positive or negative; its magnitude must be below half of the sample rate.
    #[parameter(example = "1 kHz", settable)]
    frequency: Hertz,
    /// Peak of the tone: a number, or a level in dB, where 0 dB is a peak of 1.
    #[parameter(default = Amplitude(1.0), settable)]
    amplitude: Amplitude,
    /// Phase of the first sample, in degrees. A real tone is a cosine; with -90 it is a sine.
    #[parameter(default = 0.0, settable)]
    phase: f64,
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
    oscillator: Oscillator,
    sample: PhantomData<T>,
}

impl<T: SignalSample> ToneSource<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        let rate_hz = self.sample_rate.0;
        let fix = "a higher frequency would alias to another one";
        check::below_half("frequency", self.frequency.0, rate_hz, "sample", fix)?;
        self.amplitude.check("amplitude")?;
        check::finite("phase", self.phase)?;
        self.timing = timing(self.sample_rate, self.count, self.duration, self.pace)?;
        self.oscillator.set(quotient(self.frequency.0, rate_hz), self.amplitude.0, degrees(self.phase));
        Ok(())
    }
}

#[operator]
impl<T: SignalSample> Generator for ToneSource<T> {
    type Sample = T;

    fn timing(&self) -> StreamTiming {
        self.timing
    }

    fn generate(&mut self, samples: &mut [T]) {
        self.oscillator.write(samples);
    }
}
