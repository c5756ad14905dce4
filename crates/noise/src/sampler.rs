//! A thread that only reads the clock: time that is missing between two reads was taken away.

use crate::outbox::Outbox;
use crate::source::RunQueueWait;
use crate::threads::Signals;
use onbeat_os::clock;
use onbeat_queue::Owner;

/// Work of a sampling thread. All times in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SamplerPlan {
    pub period_ns: u64,
    /// Part of each period that is spent reading the clock; the thread sleeps for the rest.
    pub runtime_ns: u64,
    /// Shortest time that counts as a gap.
    pub threshold_ns: u64,
    pub stop_single_ns: u64,
    pub stop_total_ns: u64,
    /// Nothing before this time is reported.
    pub begin_ns: u64,
}

/// A report of the sampling thread.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Observation {
    /// Time was taken away.
    Gap { start_ns: u64, end_ns: u64, waited_ns: u64 },
    /// A period is over.
    Period(PeriodTotals),
}

impl Observation {
    pub fn gap_end_ns(&self) -> Option<u64> {
        match *self {
            Observation::Gap { end_ns, .. } => Some(end_ns),
            Observation::Period(_) => None,
        }
    }
}

/// Totals of one period.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PeriodTotals {
    /// Time spent reading the clock.
    pub runtime_ns: u64,
    /// Sum of the gaps.
    pub noise_ns: u64,
    /// Number of clock reads.
    pub looks: u64,
}

/// Upper bound on the cost of reporting a gap. It takes some tens of nanoseconds, except at the first touch
/// of a page.
const REPORT_NS: u64 = 2_000;

/// Clock reads between two updates of the time up to which everything is reported.
const READS_PER_UPDATE: u64 = 1024;

/// Reads the clock until the signal to end. `waits` says how long the thread was ready to run in a gap, where
/// there are no tracepoints to say it.
pub(crate) fn run(
    outbox: &Outbox<Observation>,
    mut writer: Owner,
    plan: &SamplerPlan,
    waits: Option<&RunQueueWait>,
    signals: &Signals,
) {
    let wait_ns = || waits.map_or(0, |waits| waits.read_ns().unwrap_or(0));
    while clock::monotonic_ns() < plan.begin_ns && !signals.is_over() {}
    let mut period_ns = clock::monotonic_ns();
    while !signals.is_over() {
        let mut period = PeriodTotals::default();
        let begin_ns = clock::monotonic_ns();
        let end_ns = begin_ns + plan.runtime_ns;
        let mut last_ns = begin_ns;
        let mut before_ns = wait_ns();
        if waits.is_some() {
            last_ns = clock::monotonic_ns();
        }
        while last_ns < end_ns {
            let now_ns = clock::monotonic_ns();
            period.looks += 1;
            let gap_ns = now_ns - last_ns;
            if gap_ns >= plan.threshold_ns {
                period.noise_ns += gap_ns;
                let mut waited_ns = 0;
                if waits.is_some() {
                    let after_ns = wait_ns();
                    waited_ns = after_ns.saturating_sub(before_ns).min(gap_ns);
                    before_ns = after_ns;
                }
                let gap = Observation::Gap { start_ns: last_ns, end_ns: now_ns, waited_ns };
                outbox.push(&mut writer, gap);
                outbox.complete_until(now_ns);
                if gap_ns > plan.stop_single_ns || period.noise_ns > plan.stop_total_ns {
                    signals.end();
                }
                // A report takes less time than any useful threshold, and counts towards the next clock read.
                // Where a clock read takes microseconds, another one here would hide much of the time. Only a
                // longer report is left out.
                last_ns = if waits.is_some() || plan.threshold_ns < REPORT_NS {
                    clock::monotonic_ns()
                } else {
                    now_ns
                };
                if signals.is_over() {
                    break;
                }
                continue;
            }
            last_ns = now_ns;
            if period.looks.is_multiple_of(READS_PER_UPDATE) {
                outbox.complete_until(now_ns);
                if signals.is_over() {
                    break;
                }
            }
        }
        period.runtime_ns = last_ns - begin_ns;
        outbox.push(&mut writer, Observation::Period(period));
        outbox.complete_until(last_ns);
        // Periods keep the rhythm of the first one, but never overlap.
        period_ns = (period_ns + plan.period_ns).max(last_ns);
        if plan.runtime_ns < plan.period_ns && !signals.is_over() {
            clock::sleep_until(period_ns);
        }
    }
    outbox.complete_until(u64::MAX);
}
