//! The slot of a part: atomics that show other threads what the part does.

use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The slot of a part.
pub(crate) struct PartSlot {
    pub answers: CachePadded<Answers>,
    /// The operator whose code the part runs: see [`within`]. The part writes it at each step.
    within: CachePadded<AtomicU32>,
    /// The worker that stepped the part last, if threads share parts. That worker writes it.
    worker: AtomicU32,
}

/// Requests of other threads to the part, and its answers.
#[derive(Default)]
pub(crate) struct Answers {
    /// Number of the last status snapshot that the part wrote.
    pub answered: AtomicU64,
    /// Whether a request waits for the part. Relaxed: a hint that makes the part answer soon.
    pub called: AtomicBool,
}

/// Values of the word that says which operator's code a part runs: the operator's number, and perhaps a flag.
pub(crate) mod within {
    /// The part runs no operator's code.
    pub const NONE: u32 = u32::MAX;
    /// Flag of `start`. The part answers no requests during `start` and `stop`.
    pub const START: u32 = 1 << 30;
    /// Flag of `stop`.
    pub const STOP: u32 = 1 << 31;
    /// Mask of the operator's number.
    pub const OPERATOR: u32 = START - 1;
}

impl PartSlot {
    /// Notes that the part enters the code of an operator. Relaxed: readers on other threads conclude nothing
    /// else from it.
    #[inline(always)]
    pub fn enter(&self, operator: u32) {
        self.within.store(operator, Ordering::Relaxed);
    }

    /// Notes that the part runs no operator's code.
    pub fn exit(&self) {
        self.enter(within::NONE);
    }

    pub fn within(&self) -> u32 {
        self.within.load(Ordering::Relaxed)
    }

    pub fn set_worker(&self, worker: usize) {
        self.worker.store(worker as u32, Ordering::Relaxed);
    }

    pub fn worker(&self) -> usize {
        self.worker.load(Ordering::Relaxed) as usize
    }
}

impl Default for PartSlot {
    fn default() -> Self {
        PartSlot {
            answers: CachePadded::default(),
            within: CachePadded::new(AtomicU32::new(within::NONE)),
            worker: AtomicU32::new(0),
        }
    }
}
