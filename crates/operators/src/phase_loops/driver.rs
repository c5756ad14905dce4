//! The ports of a loop: one input, and several outputs for each sample.

use crate::dsp::not_finite;
use crate::found::time_ns;
use num_complex::Complex;
use onbeat_runtime::{Chunk, Context, Ending, Error, Input, Output, Sample, Stamp, Step, Tag};
use std::collections::VecDeque;

/// State of a loop at one sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoopPoint {
    /// The sample, turned back by the phase of the reference.
    pub out: Complex<f32>,
    pub reference: Complex<f32>,
    pub frequency_hz: f32,
    /// In radians.
    pub error: f32,
    pub is_locked: bool,
}

/// A loop that takes samples one by one.
pub(super) trait CarrierLoop<T> {
    /// Takes a sample, which is finite.
    fn push(&mut self, x: T) -> LoopPoint;
}

/// The outputs; any of them can be unconnected.
pub(super) struct LoopPorts<'p> {
    pub out: &'p mut Output<Chunk<Complex<f32>>>,
    pub reference: Option<&'p mut Output<Chunk<Complex<f32>>>>,
    pub frequency: &'p mut Output<Chunk<f32>>,
    pub error: &'p mut Output<Chunk<f32>>,
    pub locked: &'p mut Output<f64>,
}

/// Carries chunks between the ports and a loop.
pub(super) struct LoopDriver<T: Sample, L> {
    carrier: Option<L>,
    rate_hz: f64,
    /// The chunk in hand, and how much of it is used up.
    held: Option<(Chunk<T>, usize)>,
    stamp: Stamp,
    /// Changes of the lock that were not sent, each with its position in the stream.
    changes: VecDeque<(u64, bool)>,
    is_locked: bool,
    taken: u64,
    locked: u64,
    times: u64,
    frequency_hz: f32,
    not_finite: u64,
}

impl<T: Sample, L> Default for LoopDriver<T, L> {
    fn default() -> Self {
        LoopDriver {
            carrier: None,
            rate_hz: 0.0,
            held: None,
            stamp: Stamp::default(),
            changes: VecDeque::new(),
            is_locked: false,
            taken: 0,
            locked: 0,
            times: 0,
            frequency_hz: 0.0,
            not_finite: 0,
        }
    }
}

/// A chunk for an output that is connected. `Err` if there is none now.
fn chunk_for<T: Sample>(output: &Output<Chunk<T>>, cx: &mut Context) -> Result<Option<Chunk<T>>, ()> {
    if output.is_connected() { output.chunk(cx).map(Some).ok_or(()) } else { Ok(None) }
}

/// The samples of a new chunk.
fn samples_of<T: Sample>(chunk: &mut Option<Chunk<T>>) -> &mut [T] {
    chunk.as_mut().and_then(Chunk::edit_unique).unwrap_or_default()
}

/// Samples of the outputs to write; those of an output that is not connected are empty.
struct LoopSlices<'s> {
    out: &'s mut [Complex<f32>],
    reference: &'s mut [Complex<f32>],
    frequency: &'s mut [f32],
    error: &'s mut [f32],
}

/// Where samples come from: their position and rate, and their tags.
struct LoopOrigin<'t> {
    start: u64,
    rate_hz: f64,
    used: usize,
    count: usize,
    tags: &'t [Tag],
}

impl LoopOrigin<'_> {
    fn send<T: Sample>(
        &self,
        output: &mut Output<Chunk<T>>,
        chunk: Option<Chunk<T>>,
        cx: &mut Context,
    ) -> Result<(), Error> {
        let Some(mut chunk) = chunk else { return Ok(()) };
        chunk.truncate(self.count);
        let info = chunk.info_mut();
        (info.start, info.rate_hz) = (self.start, self.rate_hz);
        let now = self.used..self.used + self.count;
        let mine = self.tags.iter().filter(|tag| now.contains(&tag.offset));
        info.tags.extend(mine.map(|tag| Tag { offset: tag.offset - self.used, ..tag.clone() }));
        output.push(cx, chunk)
    }
}

impl<T: LoopSample, L: CarrierLoop<T>> LoopDriver<T, L> {
    pub fn step(
        &mut self,
        input: &mut Input<Chunk<T>>,
        ports: LoopPorts<'_>,
        make: impl FnOnce(f64) -> Result<L, Error>,
        cx: &mut Context,
    ) -> Result<Step, Error> {
        if !self.send_changes(ports.locked, cx)? {
            return Ok(Step::Again);
        }
        if self.held.is_none() {
            let Some(chunk) = input.pop(cx) else { return Ok(Step::Wait) };
            self.begin(chunk.rate_hz(), make)?;
            self.stamp = cx.stamp();
            self.held = (!chunk.is_empty()).then_some((chunk, 0));
        }
        let mut ports = ports;
        if self.held.is_some() && !self.process(&mut ports, cx)? {
            return Ok(Step::Wait);
        }
        let is_sent = self.send_changes(ports.locked, cx)?;
        let is_done = self.held.is_none() && is_sent && !input.is_ended(cx);
        Ok(if is_done { Step::Wait } else { Step::Again })
    }

    fn begin(&mut self, rate_hz: f64, make: impl FnOnce(f64) -> Result<L, Error>) -> Result<(), Error> {
        if self.carrier.is_none() {
            (self.carrier, self.rate_hz) = (Some(make(rate_hz)?), rate_hz);
        }
        if self.rate_hz == rate_hz {
            return Ok(());
        }
        Err(Error::new(format!(
            "the sample rate of its input changed from {} Hz to {rate_hz} Hz: resample before merging streams",
            self.rate_hz
        )))
    }

    /// Processes the chunk in hand, as far as the outputs have room. Returns whether there were chunks.
    fn process(&mut self, ports: &mut LoopPorts<'_>, cx: &mut Context) -> Result<bool, Error> {
        let Some((chunk, used)) = self.held.take() else { return Ok(true) };
        let reference = match &ports.reference {
            Some(output) => chunk_for(output, cx),
            None => Ok(None),
        };
        // Chunks for all outputs or for none: one that is held while the store is empty is missing elsewhere.
        let all =
            (chunk_for(ports.out, cx), reference, chunk_for(ports.frequency, cx), chunk_for(ports.error, cx));
        let (Ok(mut out), Ok(mut reference), Ok(mut frequency), Ok(mut error)) = all else {
            self.held = Some((chunk, used));
            return Ok(false);
        };
        let room = |capacity: Option<usize>| capacity.unwrap_or(usize::MAX);
        let count = (chunk.len() - used)
            .min(room(out.as_ref().map(Chunk::capacity)))
            .min(room(reference.as_ref().map(Chunk::capacity)))
            .min(room(frequency.as_ref().map(Chunk::capacity)))
            .min(room(error.as_ref().map(Chunk::capacity)));
        let start = chunk.info().start + used as u64;
        let to = LoopSlices {
            out: samples_of(&mut out),
            reference: samples_of(&mut reference),
            frequency: samples_of(&mut frequency),
            error: samples_of(&mut error),
        };
        self.follow(&chunk[used..used + count], start, to, ports.locked.is_connected());
        let origin = LoopOrigin { start, rate_hz: self.rate_hz, used, count, tags: chunk.tags() };
        cx.set_stamp(self.stamp);
        origin.send(ports.out, out, cx)?;
        if let Some(output) = &mut ports.reference {
            origin.send(output, reference, cx)?;
        }
        origin.send(ports.frequency, frequency, cx)?;
        origin.send(ports.error, error, cx)?;
        if used + count < chunk.len() {
            self.held = Some((chunk, used + count));
        }
        Ok(true)
    }

    /// Takes samples, and writes to the outputs that are connected.
    fn follow(&mut self, samples: &[T], start: u64, to: LoopSlices<'_>, tells: bool) {
        let Some(carrier) = &mut self.carrier else { return };
        let LoopSlices { out, reference, frequency, error } = to;
        for (at, x) in samples.iter().enumerate() {
            self.not_finite += u64::from(!x.is_good());
            let point = carrier.push(if x.is_good() { *x } else { T::zeroed() });
            if let Some(out) = out.get_mut(at) {
                *out = point.out;
            }
            if let Some(reference) = reference.get_mut(at) {
                *reference = point.reference;
            }
            if let Some(frequency) = frequency.get_mut(at) {
                *frequency = point.frequency_hz;
            }
            if let Some(error) = error.get_mut(at) {
                *error = point.error;
            }
            self.locked += u64::from(point.is_locked);
            self.frequency_hz = point.frequency_hz;
            if point.is_locked != std::mem::replace(&mut self.is_locked, point.is_locked) {
                self.times += u64::from(point.is_locked);
                if tells {
                    self.changes.push_back((start + at as u64, point.is_locked));
                }
            }
        }
        self.taken += samples.len() as u64;
    }

    /// Sends changes of the lock. Returns whether all were sent.
    fn send_changes(&mut self, output: &mut Output<f64>, cx: &mut Context) -> Result<bool, Error> {
        while let Some(&(position, is_locked)) = self.changes.front() {
            if output.room(cx) == 0 {
                return Ok(false);
            }
            let mut stamp = self.stamp;
            stamp.time_ns = time_ns(position, self.rate_hz);
            cx.set_stamp(stamp);
            output.push(cx, f64::from(u8::from(is_locked)))?;
            self.changes.pop_front();
        }
        Ok(true)
    }

    /// Notes how well the loop followed.
    pub fn say(&self, cx: &mut Context, ending: Ending) {
        if ending == Ending::Failed || self.taken == 0 {
            return;
        }
        let percent = 100.0 * self.locked as f64 / self.taken as f64;
        let LoopDriver { times, frequency_hz, .. } = self;
        let lock = match times {
            0 => format!("never locked; the frequency was {frequency_hz} Hz at the end"),
            1 => format!("locked for {percent:.1} % of the samples; {frequency_hz} Hz at the end"),
            _ => format!(
                "locked {times} times, for {percent:.1} % of the samples; {frequency_hz} Hz at the end"
            ),
        };
        cx.note(lock);
        if let Some(note) = not_finite(self.not_finite, "counted as 0") {
            cx.note(note);
        }
    }
}

/// A sample that a loop takes.
pub trait LoopSample: Sample {
    /// Whether it is finite.
    fn is_good(&self) -> bool;
}

impl LoopSample for f32 {
    fn is_good(&self) -> bool {
        self.is_finite()
    }
}

impl LoopSample for Complex<f32> {
    fn is_good(&self) -> bool {
        self.is_finite()
    }
}
