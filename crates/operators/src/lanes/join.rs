//! Several streams into one.

use super::check_count;
use onbeat_runtime::{Chunk, Context, Error, Input, Operator, Output, Ports, Stamp, Step, Tag};
use std::marker::PhantomData;

/// How streams become one.
pub trait Join: Send + 'static {
    /// Samples that come out for one sample of each of `inputs` streams.
    fn out(inputs: usize) -> usize;

    /// Where in the output a sample of a stream is, or where what it is part of is.
    fn place(sample: usize, lane: usize, inputs: usize) -> usize;

    /// Brings the samples of stream `lane` into the output, in which those of earlier ones are.
    fn put(out: &mut [f32], samples: &[f32], lane: usize, inputs: usize);
}

/// Output `k` is the sum of the samples `k` of all streams, added in their order.
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

/// Joins streams sample by sample, wherever their chunks begin and end.
///
/// All must have the same sample rate. Tags of all stay on their samples; on one sample in the order of the
/// streams. It ends with the shortest one, and a note says which that was. A sample that is not finite goes
/// through as it is.
pub struct Joined<J: Join> {
    /// The streams: `in0`, `in1`, ...
    pub inputs: Vec<Input<Chunk<f32>>>,
    /// What they become.
    pub out: Output<Chunk<f32>>,
    held: Vec<Option<Held>>,
    rate_hz: Option<f64>,
    /// Samples of each stream that were joined.
    joined: u64,
    how: PhantomData<J>,
}

/// A chunk in hand, how much of it is used up, and the stamp that it came with.
struct Held {
    chunk: Chunk<f32>,
    used: usize,
    stamp: Stamp,
}

impl<J: Join> Joined<J> {
    /// Joins so many streams.
    ///
    /// # Errors
    /// When it is not from 1 to 64.
    pub fn new(inputs: usize) -> Result<Self, Error> {
        check_count("inputs", inputs)?;
        Ok(Joined {
            inputs: (0..inputs).map(|_| Input::default()).collect(),
            out: Output::default(),
            held: (0..inputs).map(|_| None).collect(),
            rate_hz: None,
            joined: 0,
            how: PhantomData,
        })
    }

    /// Makes sure that a stream has samples in hand. Says whether it has.
    fn take(&mut self, lane: usize, cx: &mut Context) -> Result<bool, Error> {
        let held = &mut self.held[lane];
        while held.as_ref().is_none_or(|held| held.used == held.chunk.len()) {
            *held = self.inputs[lane].pop_stamped(cx).map(|(chunk, stamp)| Held { chunk, used: 0, stamp });
            let Some(new) = held else { return Ok(false) };
            let rate_hz = new.chunk.rate_hz();
            let known_hz = *self.rate_hz.get_or_insert(rate_hz);
            if rate_hz != known_hz {
                return Err(Error::new(format!(
                    "the sample rate of `in{lane}` is {rate_hz} Hz, and {known_hz} Hz came first: only streams \
                     of one rate can be joined; resample one of them"
                )));
            }
        }
        Ok(true)
    }

    /// Joins as many samples as all have, up to a chunk. Says whether there was a chunk.
    fn join(&mut self, cx: &mut Context) -> Result<bool, Error> {
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(false) };
        let inputs = self.held.len();
        let per = J::out(inputs);
        let rest = |held: &Held| held.chunk.len() - held.used;
        let count = self.held.iter().flatten().map(rest).min().unwrap_or(0).min(chunk.capacity() / per);
        if count == 0 {
            return Err(Error::new(format!(
                "the quantum of its edge has room for {} samples, and it makes {per} at a time: raise it to {} \
                 bytes or more",
                chunk.capacity(),
                per * size_of::<f32>()
            )));
        }
        chunk.truncate(count * per);
        let out = chunk.edit_unique().expect("a new chunk is not shared");
        let mut stamp: Option<Stamp> = None;
        let mut tags = Vec::new();
        for (lane, held) in self.held.iter_mut().enumerate() {
            let Some(held) = held else { continue };
            let now = held.used..held.used + count;
            J::put(out, &held.chunk[now.clone()], lane, inputs);
            let on_them = held.chunk.tags().iter().filter(|tag| now.contains(&tag.offset));
            tags.extend(
                on_them
                    .map(|tag| Tag { offset: J::place(tag.offset - now.start, lane, inputs), ..tag.clone() }),
            );
            stamp = Some(stamp.map_or(held.stamp, |stamp| stamp.older(held.stamp)));
            held.used = now.end;
        }
        tags.sort_by_key(|tag| tag.offset);
        let info = chunk.info_mut();
        info.start = self.joined * per as u64;
        info.rate_hz = self.rate_hz.unwrap_or(0.0) * per as f64;
        info.tags = tags;
        self.joined += count as u64;
        cx.set_stamp(stamp.unwrap_or_default());
        self.out.push(cx, chunk)?;
        Ok(true)
    }

    /// Some streams have nothing in hand: waits for them, or ends.
    fn wait(&mut self, cx: &mut Context, has: &[bool]) -> Step {
        let ended = |lane: usize| !has[lane] && self.inputs[lane].is_ended(cx);
        // One that has nothing may have ended as well without saying so yet.
        let open = (0..has.len()).any(|lane| !has[lane] && !ended(lane));
        if let Some(first) = (0..has.len()).find(|lane| ended(*lane))
            && !open
        {
            if has.contains(&true) {
                let text = "what other streams have beyond is not read";
                cx.note(format!("`in{first}` ended after {} samples; {text}", self.joined));
            }
            return Step::Done;
        }
        // Those in hand need not have a message for the next step.
        for (input, _) in self.inputs.iter().zip(has).filter(|(_, has)| **has) {
            input.keep(cx);
        }
        Step::Wait
    }
}

impl<J: Join> Operator for Joined<J> {
    fn ports(&mut self, p: &mut Ports) {
        for (lane, input) in self.inputs.iter_mut().enumerate() {
            p.input(&format!("in{lane}"), input);
        }
        p.output("out", &mut self.out).fresh();
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        loop {
            let mut has = [false; 64];
            let lanes = self.held.len();
            for (lane, has) in has[..lanes].iter_mut().enumerate() {
                *has = self.take(lane, cx)?;
            }
            if has[..lanes].contains(&false) {
                return Ok(self.wait(cx, &has[..lanes]));
            }
            if self.out.room(cx) == 0 || !self.join(cx)? {
                return Ok(Step::Again);
            }
        }
    }
}
