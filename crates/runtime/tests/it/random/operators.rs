//! Operators of the random graphs, written against the public interface only.

use crate::reference::Data;
use crate::splitmix::Random;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Input, LaneMemory, LaneSlot, Merge, Operator, Output, Ports, Step, Tag,
    Value,
};
use std::sync::{Arc, Mutex};

/// Sample `n` of a source: small whole numbers, so that sums are exact.
pub fn pattern(seed: u64, n: u64) -> f32 {
    let mixed = (n ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as f32 - 128.0
}

/// Whether sample `n` carries a tag.
pub fn tagged(seed: u64, n: u64) -> bool {
    (n.wrapping_add(seed)).is_multiple_of(997)
}

pub struct ChunkSource {
    out: Output<Chunk<f32>>,
    seed: u64,
    len: u64,
    sent: u64,
}

impl ChunkSource {
    pub fn new(seed: u64, len: u64) -> Self {
        ChunkSource { out: Output::default(), seed, len, sent: 0 }
    }
}

impl Operator for ChunkSource {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.sent == self.len {
            return Ok(Step::Done);
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let samples = (self.len - self.sent).min(chunk.capacity() as u64);
        chunk.truncate(samples as usize);
        for (sample, n) in chunk.edit_unique().expect("it is new").iter_mut().zip(self.sent..) {
            *sample = pattern(self.seed, n);
        }
        for n in (self.sent..self.sent + samples).filter(|&n| tagged(self.seed, n)) {
            let tag = Tag { offset: (n - self.sent) as usize, key: "n".into(), value: Value::Int(n as i64) };
            chunk.info_mut().tags.push(tag);
        }
        chunk.info_mut().start = self.sent;
        self.sent += samples;
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
}

pub struct MessageSource {
    out: Output<u64>,
    len: u64,
    period: u64,
    sent: u64,
}

impl MessageSource {
    pub fn new(len: u64, period: u64) -> Self {
        MessageSource { out: Output::default(), len, period, sent: 0 }
    }
}

impl Operator for MessageSource {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.sent == self.len {
            return Ok(Step::Done);
        }
        cx.set_time(self.sent * self.period, None);
        self.out.push(cx, self.sent)?;
        self.sent += 1;
        Ok(Step::Again)
    }
}

/// Joins two streams sample by sample, however they are cut into chunks.
#[derive(Default)]
pub struct Add {
    a: Input<Chunk<f32>>,
    b: Input<Chunk<f32>>,
    out: Output<Chunk<f32>>,
    held: [Option<(Chunk<f32>, usize)>; 2],
}

impl Operator for Add {
    fn ports(&mut self, p: &mut Ports) {
        p.input("a", &mut self.a);
        p.input("b", &mut self.b);
        p.output("out", &mut self.out).fresh();
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        for (held, input) in self.held.iter_mut().zip([&mut self.a, &mut self.b]) {
            if held.is_none() {
                *held = input.pop_stamped(cx).map(|(chunk, _)| (chunk, 0));
            }
            if held.is_none() && input.is_ended(cx) {
                return Ok(Step::Done);
            }
        }
        let [Some((a, a_used)), Some((b, b_used))] = &mut self.held else { return Ok(Step::Wait) };
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let samples = (a.len() - *a_used).min(b.len() - *b_used).min(chunk.capacity());
        chunk.truncate(samples);
        let (x, y) = (&a[*a_used..][..samples], &b[*b_used..][..samples]);
        for (sum, (x, y)) in chunk.edit_unique().expect("it is new").iter_mut().zip(x.iter().zip(y)) {
            *sum = x + y;
        }
        for tag in a.tags().iter().filter(|tag| (*a_used..*a_used + samples).contains(&tag.offset)) {
            chunk.info_mut().tags.push(Tag { offset: tag.offset - *a_used, ..tag.clone() });
        }
        (*a_used, *b_used) = (*a_used + samples, *b_used + samples);
        self.held.iter_mut().for_each(|held| {
            held.take_if(|(chunk, used)| *used == chunk.len());
        });
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }
}

pub struct Filter {
    input: Input<u64>,
    out: Output<u64>,
    modulus: u64,
    merge: Option<Merge>,
}

impl Filter {
    pub fn new(modulus: u64, merge: Option<Merge>) -> Self {
        Filter { input: Input::default(), out: Output::default(), modulus, merge }
    }
}

impl Operator for Filter {
    fn ports(&mut self, p: &mut Ports) {
        let port = p.input("in", &mut self.input);
        if let Some(merge) = self.merge {
            port.many(merge);
        }
        p.output("out", &mut self.out);
    }
    fn replica(&self) -> Option<Box<dyn Operator>> {
        // Any other one leaves messages out.
        (self.modulus == 1).then(|| Box::new(Filter::new(1, self.merge)) as _)
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(value) = self.input.pop(cx)
            && value.is_multiple_of(self.modulus)
        {
            self.out.push(cx, value)?;
        }
        Ok(Step::Wait)
    }
}

/// Adds what comes to what came back.
#[derive(Default)]
pub struct Total {
    input: Input<u64>,
    before: Input<u64>,
    out: Output<u64>,
}

impl Operator for Total {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.input("before", &mut self.before);
        p.output("out", &mut self.out);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.input.is_empty(cx) || self.before.is_empty(cx) {
            return Ok(Step::Wait);
        }
        if let (Some(before), Some(value)) = (self.before.pop(cx), self.input.pop(cx)) {
            self.out.push(cx, before.wrapping_add(value))?;
        }
        Ok(Step::Wait)
    }
}

/// Another operator, with a random time before each of its steps.
pub struct Slow {
    inner: Box<dyn Operator>,
    random: Random,
}

impl Slow {
    pub fn new(inner: Box<dyn Operator>, seed: u64) -> Self {
        Slow { inner, random: Random(seed) }
    }
}

impl Operator for Slow {
    fn ports(&mut self, p: &mut Ports) {
        self.inner.ports(p);
    }
    fn replica(&self) -> Option<Box<dyn Operator>> {
        let Random(seed) = self.random;
        Some(Box::new(Slow::new(self.inner.replica()?, seed)))
    }
    fn lane_memory(&self) -> LaneMemory {
        self.inner.lane_memory()
    }
    fn lane_replica(&self, slot: LaneSlot) -> Option<Box<dyn Operator>> {
        let Random(seed) = self.random;
        Some(Box::new(Slow::new(self.inner.lane_replica(slot)?, seed)))
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match self.random.below(64) {
            0 => std::thread::sleep(std::time::Duration::from_micros(self.random.below(100))),
            1..=7 => std::thread::yield_now(),
            n => (0..n * 8).for_each(|_| std::hint::spin_loop()),
        }
        self.inner.step(cx)
    }
    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.inner.start(cx)
    }
    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.inner.stop(cx, ending)
    }
}

pub struct ChunkSink {
    input: Input<Chunk<f32>>,
    result: Arc<Mutex<Data>>,
}

impl ChunkSink {
    pub fn new(result: Arc<Mutex<Data>>) -> Self {
        ChunkSink { input: Input::default(), result }
    }
}

impl Operator for ChunkSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(chunk) = self.input.pop(cx) {
            let mut data = self.result.lock().unwrap();
            let start = data.samples.len() as u64;
            for tag in chunk.tags() {
                if let Value::Int(value) = tag.value {
                    data.tags.push((start + tag.offset as u64, value));
                }
            }
            data.samples.extend_from_slice(&chunk);
        }
        Ok(Step::Wait)
    }
}

pub struct MessageSink {
    input: Input<u64>,
    result: Arc<Mutex<Data>>,
}

impl MessageSink {
    pub fn new(result: Arc<Mutex<Data>>) -> Self {
        MessageSink { input: Input::default(), result }
    }
}

impl Operator for MessageSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(value) = self.input.pop(cx) {
            let stamp = cx.stamp();
            self.result.lock().unwrap().messages.push((stamp.time_ns, stamp.sequence(), value));
        }
        Ok(Step::Wait)
    }
}
