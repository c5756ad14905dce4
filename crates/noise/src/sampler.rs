//! A thread that does nothing but look at the clock: what is missing between two looks was taken away.

use crate::source::Waited;
use onbeat_os::clock;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use onbeat_queue::{Owner, Spsc};
use std::sync::Arc;

/// What it is to do. All times in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub period_ns: u64,
    /// Of each period so much is spent looking; the rest it sleeps.
    pub runtime_ns: u64,
    /// What is shorter is no gap.
    pub threshold_ns: u64,
    pub stop_single_ns: u64,
    pub stop_total_ns: u64,
    /// It tells of nothing before that moment.
    pub begin_ns: u64,
}

/// What it has to tell.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Told {
    /// Something was taken.
    Gap { start_ns: u64, end_ns: u64, waited_ns: u64 },
    /// A period is over.
    Period(Period),
}

/// One period.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Period {
    /// How long it looked.
    pub runtime_ns: u64,
    /// The sum of its gaps.
    pub noise_ns: u64,
    /// How often it looked.
    pub looks: u64,
}

/// Between the thread and whoever asks.
pub(crate) struct Line {
    pub told: Spsc<Told>,
    /// All that it had to tell of the time before this is in the ring.
    pub seen_ns: CachePadded<AtomicU64>,
    /// What had no room there.
    pub dropped: CachePadded<AtomicU64>,
    /// Whether all threads are to end.
    pub stop: Arc<AtomicBool>,
}

/// What telling of a gap takes at most, on the high side; it takes some tens of nanoseconds, but for the first touch of a page.
const TELLING_NS: u64 = 2_000;

/// Looks between two notes of how far it is.
const NOTE: u64 = 1024;

/// Looks at the clock until it is told to stop. `waited` says what part of a gap it was ready to run in, where nobody else does.
pub(crate) fn run(line: &Line, mut owner: Owner, plan: &Plan, waited: Option<&Waited>) {
    let mut tell = |told: Told| {
        if line.told.push(&mut owner, told).is_err() {
            line.dropped.fetch_add(1, Ordering::Relaxed);
        }
    };
    let wait_ns = || waited.map_or(0, |waited| waited.read_ns().unwrap_or(0));
    let is_over = || line.stop.load(Ordering::Relaxed);
    while clock::monotonic_ns() < plan.begin_ns && !is_over() {}
    let mut period_ns = clock::monotonic_ns();
    while !is_over() {
        let mut period = Period::default();
        let begin_ns = clock::monotonic_ns();
        let end_ns = begin_ns + plan.runtime_ns;
        let mut last_ns = begin_ns;
        let mut before_ns = wait_ns();
        if waited.is_some() {
            last_ns = clock::monotonic_ns();
        }
        while last_ns < end_ns {
            let now_ns = clock::monotonic_ns();
            period.looks += 1;
            let gap_ns = now_ns - last_ns;
            if gap_ns >= plan.threshold_ns {
                period.noise_ns += gap_ns;
                let mut told = (last_ns, now_ns, 0);
                if waited.is_some() {
                    let after_ns = wait_ns();
                    told.2 = after_ns.saturating_sub(before_ns).min(gap_ns);
                    before_ns = after_ns;
                }
                tell(Told::Gap { start_ns: told.0, end_ns: told.1, waited_ns: told.2 });
                // Orders the ring before it, for who reads it and then the ring.
                line.seen_ns.store(now_ns, Ordering::Release);
                if gap_ns > plan.stop_single_ns || period.noise_ns > plan.stop_total_ns {
                    line.stop.store(true, Ordering::Relaxed);
                }
                // Telling takes less than any threshold of use, and belongs to the next look: where a look at the clock takes
                // microseconds, another one here would leave out much of the time. Only what takes longer is left out.
                last_ns = if waited.is_some() || plan.threshold_ns < TELLING_NS {
                    clock::monotonic_ns()
                } else {
                    now_ns
                };
                if is_over() {
                    break;
                }
                continue;
            }
            last_ns = now_ns;
            if period.looks.is_multiple_of(NOTE) {
                line.seen_ns.store(now_ns, Ordering::Release);
                if is_over() {
                    break;
                }
            }
        }
        period.runtime_ns = last_ns - begin_ns;
        tell(Told::Period(period));
        line.seen_ns.store(last_ns, Ordering::Release);
        // From the begin of the first one, but never two at once.
        period_ns = (period_ns + plan.period_ns).max(last_ns);
        if plan.runtime_ns < plan.period_ns && !is_over() {
            clock::sleep_until(period_ns);
        }
    }
    line.seen_ns.store(u64::MAX, Ordering::Release);
}
