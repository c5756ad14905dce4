//! Quiescence: the moment when nothing is in flight in any part of a run; and how parked workers are woken.

use onbeat_queue::Sleeper;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// The inbox of one worker: the edges and events that other threads changed.
pub(crate) type WorkerInbox = onbeat_queue::Inbox<Wakeup>;

/// The time of an alarm that is not set.
pub(crate) const NEVER: u64 = u64::MAX;

/// Brings a parked engine back to work.
pub(crate) trait Unpark: Send + Sync {
    fn wake(&self);
}

/// Counts the engines that can still make something happen.
///
/// A parked engine without an alarm cannot. The thread that wakes an engine counts it in *before* the engine
/// can be awake, and is itself counted in meanwhile. So the count reaches 0 only if nothing is in flight
/// anywhere: the run is over, or it is a deadlock, or virtual time moves on to the next alarm.
pub(crate) struct Quiescence {
    /// Number of engines that are counted in.
    pub active: CachePadded<AtomicU32>,
    /// Number of paused operators. While there are any, the run is not over: someone will resume them.
    /// Relaxed: only active engines change it.
    pub paused: AtomicU32,
    /// Whether the count has reached 0 without an alarm left. It is never reset.
    pub silent: AtomicBool,
    /// Under the manual clock: virtual time in nanoseconds.
    pub now_ns: AtomicU64,
    /// Whether the run has the manual clock.
    pub manual: bool,
    /// Per part: its state while it is parked.
    pub sleepers: Box<[SleepState]>,
}

/// State of one engine that other threads need while it is parked.
pub(crate) struct SleepState {
    pub waker: Box<dyn Unpark>,
    /// Under the manual clock: its next alarm, or [`NEVER`].
    pub alarm_ns: AtomicU64,
    /// Under the manual clock: whether virtual time has reached its alarm, and it was counted in again.
    pub called: AtomicBool,
}

impl Quiescence {
    // All orderings of `active` are AcqRel: the thread that brings it to 0 has seen what all others did
    // before they counted themselves out. `alarm_ns` is written before the owner counts itself out, and read
    // by the thread that reaches 0, so Relaxed is enough there. `called` and `silent` are Release; partner:
    // the Acquire of the woken worker.

    /// Counts `count` engines in.
    pub fn enter(&self, count: u32) {
        self.active.fetch_add(count, Ordering::AcqRel);
    }

    /// Counts `count` engines out. If none is left, ends the run or moves virtual time.
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
        // This thread is counted in meanwhile, so that no other finds the count at 0 before all due engines
        // are awake.
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

/// The sleeper of one inbox: counts a part in before it is woken.
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
