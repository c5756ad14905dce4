//! A switch in a stream.

use super::cut_shape;
use crate::squelch::Closed;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Input, Operator, Output, Sample, Step, Tag, Value, operator,
};
use std::collections::VecDeque;

/// Changes that may wait for their samples.
const WAITING: usize = 1000;

#[doc = include_str!("../about/valve.md")]
#[derive(Operator)]
#[operator(
    summary = "passes a stream on while it is open",
    about = include_str!("../about/valve.md"),
)]
pub struct Valve<T: Sample> {
    /// Samples in.
    input: Input<Chunk<T>>,
    /// Samples that were passed on.
    out: Output<Chunk<T>>,
    /// Whether samples pass.
    #[parameter(default = true, settable)]
    open: bool,
    /// Treatment of samples while closed. `mute`: replaced by 0. `gate`: dropped.
    #[parameter(default)]
    closed: Closed,
    /// Changes at samples that are still to come, by rising sample.
    changes: VecDeque<(u64, bool)>,
    /// State at the last sample; `None` before the first one.
    last: Option<bool>,
    received: u64,
    sent: u64,
}

impl<T: Sample> Valve<T> {
    /// Whether a chunk of this length passes as it is.
    fn is_plain(&self, length: usize, start: u64) -> bool {
        let unchanged = self.last.is_none_or(|last| last) && self.open;
        let before_next = self.changes.front().is_none_or(|&(at, _)| at >= self.received + length as u64);
        unchanged && before_next && (self.closed == Closed::Mute || start == self.sent)
    }

    /// Mutes samples, or moves those that are passed on to the start of the chunk. Returns their number and
    /// their tags.
    fn filter(&mut self, samples: &mut [T], tags: &[Tag]) -> (usize, Vec<Tag>) {
        let (mut at, mut kept, mut new) = (0, 0, Vec::new());
        while at < samples.len() {
            let position = self.received + at as u64;
            while let Some((_, open)) = self.changes.pop_front_if(|&mut (sample, _)| sample <= position) {
                self.open = open;
            }
            let next = self.changes.front().map_or(u64::MAX, |&(sample, _)| sample - self.received);
            let end = next.min(samples.len() as u64) as usize;
            let changed = self.last.replace(self.open).is_some_and(|last| last != self.open);
            if self.closed == Closed::Mute && !self.open {
                samples[at..end].fill(T::zeroed());
            }
            if self.closed == Closed::Mute || self.open {
                if changed {
                    let value = match self.closed {
                        Closed::Mute => self.open.into(),
                        Closed::Gate => (position as i64).into(),
                    };
                    new.push(Tag { offset: kept, key: "valve".into(), value });
                }
                let within = tags.iter().filter(|tag| (at..end).contains(&tag.offset));
                new.extend(within.map(|tag| Tag { offset: tag.offset - at + kept, ..tag.clone() }));
                samples.copy_within(at..end, kept);
                kept += end - at;
            }
            at = end;
        }
        (kept, new)
    }

    fn pass(&mut self, mut chunk: Chunk<T>, cx: &mut Context) -> Result<(), Error> {
        let length = chunk.len();
        if self.is_plain(length, chunk.info().start) {
            self.last = Some(true);
        } else {
            chunk.edit(cx)?;
            let tags = std::mem::take(&mut chunk.info_mut().tags);
            let (kept, tags) = self.filter(chunk.edit(cx)?, &tags);
            chunk.truncate(kept);
            let shape = cut_shape(chunk.info().shape, length, kept, self.received)?;
            let info = chunk.info_mut();
            (info.tags, info.shape) = (tags, shape);
            if self.closed == Closed::Gate {
                info.start = self.sent;
            }
        }
        self.received += length as u64;
        self.sent += chunk.len() as u64;
        if chunk.is_empty() { Ok(()) } else { self.out.push(cx, chunk) }
    }
}

#[operator]
impl<T: Sample> Operator for Valve<T> {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        Ok(Some(rate_hz))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            self.pass(chunk, cx)?;
        }
        Ok(Step::Wait)
    }

    fn set_at(&mut self, _: &mut Context, name: &str, value: &Value, sample: u64) -> Result<(), Error> {
        let open = value.read(name)?;
        if sample < self.received {
            let next = self.received;
            return Err(Error::new(format!("sample {sample} has gone by: sample {next} comes next")));
        }
        if self.changes.len() >= WAITING {
            return Err(Error::new(format!(
                "{WAITING} changes wait for their samples already: wait for some of them"
            )));
        }
        let after = self.changes.partition_point(|&(other, _)| other <= sample);
        self.changes.insert(after, (sample, open));
        Ok(())
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if !self.changes.is_empty() && ending != Ending::Failed {
            let (left, received) = (self.changes.len(), self.received);
            cx.note(format!(
                "{left} changes of `open` waited for samples that did not come: there were {received}"
            ));
        }
        Ok(())
    }
}

/// Passes values on while it is open, and drops them while it is closed.
#[derive(Operator)]
#[operator(name = "valve.value")]
pub struct ValueValve {
    /// Values in.
    input: Input<f64>,
    /// Values that were passed on.
    out: Output<f64>,
    /// Whether values pass.
    #[parameter(default = true, settable)]
    open: bool,
}

#[operator]
impl Operator for ValueValve {
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(value) = self.input.pop(cx)
            && self.open
        {
            self.out.push(cx, value)?;
        }
        Ok(Step::Wait)
    }
}
