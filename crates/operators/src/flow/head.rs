//! The beginning of a stream.

use super::{cut_shape, needs_one, samples};
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Input, Operator, Output, Sample, Seconds, Step, operator,
};

/// Notes that the input ended early.
pub(super) fn ended_early(cx: &mut Context, ending: Ending, seen: u64, count: u64, what: &str) {
    if ending == Ending::Ended && seen < count {
        cx.note(format!("the input ended after {seen} of {count} {what}"));
    }
}

#[doc = include_str!("../about/head.md")]
#[derive(Operator)]
#[operator(
    name = "head",
    summary = "passes on the first samples, and ends",
    about = include_str!("../about/head.md"),
    prepare = Self::prepare,
)]
pub struct HeadSamples<T: Sample> {
    /// Samples in.
    input: Input<Chunk<T>>,
    /// The first of them.
    out: Output<Chunk<T>>,
    /// How many samples to pass on.
    #[parameter]
    count: Option<u64>,
    /// Length of the stream to pass on, rounded to the nearest sample; give either `count` or `duration`.
    #[parameter(min = 0, example = "1 s")]
    duration: Option<Seconds>,
    /// Number of samples to pass on, once it is known.
    limit: Option<u64>,
    passed: u64,
}

impl<T: Sample> HeadSamples<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        self.limit = self.count;
        needs_one(self.count, self.duration)
    }

    /// Passes a chunk on, or its first samples. Returns whether all samples have been passed on.
    fn pass(&mut self, mut chunk: Chunk<T>, cx: &mut Context) -> Result<bool, Error> {
        let limit = match self.limit {
            Some(limit) => limit,
            None => samples(self.count, self.duration, chunk.rate_hz())?,
        };
        self.limit = Some(limit);
        let (length, left) = (chunk.len(), limit - self.passed);
        let kept = left.min(length as u64) as usize;
        if kept < length && kept > 0 {
            let shape = cut_shape(chunk.info().shape, length, kept, limit)?;
            chunk.edit(cx)?;
            chunk.truncate(kept);
            chunk.info_mut().shape = shape;
        }
        self.passed += kept as u64;
        if kept > 0 {
            self.out.push(cx, chunk)?;
        }
        Ok(self.passed == limit)
    }
}

#[operator]
impl<T: Sample> Operator for HeadSamples<T> {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        Ok(Some(rate_hz))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx)
            && self.pass(chunk, cx)?
        {
            return Ok(Step::Done);
        }
        Ok(Step::Wait)
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        ended_early(cx, ending, self.passed, self.limit.unwrap_or(0), "samples");
        Ok(())
    }
}

/// Passes on the first values, and ends.
///
/// Operators further up that feed nothing else end with it. If the input ends earlier, a note says so.
#[derive(Operator)]
#[operator(name = "head.value")]
pub struct HeadValues {
    /// Values in.
    input: Input<f64>,
    /// The first of them.
    out: Output<f64>,
    /// How many values to pass on.
    #[parameter(example = 100)]
    count: u64,
    passed: u64,
}

#[operator]
impl Operator for HeadValues {
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(value) = self.input.pop(cx)
            && self.passed < self.count
        {
            self.passed += 1;
            self.out.push(cx, value)?;
        }
        Ok(if self.passed == self.count { Step::Done } else { Step::Wait })
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        ended_early(cx, ending, self.passed, self.count, "values");
        Ok(())
    }
}
