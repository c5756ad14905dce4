//! A delay line.

use crate::check;
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Error, Folders, Input, Kind, Operator, Output, Ports, Registry, Sample, Seconds, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Length of a delay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DelayLength {
    /// In samples.
    Samples(u64),
    /// In seconds, rounded to the nearest sample.
    Seconds(f64),
}

/// Most zeros that are still sent after the run was stopped: they take only a moment.
const AT_THE_END: u64 = 1 << 26;

#[doc = include_str!("about/delay.md")]
pub struct Delay<T: Sample> {
    /// Samples in.
    pub input: Input<Chunk<T>>,
    /// The same samples, delayed.
    pub out: Output<Chunk<T>>,
    lag: DelayLength,
    /// Zeros left to send; `None` before the first chunk.
    zeros: Option<u64>,
    held: Option<Chunk<T>>,
    sent: u64,
}

impl<T: Sample> Delay<T> {
    /// Creates a delay.
    ///
    /// # Errors
    /// When a time is negative, not finite or above 10⁶ s.
    pub fn new(lag: DelayLength) -> Result<Self, Error> {
        if let DelayLength::Seconds(time_s) = lag {
            check::within("time", time_s, 0.0, 1e6, "a delay must not be negative")?;
        }
        let (input, out) = (Input::default(), Output::default());
        Ok(Delay { input, out, lag, zeros: None, held: None, sent: 0 })
    }

    fn begin(&self, rate_hz: f64) -> Result<u64, Error> {
        match self.lag {
            DelayLength::Samples(count) => Ok(count),
            DelayLength::Seconds(time_s) => {
                check::rate(rate_hz)?;
                Ok((time_s * rate_hz).round() as u64)
            }
        }
    }

    fn send(&mut self, cx: &mut Context, mut chunk: Chunk<T>) -> Result<(), Error> {
        if chunk.info().start != self.sent {
            chunk.edit(cx)?;
            chunk.info_mut().start = self.sent;
        }
        self.sent += chunk.len() as u64;
        self.out.push(cx, chunk)
    }
}

impl<T: Sample> Operator for Delay<T> {
    fn ports(&mut self, p: &mut Ports) {
        // The first chunk is kept while zeros are sent.
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        Ok(Some(rate_hz))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.held.is_none() {
            self.held = self.input.pop(cx);
        }
        let Some(chunk) = &self.held else { return Ok(Step::Wait) };
        let rate_hz = chunk.rate_hz();
        let left = match self.zeros {
            Some(left) => left,
            None => self.begin(rate_hz)?,
        };
        self.zeros = Some(left);
        if left > AT_THE_END && cx.is_stopping() {
            cx.note(format!(
                "the run was stopped {left} samples before the end of the delay: no input was passed on"
            ));
            return Ok(Step::Done);
        }
        if left > 0 {
            let Some(mut zeros) = self.out.chunk(cx) else { return Ok(Step::Wait) };
            let count = left.min(zeros.capacity() as u64);
            zeros.truncate(count as usize);
            zeros.edit_unique().expect("a new chunk is not shared").fill(T::zeroed());
            let info = zeros.info_mut();
            (info.start, info.rate_hz) = (self.sent, rate_hz);
            self.zeros = Some(left - count);
            self.send(cx, zeros)?;
            return Ok(Step::Again);
        }
        if let Some(chunk) = self.held.take() {
            self.send(cx, chunk)?;
        }
        Ok(if self.input.is_ended(cx) { Step::Done } else { Step::Wait })
    }
}

/// The length of a delay, in samples or as a time.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DelayParameters {
    /// Delay in samples.
    #[serde(default)]
    samples: Option<u64>,
    /// Delay as a time, rounded to the nearest sample; give either `samples` or `time`.
    #[serde(default)]
    time: Option<Seconds>,
}

fn make<T: Sample>(p: &DelayParameters, _: &Folders) -> Result<Delay<T>, Error> {
    match (p.samples, p.time) {
        (Some(count), None) => Delay::new(DelayLength::Samples(count)),
        (None, Some(Seconds(time_s))) => Delay::new(DelayLength::Seconds(time_s)),
        (None, None) => Err(Error::new("needs `samples` or `time`: give one of them")),
        (Some(_), Some(_)) => Err(Error::new("has both `samples` and `time`: give one of them")),
    }
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "delays a stream by a number of samples or a time";
    registry
        .add(Kind::new("delay", text, "samples = 100", make::<f32>).about(include_str!("about/delay.md")));
    registry.add(Kind::new("delay.complex", text, "time = \"1 ms\"", make::<Complex<f32>>));
}
