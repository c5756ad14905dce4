//! A stream with silence after it.

use super::{needs_one, samples};
use crate::npy::shape_text;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Input, Operator, Output, Sample, Seconds, Stamp, Step, operator,
};

#[doc = include_str!("../about/pad.md")]
#[derive(Operator)]
#[operator(
    name = "pad",
    summary = "adds zeros after the end of a stream",
    about = include_str!("../about/pad.md"),
    prepare = Self::prepare,
)]
pub struct Pad<T: Sample> {
    /// Samples in.
    input: Input<Chunk<T>>,
    /// The samples, then the zeros.
    out: Output<Chunk<T>>,
    /// Number of zeros.
    #[parameter]
    count: Option<u64>,
    /// Length of the zeros; give either `count` or `duration`.
    #[parameter(min = 0, example = "1 s")]
    duration: Option<Seconds>,
    /// Zeros to send after the stream, once this is known.
    left: Option<u64>,
    /// Sample rate and end of the stream so far.
    rate_hz: f64,
    end: u64,
    stamp: Option<Stamp>,
}

impl<T: Sample> Pad<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        self.left = self.count;
        needs_one(self.count, self.duration)
    }

    fn pass(&mut self, chunk: Chunk<T>, cx: &mut Context) -> Result<(), Error> {
        let info = chunk.info();
        if info.shape[0] > 0 {
            return Err(Error::new(format!(
                "its input has chunks of shape {}, and zeros have none: it takes plain samples only",
                shape_text(&info.shape)
            )));
        }
        if self.left.is_none() {
            self.left = Some(samples(self.count, self.duration, info.rate_hz)?);
        }
        (self.rate_hz, self.end) = (info.rate_hz, info.start + chunk.len() as u64);
        self.stamp = Some(cx.stamp().without_due());
        self.out.push(cx, chunk)
    }
}

#[operator]
impl<T: Sample> Operator for Pad<T> {
    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        Ok(Some(rate_hz))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            self.pass(chunk, cx)?;
        }
        if !self.input.is_ended(cx) {
            return Ok(Step::Wait);
        }
        let left = self.left.unwrap_or(0);
        if left == 0 || cx.is_stopping() {
            return Ok(Step::Done);
        }
        let Some(mut zeros) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let count = left.min(zeros.capacity() as u64);
        zeros.truncate(count as usize);
        zeros.edit_unique().expect("a new chunk is not shared").fill(T::zeroed());
        let info = zeros.info_mut();
        (info.start, info.rate_hz) = (self.end, self.rate_hz);
        if let Some(stamp) = self.stamp {
            cx.set_stamp(stamp);
        }
        (self.left, self.end) = (Some(left - count), self.end + count);
        self.out.push(cx, zeros)?;
        Ok(Step::Again)
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if ending != Ending::Ended {
            return Ok(());
        }
        let note = match self.left {
            Some(0) => return Ok(()),
            Some(left) => format!("the run was stopped {left} zeros before the end of the padding"),
            None => "no zeros were added: no chunk came, and so the sample rate is not known".to_string(),
        };
        cx.note(note);
        Ok(())
    }
}
