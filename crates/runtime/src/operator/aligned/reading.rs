//! One of several streams that are read together.

use crate::operator::chunk::{Chunk, Sample, Tag};
use crate::operator::message::Stamp;
use crate::operator::port::Input;
use crate::{Context, Error, Step};

/// The chunk of a stream that is being read.
pub struct HeldStream<T: Sample>(Option<HeldChunk<T>>);

/// A chunk, the number of its samples that are used up, and its stamp.
struct HeldChunk<T: Sample> {
    chunk: Chunk<T>,
    used: usize,
    stamp: Stamp,
}

impl<T: Sample> Default for HeldStream<T> {
    fn default() -> Self {
        HeldStream(None)
    }
}

/// What streams that are read together have in common.
#[derive(Debug, Default, Clone, Copy)]
pub struct Common {
    /// With several streams, their common sample rate in hertz; `None` if no chunk had one.
    pub rate_hz: Option<f64>,
    /// Slices used up, per stream.
    pub taken: u64,
}

impl<T: Sample> HeldStream<T> {
    /// Takes chunks until there are samples, and returns their number; `None` if no chunk is there.
    pub(super) fn take(
        &mut self,
        input: &mut Input<Chunk<T>>,
        common: &mut Common,
        name: impl Fn() -> String,
        cx: &mut Context,
    ) -> Result<Option<usize>, Error> {
        while self.rest() == 0 {
            self.0 = input.pop_stamped(cx).map(|(chunk, stamp)| HeldChunk { chunk, used: 0, stamp });
            let Some(new) = &self.0 else { return Ok(None) };
            let rate_hz = new.chunk.rate_hz();
            // It has none, as the samples that a feedback edge has from the start.
            if rate_hz == 0.0 {
                continue;
            }
            let known_hz = *common.rate_hz.get_or_insert(rate_hz);
            if rate_hz != known_hz {
                return Err(Error::new(format!(
                    "the sample rate of `{}` is {rate_hz} Hz, but the first chunk had {known_hz} Hz: all streams must \
                     have the same rate; resample one of them",
                    name()
                )));
            }
        }
        Ok(Some(self.rest()))
    }

    fn rest(&self) -> usize {
        self.0.as_ref().map_or(0, |held| held.chunk.len() - held.used)
    }

    pub(super) fn has_samples(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn rate_hz(&self) -> Option<f64> {
        self.0.as_ref().map(|held| held.chunk.rate_hz())
    }

    pub(super) fn stamp(&self) -> Option<Stamp> {
        self.0.as_ref().map(|held| held.stamp)
    }

    /// The next `count` samples. There must be that many.
    pub(super) fn samples(&self, count: usize) -> &[T] {
        self.0.as_ref().map_or(&[], |held| &held.chunk[held.used..held.used + count])
    }

    /// The tags on these samples, with offsets relative to them.
    pub(super) fn tags(&self, count: usize) -> impl Iterator<Item = (usize, &Tag)> {
        self.0.iter().flat_map(move |held| {
            let now = held.used..held.used + count;
            let on_them = held.chunk.tags().iter().filter(move |tag| now.contains(&tag.offset));
            on_them.map(|tag| (tag.offset - held.used, tag))
        })
    }

    /// Marks samples as used up, and lets a finished chunk go, so that others can edit it in place.
    pub(super) fn consume(&mut self, count: usize) {
        self.0 = self.0.take().map(|held| HeldChunk { used: held.used + count, ..held });
        if self.rest() == 0 {
            self.0 = None;
        }
    }
}

/// State of a stream when a step cannot go on.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamState {
    pub has_samples: bool,
    /// Whether it has ended, and all its samples were read.
    pub has_ended: bool,
}

/// Where several streams are at their end.
pub(super) struct StreamEnd {
    /// The first stream that has ended.
    first: usize,
    /// Whether others have samples that are not read.
    has_rest: bool,
}

/// Returns the end of streams that are read together: one of them has ended, and all that have no samples
/// have. `None` if they can go on.
pub(super) fn end(streams: usize, state: impl Fn(usize) -> StreamState) -> Option<StreamEnd> {
    let (mut first, mut has_rest) = (None, false);
    for stream in 0..streams {
        match state(stream) {
            StreamState { has_samples: true, .. } => has_rest = true,
            StreamState { has_ended: true, .. } => first = first.or(Some(stream)),
            // It may have ended too without having signalled it yet.
            StreamState { .. } => return None,
        }
    }
    first.map(|first| StreamEnd { first, has_rest })
}

impl StreamEnd {
    /// Notes that samples are not read.
    pub fn say(&self, streams: usize, common: &Common, name: impl Fn(usize) -> String, cx: &mut Context) {
        if !self.has_rest {
            return;
        }
        let rest = match streams {
            2 => format!("`{}`", name(1 - self.first)),
            _ => "the other streams".to_owned(),
        };
        let taken = common.taken;
        cx.note(format!(
            "`{}` ended after {taken} samples; the rest of {rest} is not read",
            name(self.first)
        ));
    }
}

/// The step's result for an operator without outputs that has used up the common samples.
pub(super) fn rest(has_samples: bool) -> Step {
    if has_samples { Step::Again } else { Step::Wait }
}
