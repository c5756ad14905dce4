//! Splits one stream into several.

use super::check_count;
use onbeat_runtime::{Chunk, Context, Error, Input, Operator, Output, Ports, Stamp, Step, Tag};

/// Sends sample `k n + l` as sample `k` of stream `l` of `n`, at the rate divided by `n`. Tags stay on their
/// samples. If the stream ends within a round, the last streams are one sample shorter.
pub struct Deinterleave {
    /// The stream to split.
    pub input: Input<Chunk<f32>>,
    /// The parts: `out0`, `out1`, ...
    pub outputs: Vec<Output<Chunk<f32>>>,
    held: Option<(Chunk<f32>, usize)>,
    /// Chunks for the outputs during a step.
    parts: Vec<Chunk<f32>>,
    stamp: Stamp,
    received: u64,
    sent: Vec<u64>,
}

impl Deinterleave {
    /// Creates this many streams.
    ///
    /// # Errors
    /// When it is not from 1 to 64.
    pub fn new(outputs: usize) -> Result<Self, Error> {
        check_count("outputs", outputs as u64)?;
        Ok(Deinterleave {
            input: Input::default(),
            outputs: (0..outputs).map(|_| Output::default()).collect(),
            held: None,
            parts: Vec::with_capacity(outputs),
            stamp: Stamp::default(),
            received: 0,
            sent: vec![0; outputs],
        })
    }

    /// Sends the next samples of the current chunk, up to a chunk per stream. Returns whether there were
    /// chunks.
    fn send(&mut self, cx: &mut Context) -> Result<bool, Error> {
        let Some((chunk, used)) = &mut self.held else { return Ok(true) };
        let lanes = self.outputs.len();
        // Takes chunks for all outputs or for none: a chunk held while the store is empty would be missing
        // elsewhere.
        self.parts.clear();
        for output in &self.outputs {
            let Some(part) = output.chunk(cx) else {
                self.parts.clear();
                return Ok(false);
            };
            self.parts.push(part);
        }
        let room = self.parts.iter().map(Chunk::capacity).min().unwrap_or(0);
        let now = *used..chunk.len().min(*used + room * lanes);
        cx.set_stamp(self.stamp);
        for (lane, (output, mut part)) in self.outputs.iter_mut().zip(self.parts.drain(..)).enumerate() {
            // First of these samples that belongs to this stream.
            let begin = (lane + lanes - (self.received % lanes as u64) as usize) % lanes;
            let samples = chunk[now.clone()].iter().skip(begin).step_by(lanes);
            if samples.len() == 0 {
                continue;
            }
            part.truncate(samples.len());
            let to = part.edit_unique().expect("a new chunk is not shared");
            to.iter_mut().zip(samples).for_each(|(y, x)| *y = *x);
            let info = part.info_mut();
            info.start = self.sent[lane];
            info.rate_hz = chunk.rate_hz() / lanes as f64;
            let mine = |tag: &&Tag| {
                now.contains(&tag.offset)
                    && tag.offset - now.start >= begin
                    && (tag.offset - now.start - begin).is_multiple_of(lanes)
            };
            let place = |tag: &Tag| Tag { offset: (tag.offset - now.start - begin) / lanes, ..tag.clone() };
            info.tags.extend(chunk.tags().iter().filter(mine).map(place));
            self.sent[lane] += part.len() as u64;
            output.push(cx, part)?;
        }
        self.received += now.len() as u64;
        *used = now.end;
        if *used == chunk.len() {
            self.held = None;
        }
        Ok(true)
    }
}

impl Operator for Deinterleave {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        for (lane, output) in self.outputs.iter_mut().enumerate() {
            p.output(&format!("out{lane}"), output).fresh();
        }
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.held.is_none() {
            let Some(chunk) = self.input.pop(cx) else { return Ok(Step::Wait) };
            self.stamp = cx.stamp();
            self.held = Some((chunk, 0));
        }
        if !self.send(cx)? {
            return Ok(Step::Wait);
        }
        Ok(if self.held.is_some() || self.input.is_ended(cx) { Step::Again } else { Step::Wait })
    }
}
