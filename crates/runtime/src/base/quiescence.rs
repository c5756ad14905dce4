//! When nothing goes on any more in a run, and how a worker that sleeps is woken.

use onbeat_queue::Sleeper;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// How one worker hears of what others did.
pub(crate) type WorkerInbox = onbeat_queue::Inbox<Wakeup>;

/// No alarm.
pub(crate) const NEVER: u64 = u64::MAX;

/// Brings an engine that sleeps back to work.
pub(crate) trait Unpark: Send + Sync {
    fn wake(&self);
}

/// Counts the workers that can still bring something about. A worker that sleeps without an alarm cannot; whoever wakes it
/// counts it *before* it may be awake, and is itself counted meanwhile, so the count reaches 0 only when nothing is under
/// way anywhere: then all is done, or a dead-lock is (or virtual time moves on to the next alarm).
pub(crate) struct Quiescence {
    pub active: CachePadded<AtomicU32>,
    /// Operators that are paused. While there are any, nothing is silent: somebody will let them go on. Relaxed: it is
    /// changed by those who are active.
    pub paused: AtomicU32,
    /// The count has reached 0 and no alarm was left. It never goes back.
    pub silent: AtomicBool,
    /// Virtual time in nanoseconds, under the manual clock.
    pub now_ns: AtomicU64,
    pub manual: bool,
    pub sleepers: Box<[SleepState]>,
}

/// One engine, as others see it while it sleeps.
pub(crate) struct SleepState {
    pub waker: Box<dyn Unpark>,
    /// Under the manual clock: its next alarm, or [`NEVER`].
    pub alarm_ns: AtomicU64,
    /// Under the manual clock: virtual time has come to its alarm, and it was counted as active again.
    pub called: AtomicBool,
}

impl Quiescence {
    // All orderings of `active` are AcqRel: who brings it to 0 has seen what all others did before they counted
    // themselves out. `alarm_ns` is written before the owner counts itself out and read by who reaches 0, so Relaxed is
    // enough there; `called` and `silent` are Release with the Acquire of the woken worker.

    /// One more that is awake.
    pub fn enter(&self, count: u32) {
        self.active.fetch_add(count, Ordering::AcqRel);
    }

    /// `count` fewer. Whoever is the last says what that means.
    pub fn leave(&self, count: u32) {
        if count > 0 && self.active.fetch_sub(count, Ordering::AcqRel) == count {
            self.all_quiet();
        }
    }

    #[cold]
    fn all_quiet(&self) {
        let alarms = || self.sleepers.iter().map(|sleeper| sleeper.alarm_ns.load(Ordering::Relaxed));
        let next_ns = if self.manual { alarms().min().unwrap_or(NEVER) } else { NEVER };
        if next_ns == NEVER && self.paused.load(Ordering::Relaxed) > 0 {
            return;
        }
        if next_ns == NEVER {
            self.silent.store(true, Ordering::Release);
            self.sleepers.iter().for_each(|sleeper| sleeper.waker.wake());
            return;
        }
        // Counted in meanwhile, so that nobody else finds the count at 0 before all that are due are awake.
        self.enter(1);
        self.now_ns.fetch_max(next_ns, Ordering::Relaxed);
        for sleeper in &self.sleepers {
            let alarm_ns = sleeper.alarm_ns.load(Ordering::Relaxed);
            let taken = || {
                let (done, lost) = (Ordering::Relaxed, Ordering::Relaxed);
                sleeper.alarm_ns.compare_exchange(alarm_ns, NEVER, done, lost).is_ok()
            };
            if alarm_ns <= next_ns && taken() {
                self.enter(1);
                sleeper.called.store(true, Ordering::Release);
                sleeper.waker.wake();
            }
        }
        self.leave(1);
    }
}

/// The sleeper of one inbox.
pub(crate) struct Wakeup {
    pub quiet: Arc<Quiescence>,
    pub part: usize,
}

impl Sleeper for Wakeup {
    fn claim(&self) {
        self.quiet.enter(1);
    }

    fn unclaim(&self) {
        self.quiet.leave(1);
    }

    fn wake(&self) {
        self.quiet.sleepers[self.part].waker.wake();
    }
}
