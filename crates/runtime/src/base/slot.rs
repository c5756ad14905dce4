//! What a part shows all the time to whoever watches the run.

use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What a part shows all the time.
pub(crate) struct PartSlot {
    pub answers: CachePadded<Answers>,
    /// The code of an operator that it is in: see [`within`]. Written at each step.
    within: CachePadded<AtomicU32>,
    /// The worker that has stepped it last. Where parts are shared.
    worker: AtomicU32,
}

#[derive(Default)]
pub(crate) struct Answers {
    /// The last picture that it has painted.
    pub answered: AtomicU64,
    /// Something is asked of it. Relaxed: a hint, so that it does not let it wait for long.
    pub called: AtomicBool,
}

/// In which code of an operator a part is: the operator's number there, and one of these.
pub(crate) mod within {
    /// In none.
    pub const NONE: u32 = u32::MAX;
    /// In its `start` or `stop`, and not in a step: it answers nobody meanwhile.
    pub const START: u32 = 1 << 30;
    pub const STOP: u32 = 1 << 31;
    /// The operator.
    pub const OPERATOR: u32 = START - 1;
}

impl PartSlot {
    /// It goes into the code of an operator. Relaxed throughout: for whoever looks from outside, nothing goes by it.
    #[inline(always)]
    pub fn enter(&self, operator: u32) {
        self.within.store(operator, Ordering::Relaxed);
    }

    /// It is in none now.
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
