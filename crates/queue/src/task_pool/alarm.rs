//! Times at which tasks are woken, and until which threads sleep.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{CachePadded, planted};

const NEVER: u64 = u64::MAX;

pub(super) struct Alarms {
    /// By task; [`NEVER`] for none.
    tasks: Box<[AtomicU64]>,
    /// Not later than the earliest of them.
    next: CachePadded<AtomicU64>,
    /// By sleeping thread: the time at which it wakes without a call.
    sleepers: Box<[CachePadded<AtomicU64>]>,
}

impl Alarms {
    pub fn new(threads: usize, tasks: usize) -> Self {
        Alarms {
            tasks: (0..tasks).map(|_| AtomicU64::new(NEVER)).collect(),
            next: CachePadded::new(AtomicU64::new(NEVER)),
            sleepers: (0..threads).map(|_| CachePadded::new(AtomicU64::new(NEVER))).collect(),
        }
    }

    pub fn set(&self, task: u32, time_ns: u64) {
        let alarm = &self.tasks[task as usize];
        if time_ns == NEVER {
            // Relaxed: `next` stays as it is, which is not too late. A load first: alarms are rare.
            if alarm.load(Ordering::Relaxed) != NEVER {
                alarm.store(NEVER, Ordering::Relaxed);
            }
            return;
        }
        alarm.store(time_ns, Ordering::Relaxed);
        // Release, partner: the Acquire in `take_due`: a thread that clears `next` sees the alarm.
        self.next.fetch_min(time_ns, Ordering::Release);
    }

    #[inline]
    pub fn next_ns(&self) -> u64 {
        // Relaxed: a hint. `begin_park` has its fence before.
        self.next.load(Ordering::Relaxed)
    }

    pub fn take_due(&self, now_ns: u64, mut due: impl FnMut(u32)) {
        if self.next_ns() > now_ns {
            return;
        }
        // First of all: a thread that sets an alarm which the loop below misses lowers `next` again after
        // this. Acquire, partner: the Release in `set`.
        if !planted("next reset behind the scan") {
            self.next.swap(NEVER, Ordering::Acquire);
        }
        let mut next_ns = NEVER;
        for (task, alarm) in self.tasks.iter().enumerate() {
            let time_ns = alarm.load(Ordering::Relaxed);
            if time_ns > now_ns {
                next_ns = next_ns.min(time_ns);
                continue;
            }
            // Relaxed: one thread gets it, and no data goes with it.
            if alarm.compare_exchange(time_ns, NEVER, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                due(task as u32);
            }
        }
        if planted("next reset behind the scan") {
            self.next.store(next_ns, Ordering::Relaxed);
        }
        if next_ns != NEVER {
            // Release, partner: the Acquire in `take_due`, as in `set`.
            self.next.fetch_min(next_ns, Ordering::Release);
        }
    }

    /// Before a thread announces its sleep: clears its old time, so that no thread takes it for the new one.
    pub fn begin_sleep(&self, thread: usize) {
        if !planted("an old time is left") {
            self.sleepers[thread].store(NEVER, Ordering::Relaxed);
        }
    }

    /// After a thread has announced its sleep: stores its new time.
    pub fn sleep_until_next(&self, thread: usize) {
        self.sleepers[thread].store(self.next_ns(), Ordering::Relaxed);
    }

    pub fn parked_until_ns(&self, thread: usize) -> u64 {
        self.sleepers[thread].load(Ordering::Relaxed)
    }
}
