//! Lanes of a replicated stretch whose operators remember samples: marks on the chunks, and the number of
//! samples that the operators of a lane need from before their own.
//!
//! One worker after the other continues the stream for a *block* of some chunks. Each first gets *history*: a
//! copy of the last samples that went to the worker before it. Its operators handle history like any other
//! chunk, but what they send for it is history again, and the end of the lane drops it. So they are as if
//! they had seen the whole stream when the first own chunk comes. An empty chunk ends the block.

mod orders;

pub(crate) use orders::{LaneCopy, LaneOrder};

use super::kernel::Ratio;
use onbeat_queue::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use orders::Orders;
use std::sync::{Arc, Mutex, OnceLock};

/// What a chunk means in a lane; none of it outside of lanes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Marks(u32);

impl Marks {
    pub const NONE: Marks = Marks(0);
    /// The samples were sent in another lane.
    pub const HISTORY: Marks = Marks(1);
    /// The samples do not follow those before them in this lane. `Info::start` has the number of the first.
    pub const RESUME: Marks = Marks(2);
    /// The stream goes on in [`another lane`](Self::next_lane). The chunk has no samples.
    pub const END: Marks = Marks(4);
    /// The stream ends. The chunk has no samples.
    pub const LAST: Marks = Marks(8);
    /// Bits below the number of a lane.
    const LANE: u32 = 16;

    /// [`END`](Self::END), and the lane in which the stream goes on.
    pub fn end(next_lane: usize) -> Marks {
        Marks(Marks::END.0 | (next_lane as u32) << Self::LANE)
    }

    /// The lane in which the stream goes on after [`END`](Self::END).
    pub fn next_lane(self) -> usize {
        (self.0 >> Self::LANE) as usize
    }

    #[inline]
    pub fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }

    #[must_use]
    pub fn with(self, mark: Marks) -> Self {
        Marks(self.0 | mark.0)
    }

    /// With the mark only if `is_set`.
    #[must_use]
    pub fn set(self, mark: Marks, is_set: bool) -> Self {
        if is_set { self.with(mark) } else { Marks(self.0 & !mark.0) }
    }
}

/// How an operator handles the marks of chunks in lanes.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneMemory {
    /// It does not know them.
    Unmarked,
    /// It passes them on, and remembers nothing.
    None,
    /// It passes them on, and continues a stream anywhere after some history.
    Finite,
}

/// Where the copies of one operator say what they need, and what they agree about. The first that starts
/// says it.
#[doc(hidden)]
#[derive(Debug, Clone, Default)]
pub struct LaneSlot(Arc<SlotState>);

#[derive(Debug, Default)]
struct SlotState {
    known: OnceLock<(usize, Ratio)>,
    flow: Arc<LaneFlow>,
    /// Samples of the operator, and in the same time before the stretch.
    scale: OnceLock<(u64, u64)>,
    copies: AtomicU32,
    orders: Mutex<Orders>,
    /// Number of orders whose sample is known.
    placed: AtomicU64,
}

/// What the spread and all operators of a stretch share.
#[derive(Debug, Default)]
struct LaneFlow {
    /// Number of orders that the spread has not seen.
    given: AtomicU32,
    /// Number of the next sample that the spread hands out.
    end: AtomicU64,
}

impl LaneSlot {
    pub(crate) fn tell(&self, memory: usize, ratio: Ratio) {
        self.0.known.get_or_init(|| (memory, ratio));
    }
}

impl SlotState {
    /// Number of a sample of the operator, from that of the sample before the stretch at the same instant.
    fn scale(&self, sample: u64) -> u64 {
        let (up, down) = self.scale.get().copied().unwrap_or((1, 1));
        (u128::from(sample) * u128::from(up)).div_ceil(u128::from(down)) as u64
    }
}

/// What all operators of a lane need, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct LaneNeeds {
    slots: Vec<LaneSlot>,
    flow: Arc<LaneFlow>,
}

impl LaneNeeds {
    /// Adds an operator at the end.
    pub fn add(&mut self) -> LaneSlot {
        let slot = LaneSlot(Arc::new(SlotState { flow: Arc::clone(&self.flow), ..SlotState::default() }));
        self.slots.push(slot.clone());
        slot
    }

    /// Number of samples of history before the first operator; `None` until all operators have started.
    pub fn samples(&self) -> Option<usize> {
        let samples = self.slots.iter().rev().try_fold(0, |sent: usize, LaneSlot(slot)| {
            let &(memory, Ratio { up, down }) = slot.known.get()?;
            let (up, down) = (up as usize, down as usize);
            // An operator that changes the rate or sends rows skips up to `down` samples when it resumes, and
            // has sent an output or a row more or less than the ratio says.
            let slack = if (up, down) == (1, 1) { 0 } else { 2 * down };
            Some(memory.saturating_add(sent.saturating_mul(down).div_ceil(up)).saturating_add(slack))
        });
        let mut scale = (1, 1);
        for LaneSlot(slot) in self.slots.iter().filter(|_| samples.is_some()) {
            slot.scale.get_or_init(|| scale);
            if let Some(&(_, Ratio { up, down })) = slot.known.get() {
                scale = (scale.0 * u64::from(up), scale.1 * u64::from(down));
            }
        }
        samples
    }

    /// Says that the spread hands out the samples from `begin` to `end`. Orders that have come get a place.
    #[inline]
    pub fn hand_out(&self, begin: u64, end: u64) {
        // Relaxed: a hint. The locks of the slots order what is read after it.
        if self.flow.given.load(Ordering::Relaxed) > 0 {
            self.place(begin);
        }
        self.flow.end.store(end, Ordering::Relaxed);
    }

    #[cold]
    fn place(&self, next: u64) {
        self.flow.given.store(0, Ordering::Relaxed);
        self.slots.iter().for_each(|LaneSlot(slot)| slot.place(next));
    }
}
