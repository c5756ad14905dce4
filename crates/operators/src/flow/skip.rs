//! A stream without its beginning.

use super::head::ended_early;
use super::{cut_shape, needs_one, samples};
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Input, Operator, Output, Sample, Seconds, Step, operator,
};

#[doc = include_str!("../about/skip.md")]
#[derive(Operator)]
#[operator(
    name = "skip",
    summary = "drops the first samples and passes on all others",
    about = include_str!("../about/skip.md"),
    prepare = Self::prepare,
)]
pub struct SkipSamples<T: Sample> {
    /// Samples in.
    input: Input<Chunk<T>>,
    /// All but the first of them.
    out: Output<Chunk<T>>,
    /// How many samples to drop.
    #[parameter(example = 100)]
    count: Option<u64>,
    /// Length of the stream to drop, rounded to the nearest sample; give either `count` or `duration`.
    #[parameter(min = 0)]
    duration: Option<Seconds>,
    /// Number of samples to drop, once it is known.
    limit: Option<u64>,
    dropped: u64,
    dropped_tags: u64,
    sent: u64,
}

impl<T: Sample> SkipSamples<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        self.limit = self.count;
        needs_one(self.count, self.duration)
    }

    fn pass(&mut self, mut chunk: Chunk<T>, cx: &mut Context) -> Result<(), Error> {
        let limit = match self.limit {
            Some(limit) => limit,
            None => samples(self.count, self.duration, chunk.rate_hz())?,
        };
        self.limit = Some(limit);
        let length = chunk.len();
        let cut = (limit - self.dropped).min(length as u64) as usize;
        self.dropped += cut as u64;
        self.dropped_tags += chunk.tags().iter().filter(|tag| tag.offset < cut).count() as u64;
        if cut == length {
            return Ok(());
        }
        if cut > 0 {
            let shape = cut_shape(chunk.info().shape, length, length - cut, limit)?;
            chunk.edit(cx)?.copy_within(cut.., 0);
            let info = chunk.info_mut();
            info.shape = shape;
            info.tags.retain(|tag| tag.offset >= cut);
            info.tags.iter_mut().for_each(|tag| tag.offset -= cut);
            chunk.truncate(length - cut);
        }
        if chunk.info().start != self.sent {
            chunk.edit(cx)?;
            chunk.info_mut().start = self.sent;
        }
        self.sent += chunk.len() as u64;
        self.out.push(cx, chunk)
    }
}

#[operator]
impl<T: Sample> Operator for SkipSamples<T> {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        Ok(Some(rate_hz))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            self.pass(chunk, cx)?;
        }
        Ok(Step::Wait)
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        ended_early(cx, ending, self.dropped, self.limit.unwrap_or(0), "samples to skip");
        if self.dropped_tags > 0 && ending != Ending::Failed {
            cx.note(format!("{} tags were on skipped samples and were dropped", self.dropped_tags));
        }
        Ok(())
    }
}

/// Drops the first values and passes on all others.
///
/// If the input ends earlier, a note says so.
#[derive(Operator)]
#[operator(name = "skip.value")]
pub struct SkipValues {
    /// Values in.
    input: Input<f64>,
    /// All but the first of them.
    out: Output<f64>,
    /// How many values to drop.
    #[parameter(example = 10)]
    count: u64,
    dropped: u64,
}

#[operator]
impl Operator for SkipValues {
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(value) = self.input.pop(cx) {
            if self.dropped < self.count {
                self.dropped += 1;
            } else {
                self.out.push(cx, value)?;
            }
        }
        Ok(Step::Wait)
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        ended_early(cx, ending, self.dropped, self.count, "values to skip");
        Ok(())
    }
}
