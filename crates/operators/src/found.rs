//! Operators that find something in a stream of samples and send a message for each find, with its own time.

use onbeat_runtime::{Chunk, Context, Ending, Error, Input, Message, Output, Sample, Stamp, Step};

/// A value or a text that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found<V = f64> {
    /// The message to send.
    pub value: V,
    /// Its place in the stream: number of samples from the first one to it.
    pub at: u64,
}

/// Finds values in a stream, independent of how it is cut.
pub(crate) trait Finder: Send + 'static {
    /// Type of a sample.
    type Sample: Sample;
    /// Type of a find.
    type Value: Message;

    /// Takes samples up to the next find, and returns their number. Also called with none, to ask for finds
    /// in samples that were taken before.
    fn take(&mut self, samples: &[Self::Sample]) -> (usize, Option<Found<Self::Value>>);

    /// Ends the stream: finds that waited for further samples come from the next calls of `take`.
    fn finish(&mut self) {}

    /// What to note at the end.
    fn note(&self) -> Option<String>;
}

/// The chunk in hand, and the finder once the sample rate is known.
pub(crate) struct FindingSearch<F: Finder> {
    finder: Option<F>,
    rate_hz: f64,
    held: Option<HeldSamples<F::Sample>>,
    /// Number of samples before the chunk in hand.
    before: u64,
    /// Position in its stream of the first sample, as far as the last chunk shows.
    origin: u64,
    stamp: Stamp,
    is_finished: bool,
}

struct HeldSamples<T: Sample> {
    chunk: Chunk<T>,
    used: usize,
}

impl<F: Finder> Default for FindingSearch<F> {
    fn default() -> Self {
        FindingSearch {
            finder: None,
            rate_hz: 0.0,
            held: None,
            before: 0,
            origin: 0,
            stamp: Stamp::default(),
            is_finished: false,
        }
    }
}

/// Time of a position in a stream of this sample rate, in nanoseconds.
pub(crate) fn time_ns(position: u64, rate_hz: f64) -> u64 {
    (position as f64 * 1e9 / rate_hz).round() as u64
}

impl<F: Finder> FindingSearch<F> {
    /// The finder, once a chunk has come.
    pub fn finder(&mut self) -> Option<&mut F> {
        self.finder.as_mut()
    }

    /// Takes the next chunk. Returns whether there was one.
    fn take_chunk(
        &mut self,
        input: &mut Input<Chunk<F::Sample>>,
        make: impl Fn(f64) -> Result<F, Error>,
        cx: &mut Context,
    ) -> Result<bool, Error> {
        let Some(chunk) = input.pop(cx) else { return Ok(false) };
        let rate_hz = chunk.rate_hz();
        if self.finder.is_none() {
            self.finder = Some(make(rate_hz)?);
            self.rate_hz = rate_hz;
        } else if self.rate_hz != rate_hz {
            return Err(Error::new(format!(
                "the sample rate of its input changed from {} Hz to {rate_hz} Hz: resample before merging streams",
                self.rate_hz
            )));
        }
        self.stamp = cx.stamp();
        self.origin = chunk.info().start.wrapping_sub(self.before);
        self.held = (!chunk.is_empty()).then_some(HeldSamples { chunk, used: 0 });
        Ok(true)
    }

    /// Searches the chunk in hand up to the next find.
    fn next(&mut self) -> Option<Found<F::Value>> {
        let finder = self.finder.as_mut()?;
        let Some(held) = &mut self.held else { return finder.take(&[]).1 };
        let (used, found) = finder.take(&held.chunk[held.used..]);
        held.used += used;
        if held.used == held.chunk.len() && found.is_none() {
            self.before += held.used as u64;
            self.held = None;
        }
        found
    }

    /// Searches the samples that have come, and sends a message for each find. Its source time is that of its
    /// place in the stream; it is due when the chunk was that completed it.
    pub fn step(
        &mut self,
        input: &mut Input<Chunk<F::Sample>>,
        out: &mut Output<F::Value>,
        make: impl Fn(f64) -> Result<F, Error>,
        cx: &mut Context,
    ) -> Result<Step, Error> {
        self.step_with(input, out, make, cx, |_, _| ())
    }

    /// The same. `mark` can add keys to a message; it gets the position in the stream.
    pub fn step_with(
        &mut self,
        input: &mut Input<Chunk<F::Sample>>,
        out: &mut Output<F::Value>,
        make: impl Fn(f64) -> Result<F, Error>,
        cx: &mut Context,
        mark: impl Fn(&mut Context, u64),
    ) -> Result<Step, Error> {
        loop {
            if out.room(cx) == 0 {
                return Ok(Step::Again);
            }
            if let Some(found) = self.next() {
                let position = self.origin.wrapping_add(found.at);
                let mut stamp = self.stamp;
                if self.rate_hz > 0.0 {
                    stamp.time_ns = time_ns(position, self.rate_hz);
                }
                cx.set_stamp(stamp);
                mark(cx, position);
                out.push(cx, found.value)?;
            } else if self.held.is_none() && !self.take_chunk(input, &make, cx)? {
                if !input.is_ended(cx) || self.is_finished {
                    return Ok(if self.is_finished { Step::Done } else { Step::Wait });
                }
                self.is_finished = true;
                self.stamp = self.stamp.without_due();
                if let Some(finder) = &mut self.finder {
                    finder.finish();
                }
            }
        }
    }

    /// Notes what the finder has to say.
    pub fn say(&self, cx: &mut Context, ending: Ending) {
        let note = self.finder.as_ref().filter(|_| ending != Ending::Failed).and_then(Finder::note);
        if let Some(note) = note {
            cx.note(note);
        }
    }
}
