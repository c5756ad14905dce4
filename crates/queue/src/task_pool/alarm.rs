//! When items want to be woken by the clock, and until when threads sleep.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{CachePadded, planted};

const NEVER: u64 = u64::MAX;

pub(super) struct Alarms {
    /// By item; [`NEVER`] for none.
    items: Box<[AtomicU64]>,
    /// Not later than the earliest of them.
    next: CachePadded<AtomicU64>,
    /// By thread that sleeps: when it gets up by itself.
    sleepers: Box<[CachePadded<AtomicU64>]>,
}

impl Alarms {
    pub fn new(threads: usize, items: usize) -> Self {
        Alarms {
            items: (0..items).map(|_| AtomicU64::new(NEVER)).collect(),
            next: CachePadded::new(AtomicU64::new(NEVER)),
            sleepers: (0..threads).map(|_| CachePadded::new(AtomicU64::new(NEVER))).collect(),
        }
    }

    pub fn set(&self, item: u32, time_ns: u64) {
        let alarm = &self.items[item as usize];
        if time_ns == NEVER {
            // Relaxed: `next` stays as it is, which is not too late. A load first: there rarely is an alarm.
            if alarm.load(Ordering::Relaxed) != NEVER {
                alarm.store(NEVER, Ordering::Relaxed);
            }
            return;
        }
        alarm.store(time_ns, Ordering::Relaxed);
        // Release, partner: the Acquire in `take_due`: who takes `next` away sees the alarm.
        self.next.fetch_min(time_ns, Ordering::Release);
    }

    #[inline]
    pub fn next_ns(&self) -> u64 {
        // Relaxed: a look. `begin_park` has its fence before.
        self.next.load(Ordering::Relaxed)
    }

    pub fn take_due(&self, now_ns: u64, mut due: impl FnMut(u32)) {
        if self.next_ns() > now_ns {
            return;
        }
        // First of all: whoever sets an alarm that the loop below misses lowers it again after this. Acquire, partner: the
        // Release in `set`.
        if !planted("next reset behind the scan") {
            self.next.swap(NEVER, Ordering::Acquire);
        }
        let mut next_ns = NEVER;
        for (item, alarm) in self.items.iter().enumerate() {
            let time_ns = alarm.load(Ordering::Relaxed);
            if time_ns > now_ns {
                next_ns = next_ns.min(time_ns);
                continue;
            }
            // Relaxed: only one gets it, and nothing else is handed over.
            if alarm.compare_exchange(time_ns, NEVER, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                due(item as u32);
            }
        }
        if planted("next reset behind the scan") {
            self.next.store(next_ns, Ordering::Relaxed);
        }
        if next_ns != NEVER {
            // Release: as in `set`.
            self.next.fetch_min(next_ns, Ordering::Release);
        }
    }

    /// Before a thread says that it sleeps: nobody may take an old time for its new one.
    pub fn begin_sleep(&self, thread: usize) {
        if !planted("an old time is left") {
            self.sleepers[thread].store(NEVER, Ordering::Relaxed);
        }
    }

    /// After it said so.
    pub fn sleep_until_next(&self, thread: usize) {
        self.sleepers[thread].store(self.next_ns(), Ordering::Relaxed);
    }

    pub fn parked_until_ns(&self, thread: usize) -> u64 {
        self.sleepers[thread].load(Ordering::Relaxed)
    }
}
