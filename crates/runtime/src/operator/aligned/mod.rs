//! Several streams, read sample by sample, whatever their chunks are.
//!
//! | type | description |
//! |---|---|
//! | [`Combine`], [`Combined`] | a sample out of the samples at the same position of several streams |
//! | [`Aligned`] | any number of streams of one type, for operators that read them on their own |

mod combine;
mod reading;
mod streams;

pub use combine::{Combine, Combined, FnCombine};
pub use reading::{Common, HeldStream};
pub use streams::{Slices, Streams};

use crate::operator::chunk::{Chunk, Sample, Tag};
use crate::operator::message::Stamp;
use crate::operator::port::Input;
use crate::{Context, Error, Step};
use reading::StreamState;

/// Slices of all streams that are interleaved at once.
const BLOCK: usize = 4096;

/// Reads any number of streams of one type and sample rate sample by sample, independent of chunk borders,
/// for an operator that has their inputs. [`Combine`] is the simpler way to one output.
///
/// A step calls [`take`](Aligned::take) to learn how many samples all streams have, reads up to that many,
/// and releases them with [`consume`](Aligned::consume).
///
/// ```
/// use onbeat_runtime::{Aligned, Chunk, Context, Error, Input, Operator, Ports, Step};
///
/// /// Counts the samples at which two streams differ.
/// struct Differences { inputs: [Input<Chunk<f32>>; 2], streams: Aligned<f32>, count: u64 }
///
/// impl Operator for Differences {
///     fn ports(&mut self, p: &mut Ports) {
///         let [a, b] = &mut self.inputs;
///         p.input("a", a);
///         p.input("b", b);
///     }
///     fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
///         let Some(count) = self.streams.take(&mut self.inputs, cx)? else {
///             return Ok(self.streams.wait(&self.inputs, cx));
///         };
///         let (a, b) = (self.streams.samples(0, count), self.streams.samples(1, count));
///         self.count += a.iter().zip(b).filter(|(a, b)| a != b).count() as u64;
///         self.streams.consume(count);
///         Ok(self.streams.rest())
///     }
/// }
/// ```
pub struct Aligned<T: Sample> {
    held: Vec<HeldStream<T>>,
    /// Port names, if they are not `in0`, `in1`, ...
    names: &'static [&'static str],
    common: Common,
    /// Interleaved frames, one sample of each stream after the other.
    scratch: Vec<T>,
}

impl<T: Sample> Aligned<T> {
    /// Creates the alignment of this many streams.
    pub fn new(streams: usize) -> Self {
        let frames = if streams > 1 { (BLOCK / streams).max(1) } else { 0 };
        Aligned {
            held: (0..streams).map(|_| HeldStream::default()).collect(),
            names: &[],
            common: Common::default(),
            scratch: vec![T::zeroed(); frames * streams],
        }
    }

    /// Creates the alignment of streams whose ports have these names.
    pub fn named(names: &'static [&'static str]) -> Self {
        Aligned { names, ..Aligned::new(names.len()) }
    }

    /// Returns the number of samples used up, per stream.
    pub fn taken(&self) -> u64 {
        self.common.taken
    }

    /// Returns the sample rate of the current chunks, in hertz.
    pub fn rate_hz(&self) -> f64 {
        self.held.iter().find_map(HeldStream::rate_hz).unwrap_or(0.0)
    }

    /// Takes chunks until every stream has samples, and returns how many all of them have. `None` if a stream
    /// has none: then call [`wait`](Aligned::wait).
    ///
    /// # Errors
    /// If the sample rates of several streams differ.
    pub fn take(&mut self, inputs: &mut [Input<Chunk<T>>], cx: &mut Context) -> Result<Option<usize>, Error> {
        // The rate of a single stream may change.
        if self.held.len() == 1 {
            self.common.rate_hz = None;
        }
        let names = self.names;
        streams::take_all(inputs, &mut self.held, &mut self.common, |stream| port_name(names, stream), cx)
    }

    /// Returns the next `count` samples of a stream, which must have that many.
    pub fn samples(&self, stream: usize, count: usize) -> &[T] {
        self.held[stream].samples(count)
    }

    /// Returns the tags on these samples, with offsets relative to them.
    pub fn tags(&self, stream: usize, count: usize) -> impl Iterator<Item = (usize, &Tag)> {
        self.held[stream].tags(count)
    }

    /// Returns the stamp of an output made from all streams.
    pub fn stamp(&self) -> Stamp {
        streams::oldest(&self.held)
    }

    /// Passes the next samples on as frames, one sample of each stream after the other, in one or more
    /// pieces.
    ///
    /// # Errors
    /// The first error of `each`.
    pub fn frames(
        &mut self,
        count: usize,
        mut each: impl FnMut(&[T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let streams = self.held.len();
        if streams == 1 {
            return each(self.samples(0, count));
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let (mut at, mut result) = (0, Ok(()));
        while at < count && result.is_ok() {
            let now = (count - at).min(scratch.len() / streams);
            for stream in 0..streams {
                let samples = &self.samples(stream, count)[at..at + now];
                scratch[stream..].iter_mut().step_by(streams).zip(samples).for_each(|(y, x)| *y = *x);
            }
            result = each(&scratch[..now * streams]);
            at += now;
        }
        self.scratch = scratch;
        result
    }

    /// Marks samples of each stream as used up. Releases finished chunks, so that others can edit them in
    /// place.
    pub fn consume(&mut self, count: usize) {
        self.held.iter_mut().for_each(|held| held.consume(count));
        self.common.taken += count as u64;
    }

    /// Returns the step's result after an operator without outputs used up the common samples.
    pub fn rest(&self) -> Step {
        reading::rest(self.held.iter().any(HeldStream::has_samples))
    }

    /// Returns the step's result when a stream has no samples: waits for it, or ends with the shortest
    /// stream.
    pub fn wait(&self, inputs: &[Input<Chunk<T>>], cx: &mut Context) -> Step {
        let state = |stream: usize| StreamState {
            has_samples: self.held[stream].has_samples(),
            has_ended: inputs[stream].is_ended(cx),
        };
        if let Some(end) = reading::end(inputs.len(), state) {
            end.say(inputs.len(), &self.common, |stream| port_name(self.names, stream), cx);
            return Step::Done;
        }
        // A stream with samples need not get a message before the next step.
        streams::keep_all(inputs, &self.held, cx);
        Step::Wait
    }
}

fn port_name(names: &[&str], stream: usize) -> String {
    names.get(stream).map_or_else(|| format!("in{stream}"), ToString::to_string)
}
