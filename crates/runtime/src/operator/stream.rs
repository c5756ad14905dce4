//! Operators made of kernels: they carry chunks, tags, rates and stamps, so that a kernel sees only samples.

mod lane;
mod rows;
mod tags;

use crate::operator::changes::Changes;
use crate::operator::chunk::{Chunk, Info, Tag};
use crate::operator::inline::{Inline, Shortcut};
use crate::operator::kernel::{Kernel, Ratio};
use crate::operator::lanes::{LaneMemory, LaneSlot};
use crate::operator::message::Stamp;
use crate::operator::{Ending, Operator, Step};
use crate::{Context, Error, Input, Output, Ports, Progress, Value};
use lane::StreamLane;
use rows::whole_rows;
use std::any::TypeId;
use std::collections::VecDeque;

/// An operator made of a [`Kernel`]: chunks of one type and rate come in, chunks of another go out.
///
/// The output does not depend on where chunks begin and end. A tag stays on the sample of the same instant.
/// If the output has no sample there, or no [row](Kernel::row) begins there, the tag moves to the next one
/// (the one before may have been sent). Tags after the last output sample are lost; a note in the record has
/// their number.
///
/// ```
/// use onbeat_runtime::{Kernel, Progress, Ratio, Stream};
///
/// /// Every second sample.
/// struct Half { odd: bool }
/// impl Kernel for Half {
///     type In = f32;
///     type Out = f32;
///     fn ratio(&self) -> Ratio { Ratio { up: 1, down: 2 } }
///     fn process(&mut self, input: &[f32], output: &mut [f32]) -> Progress {
///         let (mut consumed, mut produced) = (0, 0);
///         for &sample in input {
///             if !self.odd {
///                 let Some(place) = output.get_mut(produced) else { break };
///                 *place = sample;
///                 produced += 1;
///             }
///             self.odd = !self.odd;
///             consumed += 1;
///         }
///         Progress { consumed, produced }
///     }
/// }
/// let half = Stream::new(Half { odd: false });
/// ```
pub struct Stream<K: Kernel> {
    /// Samples in.
    pub input: Input<Chunk<K::In>>,
    /// Samples out.
    pub out: Output<Chunk<K::Out>>,
    kernel: K,
    /// The chunk in hand, and how much of it is used up.
    held: Option<(Chunk<K::In>, usize)>,
    /// Sample rate of the input, once it is known.
    rate_hz: Option<f64>,
    /// Whether the kernel filled the whole output last time. It may then have more without new input.
    more: bool,
    /// Pending parameter changes.
    changes: Changes<K>,
    received: u64,
    sent: u64,
    /// Tags on samples that are not sent yet, by index in the output.
    tags: VecDeque<(u64, Tag)>,
    stamp: Stamp,
    /// Whether this is a replica, which counts samples by the positions in the chunks.
    is_replica: bool,
    /// Whether the kernel has no state. It then gives one output sample per input sample, at once.
    is_plain: bool,
    /// Whether the kernel continues a stream anywhere after some history.
    is_finite: bool,
    /// Place in a lane whose chunks have marks.
    lane: Option<Box<StreamLane>>,
}

impl<K: Kernel> Stream<K> {
    /// Makes an operator with the ports `in` and `out`.
    pub fn new(mut kernel: K) -> Self {
        let has_copies = kernel.replica().is_some();
        let is_finite = has_copies && kernel.finite().is_some();
        let is_plain = has_copies && !is_finite && kernel.ratio() == Ratio { up: 1, down: 1 };
        Stream {
            is_plain,
            is_finite,
            lane: None,
            input: Input::default(),
            out: Output::default(),
            kernel,
            held: None,
            rate_hz: None,
            more: false,
            changes: Changes::default(),
            received: 0,
            sent: 0,
            tags: VecDeque::new(),
            stamp: Stamp::default(),
            is_replica: false,
        }
    }

    /// Returns the kernel, for an operator that prepares it in [`Operator::start`], before the first sample.
    pub fn kernel_mut(&mut self) -> &mut K {
        &mut self.kernel
    }

    fn take(&mut self, cx: &mut Context) -> Result<bool, Error> {
        let Some(chunk) = self.input.pop(cx) else { return Ok(false) };
        self.stamp = cx.stamp();
        self.check_rate(chunk.rate_hz())?;
        if self.is_replica {
            (self.received, self.sent) = (chunk.info().start, chunk.info().start);
        }
        let skipped = if self.lane.is_some() { self.heed_marks(chunk.info(), chunk.len())? } else { 0 };
        if !chunk.tags().is_empty() {
            self.keep_tags(chunk.tags());
        }
        self.received += chunk.len() as u64;
        self.held = Some((chunk, skipped));
        Ok(true)
    }

    /// Starts the kernel at the first chunk.
    #[inline]
    fn check_rate(&mut self, rate_hz: f64) -> Result<(), Error> {
        if check_rate(&mut self.rate_hz, rate_hz)? {
            self.kernel.start(rate_hz)?;
            if let Some(lane) = &self.lane {
                let memory = self.kernel.finite().map_or(0, |finite| finite.memory());
                lane.copy.slot.tell(memory, self.kernel.ratio());
            }
        }
        Ok(())
    }

    /// Returns the number of the sample that the kernel gets next.
    fn position(&self) -> u64 {
        self.received - self.held.as_ref().map_or(0, |(held, used)| (held.len() - used) as u64)
    }

    /// Writes one output sample per input sample. The first one has number `begin`.
    #[inline]
    fn give_at_once(&mut self, begin: u64, from: &[K::In], to: &mut [K::Out]) -> Result<(), Error> {
        let mut at = 0;
        while at < from.len() {
            let position = begin + at as u64;
            self.changes.make(position, &mut self.kernel)?;
            let count = self.changes.before_next(position, from.len() - at);
            let (now, out) = (&from[at..at + count], &mut to[at..at + count]);
            let Progress { consumed, produced } = self.kernel.process(now, out);
            if (consumed, produced) != (count, count) {
                return Err(Error::new(format!(
                    "the kernel took {consumed} and gave {produced} of {count} samples: one with a `replica` gives one for each, at once"
                )));
            }
            at += count;
        }
        Ok(())
    }

    fn send(&mut self, cx: &mut Context, mut chunk: Chunk<K::Out>, samples: usize) -> Result<(), Error> {
        let (Ratio { up, down }, row) = (self.kernel.ratio(), self.kernel.row());
        chunk.truncate(samples);
        let info = chunk.info_mut();
        if row > 1 {
            info.shape = [(samples / row) as u32, row as u32, 0];
        }
        if let Some(lane) = &mut self.lane {
            info.marks = lane.marks_to_send();
        }
        info.start = self.sent;
        info.rate_hz = self.rate_hz.unwrap_or(0.0) * f64::from(up) / f64::from(down);
        let end = self.sent + samples as u64;
        if !self.tags.is_empty() {
            self.put_tags(end, info);
        }
        self.sent = end;
        self.out.push(cx, chunk)
    }
}

impl<K: Kernel + Default> Default for Stream<K> {
    fn default() -> Self {
        Stream::new(K::default())
    }
}

impl<K: Kernel> Operator for Stream<K> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out).fresh();
    }

    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        self.kernel.start(rate_hz)?;
        let Ratio { up, down } = self.kernel.ratio();
        Ok(Some(rate_hz * up as f64 / down as f64))
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let working = self.held.is_some() || self.more || self.take(cx)?;
        let ended = !working && self.input.is_ended(cx);
        if !working && !ended {
            return Ok(Step::Wait);
        }
        if ended && (self.rate_hz.is_none() || self.is_plain || self.lane.is_some()) {
            return Ok(Step::Done);
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let output = chunk.edit_unique().expect("a new chunk is not shared");
        let output = whole_rows(output, self.kernel.row())?;
        let room = output.len();
        cx.set_stamp(if ended { self.stamp.without_due() } else { self.stamp });
        if self.is_at_end_of_block() {
            return self.end_block(cx, chunk);
        }
        if ended {
            let produced = self.kernel.finish(output);
            if produced == 0 {
                return Ok(Step::Done);
            }
            self.send(cx, chunk, produced)?;
            return Ok(Step::Again);
        }
        let position = self.position();
        // Output for earlier samples comes first.
        if !self.more {
            self.changes.make(position, &mut self.kernel)?;
        }
        let input = self.held.as_ref().map_or(&[][..], |(held, used)| &held[*used..]);
        let offered = self.changes.before_next(position, input.len());
        let progress = self.kernel.process(&input[..offered], output);
        let left = input.len() - progress.consumed;
        if left == 0 {
            self.held = None;
        } else if let Some((_, used)) = &mut self.held {
            *used += progress.consumed;
        }
        self.more = progress.produced == room && !self.is_plain;
        let refused = offered - progress.consumed;
        if refused > 0 && progress.produced < room {
            return Err(Error::new(format!(
                "the kernel left {refused} samples although its output had room"
            )));
        }
        // A replica sends one message per message, also for a chunk without samples.
        let must_send = left == 0 && !self.more && (self.is_plain || self.must_resume());
        if progress.produced > 0 || must_send {
            self.send(cx, chunk, progress.produced)?;
        }
        // The kernel holds no samples that would come at the end.
        let ends = !self.is_plain && self.input.is_ended(cx);
        Ok(if left > 0 || self.more || ends { Step::Again } else { Step::Wait })
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        say(self.kernel.note(), cx, ending);
        say(self.changes.note(self.received), cx, ending);
        say(self.lost_tags(), cx, ending);
        Ok(())
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        // The chunk in hand and the samples in the kernel are lost. The stream continues at the instant of
        // the next sample.
        self.sent = self.output_at(self.received);
        self.tags.clear();
        (self.held, self.more, self.rate_hz) = (None, false, None);
        Ok(())
    }

    fn inline(&mut self) -> Option<&mut dyn Inline> {
        let is_one_type = TypeId::of::<K::In>() == TypeId::of::<K::Out>();
        (self.is_plain && is_one_type).then_some(self)
    }

    fn replica(&self) -> Option<Box<dyn Operator>> {
        let kernel = self.kernel.replica().filter(|_| self.is_plain)?;
        Some(Box::new(Stream { is_replica: true, ..Stream::new(kernel) }))
    }

    fn lane_memory(&self) -> LaneMemory {
        match (self.is_finite, self.is_plain) {
            (true, _) => LaneMemory::Finite,
            (false, true) => LaneMemory::None,
            (false, false) => LaneMemory::Unmarked,
        }
    }

    fn lane_replica(&self, slot: LaneSlot) -> Option<Box<dyn Operator>> {
        let lane = Some(Box::new(StreamLane::new(slot)));
        let copy = Stream::new(self.kernel.replica()?);
        Some(Box::new(Stream { lane, ..copy }))
    }

    fn settable(&self) -> &'static [&'static str] {
        self.kernel.settable()
    }

    fn set(&mut self, _: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        let change = self.kernel.change(name, value)?;
        if let Some(lane) = &mut self.lane {
            return lane.copy.give(name, value, None, self.changes.len());
        }
        change(&mut self.kernel)
    }

    fn set_at(&mut self, _: &mut Context, name: &str, value: &Value, sample: u64) -> Result<(), Error> {
        let change = self.kernel.change(name, value)?;
        if let Some(lane) = &mut self.lane {
            return lane.copy.give(name, value, Some(sample), self.changes.len());
        }
        self.changes.add(sample, self.position(), change)
    }
}

impl<K: Kernel> Inline for Stream<K> {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Rewrite(self.input.chunks(), self.out.chunks())
    }

    #[inline]
    fn rewrite(&mut self, from: &[u8], to: &mut [u8], info: &mut Info) -> Result<(), Error> {
        self.check_rate(info.rate_hz)?;
        if self.is_replica {
            (self.received, self.sent) = (info.start, info.start);
        }
        if self.lane.is_some() {
            self.heed_marks(info, from.len())?;
        }
        let (from, to) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        let has_tags = !(info.tags.is_empty() && self.tags.is_empty());
        if has_tags {
            self.keep_tags(&info.tags);
            info.tags.clear();
        }
        // Counted first: the samples were received even if the kernel fails or panics.
        let begin = self.received;
        self.received += from.len() as u64;
        self.give_at_once(begin, from, to)?;
        // A chunk of its own: what is not of samples or time does not go over.
        info.start = self.sent;
        if has_tags {
            self.put_tags(self.sent + to.len() as u64, info);
        }
        if info.shape != [0; 3] {
            info.shape = [0; 3];
        }
        self.sent += to.len() as u64;
        Ok(())
    }
}

pub(crate) fn say(note: Option<String>, cx: &mut Context, ending: Ending) {
    if let Some(note) = note.filter(|_| ending != Ending::Failed) {
        cx.note(note);
    }
}

/// Whether this is the first chunk.
#[inline(always)]
pub(crate) fn check_rate(known: &mut Option<f64>, rate_hz: f64) -> Result<bool, Error> {
    match *known {
        Some(known) if known == rate_hz => Ok(false),
        _ => rate_changed(known, rate_hz),
    }
}

#[cold]
fn rate_changed(known: &mut Option<f64>, rate_hz: f64) -> Result<bool, Error> {
    match *known {
        None => {
            *known = Some(rate_hz);
            Ok(true)
        }
        Some(known) => Err(Error::new(format!(
            "the sample rate of its input changed from {known} Hz to {rate_hz} Hz, and a filter is made for one rate: \
             resample before merging streams"
        ))),
    }
}
