//! What comes to an input.

use crate::operator::chunk::{Chunk, Sample, Tag};
use crate::operator::message::{Message, Value};
use crate::operator::ports::Ports;
use crate::operator::{Operator, Step};
use crate::{Context, Error, Output, Pace, Pacer};
use std::collections::VecDeque;

/// Samples or messages for one input of a [`Trial`](super::Trial), and then the end of the stream.
///
/// ```
/// use onbeat_runtime::testing::Feed;
/// let samples = Feed::samples((0..5000).map(|n| n as f32)).rate(48e3).cut(&[1, 7]).tag(17, "antenna", 2);
/// let numbers = Feed::messages([1u64, 2, 3]).every(1_000_000);
/// ```
pub struct Feed {
    make: Box<dyn FnOnce(Shape) -> Box<dyn Operator>>,
    pub(super) shape: Shape,
    /// Not so messages and frames.
    pub(super) can_be_cut: bool,
    quantum: Option<usize>,
}

/// How it comes.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// Lengths of chunks, the last one for ever; without any, as long as the edge allows.
    pub lengths: Vec<usize>,
    /// Rows, columns and planes of each chunk, where they have some.
    shapes: Vec<[u32; 3]>,
    rate_hz: f64,
    start: u64,
    /// By rising sample.
    tags: VecDeque<(u64, Tag)>,
    every_ns: u64,
    paced: bool,
    failure: Option<String>,
}

impl Shape {
    /// What the step after the last one returns.
    fn end(&mut self) -> Result<Step, Error> {
        self.failure.take().map_or(Ok(Step::Done), |reason| Err(Error::new(reason)))
    }
}

impl Feed {
    /// A stream of samples, in chunks as long as the edge allows.
    pub fn samples<T: Sample>(samples: impl IntoIterator<Item = T>) -> Self {
        let samples: Vec<T> = samples.into_iter().collect();
        Feed {
            make: Box::new(move |shape| {
                Box::new(Samples { out: Output::default(), samples, shape, at: 0, chunk: 0 })
            }),
            shape: Shape::default(),
            can_be_cut: true,
            quantum: None,
        }
    }

    /// Chunks that have a shape, such as pictures: each as it is, so the edge must have room for the largest.
    ///
    /// ```
    /// use onbeat_runtime::testing::Feed;
    /// let two_rows_of_three = ([2, 3, 0], vec![0.0f32; 6]);
    /// let pictures = Feed::frames([two_rows_of_three]);
    /// ```
    pub fn frames<T: Sample>(frames: impl IntoIterator<Item = ([u32; 3], Vec<T>)>) -> Self {
        let (shapes, frames): (Vec<_>, Vec<_>) = frames.into_iter().unzip();
        let lengths = frames.iter().map(Vec::len).collect();
        let mut feed = Self::samples(frames.concat());
        // Frames must not be cut.
        feed.can_be_cut = false;
        feed.shape = Shape { lengths, shapes, ..Shape::default() };
        feed
    }

    /// Messages of any type. (Chunks have a feed of their own: [`samples`](Feed::samples).)
    pub fn messages<M: Message>(messages: impl IntoIterator<Item = M>) -> Self {
        let messages: VecDeque<M> = messages.into_iter().collect();
        Feed {
            make: Box::new(move |shape| {
                Box::new(Messages { out: Output::default(), messages, shape, sent: 0 })
            }),
            shape: Shape::default(),
            can_be_cut: false,
            quantum: None,
        }
    }

    /// Samples per second, which also sets their source time.
    pub fn rate(mut self, rate_hz: f64) -> Self {
        self.shape.rate_hz = rate_hz;
        self
    }

    /// In chunks of these lengths, the last one for ever. What an edge has no room for is cut further.
    ///
    /// # Panics
    /// When there is none, or one is 0.
    pub fn cut(mut self, lengths: &[usize]) -> Self {
        assert!(!lengths.is_empty() && !lengths.contains(&0), "chunks have 1 sample or more: {lengths:?}");
        self.shape.lengths = lengths.to_vec();
        self
    }

    /// A tag on sample number `sample` of the stream. Call it by rising sample.
    pub fn tag(mut self, sample: u64, key: &str, value: impl Into<Value>) -> Self {
        self.shape.tags.push_back((sample, Tag { offset: 0, key: key.into(), value: value.into() }));
        self
    }

    /// The stream begins with this sample, as if there had been others before.
    pub fn start(mut self, sample: u64) -> Self {
        self.shape.start = sample;
        self
    }

    /// Sets the distance of the messages' source times, in nanoseconds.
    pub fn every(mut self, time_ns: u64) -> Self {
        self.shape.every_ns = time_ns;
        self
    }

    /// Each chunk comes when its last sample is due by the rate, as from a radio; without it, all come at
    /// once.
    pub fn paced(mut self) -> Self {
        self.shape.paced = true;
        self
    }

    /// After the last sample or message the run fails, as by an operator further up.
    pub fn then_fail(mut self, reason: &str) -> Self {
        self.shape.failure = Some(reason.to_string());
        self
    }

    /// Most bytes of a chunk on the edge that it feeds; without it, those of the trial.
    pub fn quantum(mut self, bytes: usize) -> Self {
        self.quantum = Some(bytes);
        self
    }

    pub(super) fn quantum_bytes(&self) -> Option<usize> {
        self.quantum
    }

    pub(super) fn into_operator(self) -> Box<dyn Operator> {
        (self.make)(self.shape)
    }
}

struct Samples<T: Sample> {
    out: Output<Chunk<T>>,
    samples: Vec<T>,
    shape: Shape,
    at: usize,
    chunk: usize,
}

impl<T: Sample> Operator for Samples<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.at == self.samples.len() {
            return self.shape.end();
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let lengths = &self.shape.lengths;
        let length = lengths.get(self.chunk).or(lengths.last()).map_or(chunk.capacity(), |&length| length);
        let shape = self.shape.shapes.get(self.chunk).copied().unwrap_or_default();
        if !self.shape.shapes.is_empty() && length > chunk.capacity() {
            let (quantum, needed) = (chunk.capacity() * size_of::<T>(), length * size_of::<T>());
            return Err(Error::new(format!("a frame needs a quantum of {needed} bytes, and has {quantum}")));
        }
        let end = self.samples.len().min(self.at + length.min(chunk.capacity()));
        let start = self.shape.start + self.at as u64;
        let pace = if self.shape.paced { Pace::Real } else { Pace::Fast };
        let last = start + (end - self.at) as u64;
        if let Some(wait) = Pacer::new(self.shape.rate_hz, pace).wait(cx, start, last) {
            return Ok(wait);
        }
        chunk.truncate(end - self.at);
        if let Some(samples) = chunk.edit_unique() {
            samples.copy_from_slice(&self.samples[self.at..end]);
        }
        let info = chunk.info_mut();
        (info.start, info.rate_hz, info.shape) = (start, self.shape.rate_hz, shape);
        while let Some((sample, _)) = self.shape.tags.front()
            && *sample < last
        {
            if let Some((sample, tag)) = self.shape.tags.pop_front() {
                info.tags.push(Tag { offset: sample.saturating_sub(start) as usize, ..tag });
            }
        }
        self.out.push(cx, chunk)?;
        (self.at, self.chunk) = (end, self.chunk + 1);
        Ok(Step::Again)
    }
}

struct Messages<M: Message> {
    out: Output<M>,
    messages: VecDeque<M>,
    shape: Shape,
    sent: u64,
}

impl<M: Message> Operator for Messages<M> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(message) = self.messages.pop_front() else { return self.shape.end() };
        cx.set_time(self.sent * self.shape.every_ns, None);
        self.sent += 1;
        self.out.push(cx, message)?;
        Ok(Step::Again)
    }
}
