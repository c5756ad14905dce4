//! A rate limiter.

use crate::check;
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Error, Folders, Hertz, Input, Kind, Operator, Output, Pace, Ports, Rate, Registry,
    Sample, Step, Value,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits a stream to a number of samples per second in real time.
///
/// A chunk leaves when its last sample is due, counted from the arrival of the first chunk. A chunk that
/// arrives later leaves at once; the due times of the following chunks do not change. When the run is told to
/// stop, the waiting chunk leaves at once.
pub struct Throttle<T: Sample> {
    /// Chunks in.
    pub input: Input<Chunk<T>>,
    /// The same chunks, delayed.
    pub out: Output<Chunk<T>>,
    rate_hz: f64,
    held: Option<Chunk<T>>,
    /// Arrival of the first chunk.
    began_ns: Option<u64>,
    /// Samples up to the end of the current chunk.
    samples: u64,
}

impl<T: Sample> Throttle<T> {
    /// Limits the stream to `rate_hz` samples per second.
    ///
    /// # Errors
    /// When the rate is not a finite number above 0.
    pub fn new(rate_hz: f64) -> Result<Self, Error> {
        check::positive("rate", rate_hz)?;
        Ok(Throttle {
            input: Input::default(),
            out: Output::default(),
            rate_hz,
            held: None,
            began_ns: None,
            samples: 0,
        })
    }
}

impl<T: Sample> Operator for Throttle<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn rate(&self, _: Option<Pace>) -> Option<Rate> {
        Some(Rate::Samples { rate_hz: self.rate_hz, chunk: None, bytes: size_of::<T>() })
    }

    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        Ok(Some(rate_hz))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.held.is_none() {
            let Some(chunk) = self.input.pop(cx) else { return Ok(Step::Wait) };
            self.samples += chunk.len() as u64;
            self.held = Some(chunk);
        }
        let now_ns = cx.now_ns();
        let began_ns = *self.began_ns.get_or_insert(now_ns);
        let due_ns = began_ns.saturating_add((self.samples as f64 * 1e9 / self.rate_hz).round() as u64);
        if now_ns < due_ns && !cx.is_stopping() {
            return Ok(cx.until(due_ns));
        }
        if let Some(chunk) = self.held.take() {
            self.out.push(cx, chunk)?;
        }
        Ok(Step::Wait)
    }

    fn settable(&self) -> &'static [&'static str] {
        &["rate"]
    }

    /// The new rate applies to the current chunk and all that follow.
    fn set(&mut self, _: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        let Hertz(rate_hz) = value.read(name)?;
        check::positive(name, rate_hz)?;
        let held = self.held.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if let Some(began_ns) = &mut self.began_ns {
            *began_ns += ((self.samples - held) as f64 * 1e9 / self.rate_hz).round() as u64;
        }
        (self.samples, self.rate_hz) = (held, rate_hz);
        Ok(())
    }
}

/// A rate limiter.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ThrottleParameters {
    /// Samples per second on the run's clock.
    rate: Hertz,
}

fn throttle<T: Sample>(p: &ThrottleParameters, _: &Folders) -> Result<Throttle<T>, Error> {
    Throttle::new(p.rate.0)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "limits the sample rate in real time";
    registry.add(Kind::new("throttle", text, "rate = \"48 kHz\"", throttle::<f32>));
    registry.add(Kind::new("throttle.complex", text, "rate = \"256 kHz\"", throttle::<Complex<f32>>));
}
