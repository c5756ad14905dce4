//! Spread and gather for lanes that remember samples: the spread hands out blocks of chunks, each after its
//! history, and the gather takes them back in order. See [`lanes`](crate::operator::lanes).

use super::spread::SpreadSizes;
use super::trial::LaneTrial;
use crate::operator::chunk::{Chunk, Tag};
use crate::operator::context::{Context, Lane};
use crate::operator::lanes::{LaneNeeds, Marks};
use crate::operator::message::{Message, Stamp};
use crate::operator::ports::Merge;
use crate::operator::{Ending, Operator, Step};
use crate::{Error, Input, Output, Ports};
use std::collections::VecDeque;

/// Samples of a block, for each sample of history before it. This bounds the work that is done twice.
const WORTH: u64 = 32;

/// Fewest samples of a block for each sample of history. Otherwise the stream stays in one lane.
const LEAST: u64 = 4;

/// Fewest chunks in a block.
const FEWEST: usize = 2;

pub(super) struct BlockSpread<M: Message> {
    input: Input<M>,
    outs: Vec<Output<M>>,
    needs: LaneNeeds,
    /// Decides whether lanes other than the first are used; `None` if they always are.
    trial: Option<LaneTrial>,
    /// Messages that the queue before each lane holds.
    capacity: usize,
    /// Samples before each lane, once it is known.
    memory: Memory,
    tail: Tail,
    /// Lane that gets the stream now.
    lane: usize,
    /// Number of the next sample after the last one that each lane has got.
    until: Vec<u64>,
    /// Messages left in this block.
    left: usize,
    rate_hz: f64,
    /// What comes before the chunk in hand.
    pending: Option<LaneChange>,
    has_ended: bool,
}

/// What the lanes need to continue the stream.
#[derive(Debug, Clone, Copy)]
enum Memory {
    Unknown,
    Samples(usize),
    /// A number of samples that no block is worth.
    TooLong(usize),
}

/// Change to another lane.
struct LaneChange {
    lane: usize,
    /// Whether the block in the lane before has been ended.
    is_ended: bool,
    /// Samples of history that have been sent; `None` before the first chunk.
    sent: Option<usize>,
    chunk: Chunk<u8>,
    stamp: Stamp,
}

/// The last samples of the stream.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    tags: VecDeque<(u64, Tag)>,
    sample_bytes: usize,
    /// Number of the next sample.
    end: u64,
}

impl Tail {
    /// Keeps the last `memory` samples of the stream, which continues with this chunk.
    fn extend(&mut self, chunk: &Chunk<u8>, memory: usize) {
        let most = memory * self.sample_bytes;
        if chunk.len() >= most {
            self.bytes.clear();
        } else {
            let kept = self.bytes.len().min(most - chunk.len());
            self.bytes.drain(..self.bytes.len() - kept);
        }
        self.bytes.extend_from_slice(&chunk[chunk.len() - chunk.len().min(most)..]);
        self.tags.extend(chunk.tags().iter().map(|tag| (self.end + tag.offset as u64, tag.clone())));
        self.end += (chunk.len() / self.sample_bytes) as u64;
        let begin = self.begin();
        while self.tags.front().is_some_and(|(at, _)| *at < begin) {
            self.tags.pop_front();
        }
    }

    /// Passes over samples that are not kept.
    fn pass(&mut self, bytes: usize) {
        self.end += (bytes / self.sample_bytes) as u64;
    }

    fn len(&self) -> usize {
        self.bytes.len() / self.sample_bytes
    }

    fn begin(&self) -> u64 {
        self.end - self.len() as u64
    }

    /// Whether it has `memory` samples, or all.
    fn has(&self, memory: usize) -> bool {
        self.len() >= memory || self.begin() == 0
    }

    /// Writes samples from the `at`-th on to a chunk, and returns their number.
    fn write(&self, at: usize, chunk: &mut Chunk<u8>) -> usize {
        let samples = (chunk.capacity() / self.sample_bytes).min(self.len() - at);
        let bytes = samples * self.sample_bytes;
        chunk.truncate(bytes);
        if let Some((to, info)) = chunk.parts() {
            to.copy_from_slice(&self.bytes[at * self.sample_bytes..][..bytes]);
            info.start = self.begin() + at as u64;
            let end = info.start + samples as u64;
            let here = self.tags.iter().filter(|(at, _)| (info.start..end).contains(at));
            let tags = here.map(|(at, tag)| Tag { offset: (at - info.start) as usize, ..tag.clone() });
            info.tags.extend(tags);
        }
        samples
    }
}

impl<M: Message> BlockSpread<M> {
    pub fn new(sizes: &SpreadSizes, needs: LaneNeeds) -> Self {
        BlockSpread {
            input: Input::default(),
            outs: (0..sizes.workers).map(|_| Output::default()).collect(),
            needs,
            trial: sizes.is_tried.then(LaneTrial::default),
            capacity: sizes.capacity,
            memory: Memory::Unknown,
            tail: Tail { sample_bytes: M::SAMPLE_BYTES.unwrap_or(1).max(1), ..Tail::default() },
            lane: 0,
            until: vec![0; sizes.workers],
            left: 0,
            rate_hz: 0.0,
            pending: None,
            has_ended: false,
        }
    }

    /// Begins a block with this chunk. Returns the lane that gets it.
    fn begin_block(&mut self, cx: &mut Context, chunk: &Chunk<u8>) -> usize {
        self.left = FEWEST;
        let Memory::Samples(memory) = self.memory else { return self.lane };
        if !self.tail.has(memory) {
            return self.lane;
        }
        let history = self.tail.len();
        let bytes = chunk.capacity().max(self.tail.sample_bytes);
        let messages = history.div_ceil(bytes / self.tail.sample_bytes).max(1);
        // Three blocks have room before a lane: one is in work, one waits, and one more can come.
        let most = (self.capacity / 3).saturating_sub(messages + 1);
        let samples = (chunk.len() / self.tail.sample_bytes).max(1) as u64;
        let chunks = |factor: u64| (factor * memory as u64).div_ceil(samples);
        if most < FEWEST || chunks(LEAST) > most as u64 {
            return self.lane;
        }
        self.left = (chunks(WORTH) as usize).clamp(FEWEST, most);
        let tail_end = self.tail.end;
        let is_shared = self.trial.as_mut().is_none_or(|trial| trial.is_shared(cx.now_ns(), tail_end));
        let lane = if is_shared { self.choose(cx, self.left + messages + 1) } else { 0 };
        if self.until[lane] <= self.tail.begin() || lane == self.lane { lane } else { self.lane }
    }

    /// Whom the next block goes to. The first worker shares this one's: it works at once on what it gets,
    /// so the others are to have something first.
    fn choose(&self, cx: &mut Context, needed: usize) -> usize {
        for out in &self.outs[1..] {
            out.poll_room(cx);
        }
        let others = (1..self.outs.len()).map(|worker| (worker, self.outs[worker].room(cx)));
        let wanting = others.filter(|&(_, room)| room >= needed);
        wanting.max_by_key(|&(_, room)| room).map_or(0, |(worker, _)| worker)
    }

    fn send(&mut self, cx: &mut Context, chunk: Chunk<u8>) -> Result<(), Error> {
        let begin = self.tail.end;
        self.needs.hand_out(begin, begin + (chunk.len() / self.tail.sample_bytes) as u64);
        match self.memory {
            Memory::Samples(memory) => self.tail.extend(&chunk, memory),
            _ => {
                self.tail.pass(chunk.len());
                self.find_memory();
            }
        }
        self.rate_hz = chunk.rate_hz();
        self.until[self.lane] = self.tail.end;
        self.left = self.left.saturating_sub(1);
        let message = M::from_bytes(chunk).expect("the spread of a lane with memory has chunks");
        self.outs[self.lane].push(cx, message)
    }

    /// Finds out how many samples the lanes need, unless that is known.
    fn find_memory(&mut self) {
        if let (Memory::Unknown, Some(memory)) = (self.memory, self.needs.samples()) {
            let fits = memory.saturating_mul(self.tail.sample_bytes) <= self.tail.bytes.capacity();
            self.memory = if fits { Memory::Samples(memory) } else { Memory::TooLong(memory) };
        }
    }

    /// The end of the stream needs a step of its own.
    fn after_chunk(&self, cx: &Context) -> Step {
        if self.input.is_ended(cx) { Step::Again } else { Step::Wait }
    }

    /// Sends an empty chunk with these marks to the present lane. Returns `false` if no chunk is left.
    fn end_block(&mut self, cx: &mut Context, stamp: Stamp, marks: Marks) -> Result<bool, Error> {
        let Some(mut chunk) = self.new_chunk(cx) else { return Ok(false) };
        chunk.truncate(0);
        let info = chunk.info_mut();
        (info.start, info.rate_hz, info.marks) = (self.tail.end, self.rate_hz, marks);
        self.push_marked(cx, chunk, stamp)?;
        Ok(true)
    }

    fn new_chunk(&self, cx: &mut Context) -> Option<Chunk<u8>> {
        cx.new_chunk::<u8>(self.outs[self.lane].link.quantum())
    }

    fn push_marked(&mut self, cx: &mut Context, chunk: Chunk<u8>, stamp: Stamp) -> Result<(), Error> {
        cx.set_stamp(stamp.without_due());
        let message = M::from_bytes(chunk).expect("the spread of a lane with memory has chunks");
        self.outs[self.lane].push(cx, message)
    }

    /// Sends the next of the messages with which the stream changes to another lane.
    fn change_lane(&mut self, cx: &mut Context, mut pending: LaneChange) -> Result<Step, Error> {
        let stamp = pending.stamp;
        if !pending.is_ended {
            if !self.end_block(cx, stamp, Marks::end(pending.lane))? {
                self.pending = Some(pending);
                return Ok(Step::Wait);
            }
            pending.is_ended = true;
            self.lane = pending.lane;
        } else if pending.sent.is_none_or(|sent| sent < self.tail.len()) {
            let Some(mut chunk) = self.new_chunk(cx) else {
                self.pending = Some(pending);
                return Ok(Step::Wait);
            };
            let at = pending.sent.unwrap_or(0);
            let samples = self.tail.write(at, &mut chunk);
            let info = chunk.info_mut();
            info.rate_hz = self.rate_hz;
            info.marks = Marks::HISTORY.set(Marks::RESUME, pending.sent.is_none());
            pending.sent = Some(at + samples);
            self.push_marked(cx, chunk, stamp)?;
        } else {
            cx.set_stamp(stamp);
            self.send(cx, pending.chunk)?;
            return Ok(self.after_chunk(cx));
        }
        self.pending = Some(pending);
        Ok(Step::Again)
    }
}

impl<M: Message> Operator for BlockSpread<M> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).holds(2);
        for (worker, out) in self.outs.iter_mut().enumerate() {
            p.output(&worker.to_string(), out);
        }
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let edges = self.outs[1..].iter().flat_map(Output::numbers).collect();
        Lane::watch(cx, edges);
        let quantum = self.outs[0].link.quantum().unwrap_or(0) as usize;
        let most = (self.capacity / 3).saturating_mul(quantum) / LEAST as usize;
        self.tail.bytes.reserve_exact(most);
        Ok(())
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if let (Memory::TooLong(memory), true) = (self.memory, ending != Ending::Failed) {
            cx.note(format!(
                "all chunks stayed with one copy: each other one would have needed {memory} samples again before \
                 it goes on, and {} fit; a larger quantum of the edge helps",
                self.tail.bytes.capacity() / self.tail.sample_bytes
            ));
        }
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(pending) = self.pending.take() {
            return self.change_lane(cx, pending);
        }
        if let Some(chunk) = self.input.pop(cx).and_then(M::into_bytes) {
            let lane = if self.left == 0 { self.begin_block(cx, &chunk) } else { self.lane };
            if lane != self.lane {
                let stamp = cx.stamp();
                let pending = LaneChange { lane, is_ended: false, sent: None, chunk, stamp };
                return self.change_lane(cx, pending);
            }
            self.send(cx, chunk)?;
            return Ok(self.after_chunk(cx));
        }
        if self.input.is_ended(cx) && self.tail.end > 0 && !self.has_ended {
            let stamp = cx.stamp();
            self.has_ended = self.end_block(cx, stamp, Marks::LAST)?;
        }
        Ok(Step::Wait)
    }
}

pub(super) struct BlockGather<M: Message> {
    inputs: Vec<Input<M>>,
    out: Output<M>,
    /// Lane that continues the stream now.
    lane: usize,
}

impl<M: Message> BlockGather<M> {
    pub fn new(workers: usize) -> Self {
        let inputs = (0..workers).map(|_| Input::default()).collect();
        BlockGather { inputs, out: Output::default(), lane: 0 }
    }
}

impl<M: Message> Operator for BlockGather<M> {
    fn ports(&mut self, p: &mut Ports) {
        for (worker, input) in self.inputs.iter_mut().enumerate() {
            p.input(&worker.to_string(), input).many(Merge::Arrival);
        }
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(chunk) = self.inputs[self.lane].pop(cx).and_then(M::into_bytes) else {
            return Ok(Step::Wait);
        };
        let marks = chunk.info().marks;
        if marks == Marks::NONE {
            let message = M::from_bytes(chunk).expect("made of one");
            self.out.push(cx, message)?;
        } else if marks.has(Marks::END) {
            self.lane = marks.next_lane();
        }
        Ok(if self.inputs[self.lane].is_empty(cx) { Step::Wait } else { Step::Again })
    }
}
