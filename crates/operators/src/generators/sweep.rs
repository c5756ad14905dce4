//! A tone whose frequency rises or falls.

use super::{Amplitude, SignalSample, timing};
use crate::check;
use onbeat_runtime::{Error, Generator, Hertz, Operator, Pace, Seconds, StreamTiming, operator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;
use std::marker::PhantomData;

/// Course of the frequency of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SweepLaw {
    /// The same number of hertz in each second.
    #[default]
    Linear,
    /// The same number of octaves in each second.
    Logarithmic,
}

#[doc = include_str!("../about/sweep.md")]
#[derive(Operator, Clone)]
#[operator(
    name = "sweep.source",
    summary = "sends a tone whose frequency rises or falls",
    about = include_str!("../about/sweep.md"),
    prepare = Self::prepare,
)]
pub struct SweepSource<T: SignalSample> {
    /// Frequency at the first sample of a sweep; its magnitude must be below half of the sample rate.
    #[parameter(example = "100 Hz")]
    from: Hertz,
    /// Frequency that the sweep approaches at its end, with the same limit.
    #[parameter(example = "10 kHz")]
    to: Hertz,
    /// Length of one sweep, rounded to the nearest sample.
    #[parameter(example = "2 s", above = 0)]
    duration: Seconds,
    /// Course of the frequency. `linear`: the same number of hertz in each second. `logarithmic`: the same
    /// number of octaves.
    #[parameter(default)]
    law: SweepLaw,
    /// How many sweeps to send; 0 repeats without end.
    #[parameter(default = 1)]
    repeat: u64,
    /// Peak of the tone: a number, or a level in dB, where 0 dB is a peak of 1.
    #[parameter(default = Amplitude(1.0), settable)]
    amplitude: Amplitude,
    /// Phase of the first sample, in degrees. A real sweep is a cosine; with -90 it begins as a sine.
    #[parameter(default = 0.0)]
    phase: f64,
    /// Samples per second.
    #[parameter(example = "48 kHz", above = 0)]
    sample_rate: Hertz,
    /// `real`: a chunk is sent when its last sample is due. `fast`: as soon as there is room.
    #[parameter(default = Pace::Real)]
    pace: Pace,
    timing: StreamTiming,
    /// Number of samples in a sweep, and of the next one in the current sweep.
    length: u64,
    at: u64,
    /// Turns at the start of the current sweep, less whole turns.
    begin: f64,
    course: SweepCourse,
    sample: PhantomData<T>,
}

/// Turns since the start of a sweep, as a function of the number `n` of a sample.
#[derive(Debug, Clone, Copy)]
enum SweepCourse {
    /// `n (first + rise n)`.
    Linear { first: f64, rise: f64 },
    /// `scale (exp(growth n) - 1)`.
    Logarithmic { scale: f64, growth: f64 },
}

impl Default for SweepCourse {
    fn default() -> Self {
        SweepCourse::Linear { first: 0.0, rise: 0.0 }
    }
}

impl SweepCourse {
    #[inline(always)]
    fn turns(self, n: f64) -> f64 {
        match self {
            SweepCourse::Linear { first, rise } => n * (first + rise * n),
            SweepCourse::Logarithmic { scale, growth } => scale * (growth * n).exp_m1(),
        }
    }
}

impl<T: SignalSample> SweepSource<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        let (from, to, rate_hz) = (self.from.0, self.to.0, self.sample_rate.0);
        let fix = "a higher frequency would alias to another one";
        check::below_half("from", from, rate_hz, "sample", fix)?;
        check::below_half("to", to, rate_hz, "sample", fix)?;
        self.amplitude.check("amplitude")?;
        check::finite("phase", self.phase)?;
        let length = (self.duration.0 * rate_hz).round();
        // Beyond this, the number of a sample is not exact as a double.
        if !(1.0..=2f64.powi(53)).contains(&length) {
            return Err(Error::new(format!(
                "`duration` is {}: that is {length} samples at {}, and a sweep has from 1 to 2^53",
                self.duration, self.sample_rate
            )));
        }
        self.length = length as u64;
        self.course = match self.law {
            SweepLaw::Logarithmic if from * to <= 0.0 => {
                return Err(Error::new(format!(
                    "`from` is {} and `to` is {}: a logarithmic sweep needs two frequencies above 0, or two \
                     below; use `law = \"linear\"` for others",
                    self.from, self.to
                )));
            }
            SweepLaw::Logarithmic if from != to => {
                let growth = (to / from).ln() / length;
                SweepCourse::Logarithmic { scale: from / rate_hz / growth, growth }
            }
            _ => SweepCourse::Linear { first: from / rate_hz, rise: (to - from) / (2.0 * length * rate_hz) },
        };
        let count = (self.repeat > 0).then(|| self.length.saturating_mul(self.repeat));
        self.timing = timing(self.sample_rate, count, None, self.pace)?;
        Ok(())
    }
}

#[operator]
impl<T: SignalSample> Generator for SweepSource<T> {
    type Sample = T;

    fn timing(&self) -> StreamTiming {
        self.timing
    }

    fn generate(&mut self, samples: &mut [T]) {
        let phase = self.phase % 360.0 / 360.0;
        for y in samples {
            if self.at == self.length {
                self.begin = (self.begin + self.course.turns(self.length as f64)).fract();
                self.at = 0;
            }
            let turns = self.begin + self.course.turns(self.at as f64) + phase;
            let (sin, cos) = ((turns - turns.round()) * TAU).sin_cos();
            *y = T::of(self.amplitude.0 * cos, self.amplitude.0 * sin);
            self.at += 1;
        }
    }
}
