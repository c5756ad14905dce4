//! Joins several streams into one.

use super::{Aligned, check_count};
use onbeat_runtime::{Chunk, Context, Error, Input, Operator, Output, Ports, Step, Tag};
use std::marker::PhantomData;

/// A way to join streams.
pub trait Join: Send + 'static {
    /// Samples sent for one sample of each of `inputs` streams.
    fn out(inputs: usize) -> usize;

    /// Output position of a sample, or of the result that contains it.
    fn place(sample: usize, lane: usize, inputs: usize) -> usize;

    /// Adds the samples of stream `lane` to the output, which already has those of earlier streams.
    fn put(out: &mut [f32], samples: &[f32], lane: usize, inputs: usize);
}

/// Output `k` is the sum of sample `k` of all streams, added in their order.
pub struct Sum;

impl Join for Sum {
    fn out(_: usize) -> usize {
        1
    }
    fn place(sample: usize, _: usize, _: usize) -> usize {
        sample
    }
    fn put(out: &mut [f32], samples: &[f32], lane: usize, _: usize) {
        if lane == 0 {
            out.copy_from_slice(samples);
        } else {
            out.iter_mut().zip(samples).for_each(|(y, x)| *y += x);
        }
    }
}

/// Output `k n + l` is sample `k` of stream `l` of `n`; the rate is `n` times as high.
pub struct Interleave;

impl Join for Interleave {
    fn out(inputs: usize) -> usize {
        inputs
    }
    fn place(sample: usize, lane: usize, inputs: usize) -> usize {
        sample * inputs + lane
    }
    fn put(out: &mut [f32], samples: &[f32], lane: usize, inputs: usize) {
        out[lane..].iter_mut().step_by(inputs).zip(samples).for_each(|(y, x)| *y = *x);
    }
}

/// Joins streams sample by sample, independent of chunk borders.
///
/// All streams must have the same sample rate. Tags of all streams stay on their samples; on the same sample,
/// they are in the order of the streams. The operator ends with the shortest stream, and a note names it. A
/// sample that is not finite is joined like any other.
pub struct Joined<J: Join> {
    /// The input streams: `in0`, `in1`, ...
    pub inputs: Vec<Input<Chunk<f32>>>,
    /// The joined stream.
    pub out: Output<Chunk<f32>>,
    streams: Aligned<f32>,
    how: PhantomData<J>,
}

impl<J: Join> Joined<J> {
    /// Joins this many streams.
    ///
    /// # Errors
    /// When it is not from 1 to 64.
    pub fn new(inputs: usize) -> Result<Self, Error> {
        check_count("inputs", inputs as u64)?;
        Ok(Joined {
            inputs: (0..inputs).map(|_| Input::default()).collect(),
            out: Output::default(),
            streams: Aligned::new(inputs),
            how: PhantomData,
        })
    }

    /// Joins up to `most` samples and up to a chunk of what all streams have. Returns whether there was a
    /// chunk.
    fn join(&mut self, most: usize, cx: &mut Context) -> Result<bool, Error> {
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(false) };
        let (inputs, streams) = (self.inputs.len(), &mut self.streams);
        let per = J::out(inputs);
        let count = most.min(chunk.capacity() / per);
        if count == 0 {
            return Err(Error::new(format!(
                "the quantum of its edge has room for {} samples, but it sends {per} at a time: raise it to \
                 {} bytes or more",
                chunk.capacity(),
                per * size_of::<f32>()
            )));
        }
        chunk.truncate(count * per);
        let out = chunk.edit_unique().expect("a new chunk is not shared");
        let mut tags = Vec::new();
        for lane in 0..inputs {
            J::put(out, streams.samples(lane, count), lane, inputs);
            let moved = |(at, tag): (usize, &Tag)| Tag { offset: J::place(at, lane, inputs), ..tag.clone() };
            tags.extend(streams.tags(lane, count).map(moved));
        }
        tags.sort_by_key(|tag| tag.offset);
        let info = chunk.info_mut();
        info.start = streams.taken() * per as u64;
        info.rate_hz = streams.rate_hz() * per as f64;
        info.tags = tags;
        cx.set_stamp(streams.stamp());
        streams.consume(count);
        self.out.push(cx, chunk)?;
        Ok(true)
    }
}

impl<J: Join> Operator for Joined<J> {
    fn ports(&mut self, p: &mut Ports) {
        for (lane, input) in self.inputs.iter_mut().enumerate() {
            p.input(&format!("in{lane}"), input);
        }
        p.output("out", &mut self.out).fresh();
    }

    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        Ok(Some(rate_hz))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        loop {
            let Some(most) = self.streams.take(&mut self.inputs, cx)? else {
                return Ok(self.streams.wait(&self.inputs, cx));
            };
            if self.out.room(cx) == 0 || !self.join(most, cx)? {
                return Ok(Step::Again);
            }
        }
    }
}
