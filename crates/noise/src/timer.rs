//! A thread that waits for a moment, again and again, and says how late it was.

use crate::source::Waited;
use onbeat_os::{clock, latency};
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_queue::{Owner, Spsc};

/// One wake-up, as the thread knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Woken {
    pub due_ns: u64,
    pub user_ns: u64,
    /// How long it was ready and others had the core.
    pub waited_ns: u64,
}

pub(crate) struct Line {
    pub told: Spsc<Woken>,
    /// All that it had to tell of the time before this is in the ring.
    pub seen_ns: CachePadded<AtomicU64>,
    /// What had no room there.
    pub dropped: CachePadded<AtomicU64>,
}

/// What it is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub period_ns: u64,
    /// The first moment, where it matters which.
    pub first_ns: Option<u64>,
    /// Ends all, when it was later than that.
    pub stop_ns: u64,
}

/// Waits until it is told to stop. A moment that has passed while it was away is left out, as the kernel's timers do.
pub(crate) fn run(
    line: &Line,
    mut owner: Owner,
    plan: &Plan,
    waited: Option<&Waited>,
    signals: &crate::crew::Signals,
) {
    // For a policy that is not real-time: the kernel would join timers. A refusal shows in what is measured.
    let _refused = latency::set_timer_slack_ns(1);
    let wait_ns = || waited.map_or(0, |waited| waited.read_ns().unwrap_or(0));
    let soon_ns = clock::monotonic_ns() + plan.period_ns;
    let mut due_ns = soon_ns;
    if let Some(first_ns) = plan.first_ns {
        // Whole periods later, where setting up took longer than that: the cores keep their distance.
        let periods = soon_ns.saturating_sub(first_ns).div_ceil(plan.period_ns);
        due_ns = first_ns + periods * plan.period_ns;
    }
    let mut before_ns = wait_ns();
    while !signals.is_over() {
        clock::sleep_until(due_ns);
        let user_ns = clock::monotonic_ns();
        let after_ns = wait_ns();
        let woken = Woken { due_ns, user_ns, waited_ns: after_ns.saturating_sub(before_ns) };
        before_ns = after_ns;
        if line.told.push(&mut owner, woken).is_err() {
            line.dropped.fetch_add(1, Ordering::Relaxed);
        }
        // Orders the ring before it, for who reads it and then the ring.
        line.seen_ns.store(user_ns, Ordering::Release);
        if user_ns - due_ns > plan.stop_ns {
            signals.end();
        }
        let missed = user_ns.saturating_sub(due_ns) / plan.period_ns;
        due_ns += (missed + 1) * plan.period_ns;
    }
    line.seen_ns.store(u64::MAX, Ordering::Release);
}
