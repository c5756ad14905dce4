//! Aligns several streams sample by sample.

use onbeat_runtime::{Chunk, Context, Error, Input, Sample, Stamp, Step, Tag};

/// Samples of all streams that are interleaved at once.
const BLOCK: usize = 4096;

/// Takes several streams of one sample rate sample by sample, independent of chunk borders.
///
/// A step calls [`take`](Aligned::take) to learn how many samples all streams have, reads up to that many,
/// and releases them with [`consume`](Aligned::consume).
pub(crate) struct Aligned<T: Sample> {
    held: Vec<Option<HeldChunk<T>>>,
    /// Port names, if they are not `in0`, `in1`, ...
    names: &'static [&'static str],
    /// With several streams, their common sample rate.
    rate_hz: Option<f64>,
    /// Samples used up, per stream.
    taken: u64,
    /// Interleaved frames, one sample of each stream after the other.
    scratch: Vec<T>,
}

/// A chunk being read, the number of samples used up, and the chunk's stamp.
struct HeldChunk<T: Sample> {
    chunk: Chunk<T>,
    used: usize,
    stamp: Stamp,
}

impl<T: Sample> HeldChunk<T> {
    fn rest(&self) -> usize {
        self.chunk.len() - self.used
    }
}

impl<T: Sample> Aligned<T> {
    /// Creates the alignment of this many streams.
    pub fn new(lanes: usize) -> Self {
        let frames = if lanes > 1 { (BLOCK / lanes).max(1) } else { 0 };
        Aligned {
            held: (0..lanes).map(|_| None).collect(),
            names: &[],
            rate_hz: None,
            taken: 0,
            scratch: vec![T::zeroed(); frames * lanes],
        }
    }

    /// Creates the alignment of streams whose ports have these names.
    pub fn named(names: &'static [&'static str]) -> Self {
        Aligned { names, ..Aligned::new(names.len()) }
    }

    fn name(&self, lane: usize) -> String {
        self.names.get(lane).map_or_else(|| format!("in{lane}"), ToString::to_string)
    }

    /// Samples used up, per stream.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Sample rate of the current chunks, in hertz.
    pub fn rate_hz(&self) -> f64 {
        self.held.iter().flatten().next().map_or(0.0, |held| held.chunk.rate_hz())
    }

    /// Takes chunks until every stream has samples, and returns how many all of them have. `None` if a stream
    /// has none: then call [`wait`](Aligned::wait).
    pub fn take(&mut self, inputs: &mut [Input<Chunk<T>>], cx: &mut Context) -> Result<Option<usize>, Error> {
        let mut all = Some(usize::MAX);
        for (lane, input) in inputs.iter_mut().enumerate() {
            let rest = self.take_lane(lane, input, cx)?;
            all = all.zip(rest).map(|(all, rest)| all.min(rest));
        }
        Ok(all)
    }

    fn take_lane(
        &mut self,
        lane: usize,
        input: &mut Input<Chunk<T>>,
        cx: &mut Context,
    ) -> Result<Option<usize>, Error> {
        let several = self.held.len() > 1;
        let held = &mut self.held[lane];
        while held.as_ref().is_none_or(|held| held.rest() == 0) {
            *held = input.pop_stamped(cx).map(|(chunk, stamp)| HeldChunk { chunk, used: 0, stamp });
            let Some(new) = held else { return Ok(None) };
            let rate_hz = new.chunk.rate_hz();
            if several && rate_hz != *self.rate_hz.get_or_insert(rate_hz) {
                let (name, known_hz) = (self.name(lane), self.rate_hz.unwrap_or_default());
                return Err(Error::new(format!(
                    "the sample rate of `{name}` is {rate_hz} Hz, but the first chunk had {known_hz} Hz: all \
                     streams must have the same rate; resample one of them"
                )));
            }
        }
        Ok(held.as_ref().map(HeldChunk::rest))
    }

    /// The next `count` samples of a stream, which must have that many.
    pub fn samples(&self, lane: usize, count: usize) -> &[T] {
        self.held[lane].as_ref().map_or(&[], |held| &held.chunk[held.used..held.used + count])
    }

    /// The tags on these samples, with offsets relative to them.
    pub fn tags(&self, lane: usize, count: usize) -> impl Iterator<Item = (usize, &Tag)> {
        self.held[lane].iter().flat_map(move |held| {
            let now = held.used..held.used + count;
            let on_them = held.chunk.tags().iter().filter(move |tag| now.contains(&tag.offset));
            on_them.map(|tag| (tag.offset - held.used, tag))
        })
    }

    /// The stamp of an output made from all streams.
    pub fn stamp(&self) -> Stamp {
        let stamps = self.held.iter().flatten().map(|held| held.stamp);
        stamps.reduce(Stamp::older).unwrap_or_default()
    }

    /// Passes the next samples on as frames, one sample of each stream after the other, in one or more
    /// pieces.
    pub fn frames(
        &mut self,
        count: usize,
        mut each: impl FnMut(&[T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let lanes = self.held.len();
        if lanes == 1 {
            return each(self.samples(0, count));
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let (mut at, mut result) = (0, Ok(()));
        while at < count && result.is_ok() {
            let now = (count - at).min(scratch.len() / lanes);
            for lane in 0..lanes {
                let samples = &self.samples(lane, count)[at..at + now];
                scratch[lane..].iter_mut().step_by(lanes).zip(samples).for_each(|(y, x)| *y = *x);
            }
            result = each(&scratch[..now * lanes]);
            at += now;
        }
        self.scratch = scratch;
        result
    }

    /// Marks samples of each stream as used up. Releases finished chunks, so that others can edit them in
    /// place.
    pub fn consume(&mut self, count: usize) {
        for held in &mut self.held {
            *held = held
                .take()
                .map(|held| HeldChunk { used: held.used + count, ..held })
                .filter(|held| held.rest() > 0);
        }
        self.taken += count as u64;
    }

    /// The step's result after an operator without outputs used up the common samples.
    pub fn rest(&self) -> Step {
        if self.held.iter().any(Option::is_some) { Step::Again } else { Step::Wait }
    }

    /// The step's result when a stream has no samples: waits for it, or ends with the shortest stream.
    pub fn wait(&self, inputs: &[Input<Chunk<T>>], cx: &mut Context) -> Step {
        let has = |lane: usize| self.held[lane].is_some();
        let ended = |lane: usize, cx: &Context| !has(lane) && inputs[lane].is_ended(cx);
        // A stream without samples may have ended too without having signalled it yet.
        let open = (0..inputs.len()).any(|lane| !has(lane) && !ended(lane, cx));
        if let Some(first) = (0..inputs.len()).find(|lane| ended(*lane, cx))
            && !open
        {
            if (0..inputs.len()).any(has) {
                let rest = match inputs.len() {
                    2 => format!("`{}`", self.name(1 - first)),
                    _ => "the other streams".to_owned(),
                };
                let (name, taken) = (self.name(first), self.taken);
                cx.note(format!("`{name}` ended after {taken} samples; the rest of {rest} is not read"));
            }
            return Step::Done;
        }
        // A stream with samples need not get a message before the next step.
        for (_, input) in inputs.iter().enumerate().filter(|(lane, _)| has(*lane)) {
            input.keep(cx);
        }
        Step::Wait
    }
}
