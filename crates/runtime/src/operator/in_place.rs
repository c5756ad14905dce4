//! Operators made of maps: they change samples in the chunk that they are in.

use crate::operator::changes::Changes;
use crate::operator::chunk::{Chunk, Info};
use crate::operator::inline::{Inline, Shortcut};
use crate::operator::kernel::{Map, Ratio};
use crate::operator::lanes::{LaneCopy, LaneMemory, LaneSlot, Marks};
use crate::operator::stream::{check_rate, say};
use crate::operator::{Ending, Operator, Step};
use crate::{Context, Error, Input, Output, Ports, Value};
use onbeat_queue::{fetch_to_read, fetch_to_write};

/// An operator made of a [`Map`]: it changes samples in place, and passes chunks on with their tags, rate and
/// stamp.
///
/// ```
/// use onbeat_runtime::{InPlace, Map};
/// struct Invert;
/// impl Map for Invert {
///     type Sample = f32;
///     fn map(&mut self, samples: &mut [f32]) {
///         samples.iter_mut().for_each(|x| *x = -*x);
///     }
/// }
/// let invert = InPlace::new(Invert);
/// ```
pub struct InPlace<F: Map> {
    /// Samples in.
    pub input: Input<Chunk<F::Sample>>,
    /// The same samples, changed.
    pub out: Output<Chunk<F::Sample>>,
    map: F,
    /// Sample rate at which a chunk needs no further checks: that of the chunks before it. [`UNUSUAL`] before
    /// the first chunk, and while parameter changes are pending.
    usual_hz: f64,
    rate_hz: Option<f64>,
    changes: Changes<F>,
    received: Received,
    /// Whether this is a replica without state, which counts samples by the positions in the chunks.
    is_replica: bool,
    /// Place in a lane whose chunks have marks.
    lane: Option<Box<MapLane>>,
    /// Whether the map continues a stream anywhere after some history.
    is_finite: bool,
}

/// What the operator keeps in a lane.
struct MapLane {
    copy: LaneCopy,
    /// Whether the last chunk was history.
    in_history: bool,
}

/// Number of samples received, on a cache line of its own. If the threads of a wave run a map without state,
/// this is the only data of the operator that moves between cores.
#[derive(Default)]
#[repr(align(64))]
struct Received(u64);

/// Adds this number of samples to the received ones when dropped, also if the map panics.
struct Coming<'r>(&'r mut Received, u64);

impl Drop for Coming<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.0 += self.1;
    }
}

/// Value of [`InPlace::usual_hz`] that no rate is equal to.
const UNUSUAL: f64 = f64::NAN;

impl<F: Map> InPlace<F> {
    /// Makes an operator with the ports `in` and `out`.
    pub fn new(mut map: F) -> Self {
        InPlace {
            is_finite: map.finite().is_some() && map.replica().is_some(),
            lane: None,
            input: Input::default(),
            out: Output::default(),
            map,
            usual_hz: UNUSUAL,
            rate_hz: None,
            changes: Changes::default(),
            received: Received::default(),
            is_replica: false,
        }
    }
}

impl<F: Map> InPlace<F> {
    /// Changes the samples of a chunk with this head.
    #[inline]
    fn change(&mut self, samples: &mut [F::Sample], info: &Info) -> Result<(), Error> {
        let rate_hz = info.rate_hz;
        if self.is_replica {
            self.received.0 = info.start;
        }
        if self.lane.is_some() {
            self.heed_marks(info)?;
        }
        if self.usual_hz != rate_hz {
            return self.change_and_be_changed(samples, rate_hz);
        }
        // The samples count as received even if the map panics. No work follows the call, so no value is kept
        // for later.
        self.received.0 += samples.len() as u64;
        if !samples.is_empty() {
            self.map.map(samples);
        }
        Ok(())
    }

    /// Resumes and begins where the marks of a chunk say so.
    #[inline(never)]
    fn heed_marks(&mut self, info: &Info) -> Result<(), Error> {
        let Some(lane) = &mut self.lane else { return Ok(()) };
        if lane.copy.has_placed() {
            let orders = lane.copy.take_placed();
            self.changes.add_orders(orders, |name, value| self.map.change(name, value))?;
            self.usual_hz = UNUSUAL;
        }
        let was_in_history = std::mem::replace(&mut lane.in_history, info.marks.has(Marks::HISTORY));
        if info.marks.has(Marks::RESUME) {
            if check_rate(&mut self.rate_hz, info.rate_hz)? {
                self.start_map(info.rate_hz)?;
            }
            self.received.0 = info.start;
            self.changes.make_in_lane(info.start, &mut self.map, |map, at| {
                if let Some(finite) = map.finite() {
                    finite.resume(at);
                }
            })?;
        } else if was_in_history
            && !info.marks.has(Marks::HISTORY)
            && let Some(finite) = self.map.finite()
        {
            finite.begin();
        }
        Ok(())
    }

    fn start_map(&mut self, rate_hz: f64) -> Result<(), Error> {
        self.map.start(rate_hz)?;
        if let Some(lane) = &self.lane {
            let memory = self.map.finite().map_or(0, |finite| finite.memory());
            lane.copy.slot.tell(memory, Ratio { up: 1, down: 1 });
        }
        Ok(())
    }

    /// Changes the samples of the first chunk, or of a chunk while parameter changes are pending.
    #[cold]
    fn change_and_be_changed(&mut self, mut samples: &mut [F::Sample], rate_hz: f64) -> Result<(), Error> {
        if check_rate(&mut self.rate_hz, rate_hz)? {
            self.start_map(rate_hz)?;
        }
        // Counted first, as in `change`.
        let mut at = self.received.0;
        self.received.0 += samples.len() as u64;
        while !samples.is_empty() {
            self.changes.make(at, &mut self.map)?;
            let count = self.changes.before_next(at, samples.len());
            let (now, later) = samples.split_at_mut(count);
            self.map.map(now);
            at += count as u64;
            samples = later;
        }
        self.usual_hz = if self.changes.is_empty() { rate_hz } else { UNUSUAL };
        Ok(())
    }
}

impl<F: Map> Operator for InPlace<F> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn rate_behind(&mut self, rate_hz: f64) -> Result<Option<f64>, Error> {
        self.map.start(rate_hz)?;
        Ok(Some(rate_hz))
    }

    #[inline]
    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(mut chunk) = self.input.pop(cx) {
            chunk.edit(cx)?;
            if let Some((samples, info)) = chunk.parts() {
                self.change(samples, info)?;
            }
            self.out.push(cx, chunk)?;
        }
        Ok(Step::Wait)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        say(self.map.note(), cx, ending);
        say(self.changes.note(self.received.0), cx, ending);
        Ok(())
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        (self.rate_hz, self.usual_hz) = (None, UNUSUAL);
        Ok(())
    }

    fn inline(&mut self) -> Option<&mut dyn Inline> {
        Some(self)
    }

    fn replica(&self) -> Option<Box<dyn Operator>> {
        let map = self.map.replica().filter(|_| !self.is_finite)?;
        Some(Box::new(InPlace { is_replica: true, ..InPlace::new(map) }))
    }

    fn lane_memory(&self) -> LaneMemory {
        match self.is_finite {
            true => LaneMemory::Finite,
            false if self.map.replica().is_some() => LaneMemory::None,
            false => LaneMemory::Unmarked,
        }
    }

    fn lane_replica(&self, slot: LaneSlot) -> Option<Box<dyn Operator>> {
        let lane = Some(Box::new(MapLane { copy: LaneCopy::new(slot), in_history: false }));
        let copy = InPlace::new(self.map.replica()?);
        Some(Box::new(InPlace { lane, ..copy }))
    }

    fn settable(&self) -> &'static [&'static str] {
        self.map.settable()
    }

    fn set(&mut self, _: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        let change = self.map.change(name, value)?;
        if let Some(lane) = &mut self.lane {
            return lane.copy.give(name, value, None, self.changes.len());
        }
        change(&mut self.map)
    }

    fn set_at(&mut self, _: &mut Context, name: &str, value: &Value, sample: u64) -> Result<(), Error> {
        let change = self.map.change(name, value)?;
        if let Some(lane) = &mut self.lane {
            return lane.copy.give(name, value, Some(sample), self.changes.len());
        }
        self.usual_hz = UNUSUAL;
        self.changes.add(sample, self.received.0, change)
    }
}

impl<F: Map> Inline for InPlace<F> {
    fn shortcut(&self) -> Shortcut {
        Shortcut::Edit(self.input.chunks(), self.out.chunks())
    }

    #[inline]
    fn edit(&mut self, samples: &mut [u8], info: &Info) -> Result<(), Error> {
        self.change(bytemuck::cast_slice_mut(samples), info)
    }

    fn prefetch(&self) {
        fetch_to_write(&self.received);
        // A map without state is in the caches of several cores, and stays there.
        fetch_to_read(&self.map);
    }

    #[inline]
    fn edit_migrated(&mut self, samples: &mut [u8], info: &Info) -> Result<(), Error> {
        if self.is_replica || self.lane.is_some() || self.usual_hz != info.rate_hz || samples.is_empty() {
            return self.edit(samples, info);
        }
        // After the map: data that other cores have written may not have arrived before.
        let samples = bytemuck::cast_slice_mut(samples);
        let _coming = Coming(&mut self.received, samples.len() as u64);
        self.map.map(samples);
        Ok(())
    }
}
