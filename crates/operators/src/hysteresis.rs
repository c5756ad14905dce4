//! Turns a signal into on and off.

use crate::check;
use crate::found::time_ns;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Input, Kind, Operator, Output, Registry, Stamp, Step, operator,
};
use std::collections::VecDeque;

/// Turns a signal into 1 and 0, with hysteresis: output `k` is 1 from a sample at or above `on` until one
/// below `off`, and 0 otherwise.
///
/// The stream begins with 0. Tags stay on their samples, and chunks are changed in place. The output `events`
/// sends a 1 for each change to 1 and a 0 for each change to 0; the source time is that of the first sample
/// of the new state, its position divided by the sample rate. A sample that is NaN does not change the
/// state; a note gives the number of such samples.
#[derive(Operator)]
#[operator(name = "threshold", summary = "1 above a threshold, else 0, with hysteresis", prepare = Self::check)]
pub struct Hysteresis {
    /// Samples to compare.
    pub input: Input<Chunk<f32>>,
    /// 1 or 0 for each sample.
    pub out: Output<Chunk<f32>>,
    /// 1 or 0 for each change.
    #[port(optional)]
    pub events: Output<f64>,
    /// Lowest sample that turns the output to 1.
    #[parameter(settable, example = 0.5)]
    on: f64,
    /// Lowest sample that keeps the output at 1; without it, the same as `on`. It must not be above `on`.
    #[parameter(settable)]
    off: Option<f64>,
    is_on: bool,
    nan: u64,
    /// Changes that were not sent, each with its position in the stream.
    changes: VecDeque<(u64, bool)>,
    stamp: Stamp,
    rate_hz: f64,
}

impl Hysteresis {
    fn check(&mut self) -> Result<(), Error> {
        check::finite("on", self.on)?;
        let Some(off) = self.off else { return Ok(()) };
        check::finite("off", off)?;
        if off <= self.on {
            return Ok(());
        }
        Err(Error::new(format!("`off` is {off}: it must not be above `on`, which is {}", self.on)))
    }

    fn compare(&mut self, samples: &mut [f32], start: u64) {
        let (on, off) = (self.on, self.off.unwrap_or(self.on));
        for (at, sample) in samples.iter_mut().enumerate() {
            let x = f64::from(*sample);
            let is_on = if self.is_on { x >= off || x.is_nan() } else { x >= on };
            self.nan += u64::from(x.is_nan());
            if is_on != std::mem::replace(&mut self.is_on, is_on) && self.events.is_connected() {
                self.changes.push_back((start + at as u64, is_on));
            }
            *sample = f32::from(u8::from(is_on));
        }
    }

    /// Sends changes. Returns whether all were sent.
    fn send(&mut self, cx: &mut Context) -> Result<bool, Error> {
        while let Some(&(position, is_on)) = self.changes.front() {
            if self.events.room(cx) == 0 {
                return Ok(false);
            }
            let mut stamp = self.stamp;
            if self.rate_hz > 0.0 {
                stamp.time_ns = time_ns(position, self.rate_hz);
            }
            cx.set_stamp(stamp);
            self.events.push(cx, f64::from(u8::from(is_on)))?;
            self.changes.pop_front();
        }
        Ok(true)
    }
}

#[operator]
impl Operator for Hysteresis {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        Ok(Some(rate_hz))
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        (self.is_on, self.nan) = (false, 0);
        self.changes.clear();
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if !self.send(cx)? {
            return Ok(Step::Again);
        }
        let Some(mut chunk) = self.input.pop(cx) else { return Ok(Step::Wait) };
        (self.stamp, self.rate_hz) = (cx.stamp(), chunk.rate_hz());
        let start = chunk.info().start;
        self.compare(chunk.edit(cx)?, start);
        self.out.push(cx, chunk)?;
        let is_sent = self.send(cx)?;
        Ok(if is_sent && !self.input.is_ended(cx) { Step::Wait } else { Step::Again })
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if self.nan > 0 && ending != Ending::Failed {
            cx.note(format!("{} samples were not a number and did not change the state", self.nan));
        }
        Ok(())
    }
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<Hysteresis>());
}
