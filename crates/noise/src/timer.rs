//! A thread that waits for a timer again and again, and reports how late it woke up.

use crate::outbox::Outbox;
use crate::source::RunQueueWait;
use crate::threads::Signals;
use onbeat_os::{clock, latency};
use onbeat_queue::Owner;

/// One wake-up, as the thread sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimerWakeup {
    pub due_ns: u64,
    pub user_ns: u64,
    /// How long the thread was ready to run while other threads had the core.
    pub waited_ns: u64,
}

/// Work of a timer thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimerPlan {
    pub period_ns: u64,
    /// First due time, if the timers of the cores are aligned.
    pub first_ns: Option<u64>,
    /// A wake-up that is later than this ends the session.
    pub stop_ns: u64,
    /// Number of wake-ups after which the thread is done.
    pub wakeups: u64,
}

/// Waits for timers until the signal to end. Due times that pass while the thread is late are skipped, as the
/// kernel's timers do.
pub(crate) fn run(
    outbox: &Outbox<TimerWakeup>,
    mut writer: Owner,
    plan: &TimerPlan,
    waits: Option<&RunQueueWait>,
    signals: &Signals,
) {
    // Otherwise the kernel would merge the timers of a thread without a real-time policy. A refusal shows in
    // the measurement.
    let _refused = latency::set_timer_slack_ns(1);
    let wait_ns = || waits.map_or(0, |waits| waits.read_ns().unwrap_or(0));
    let soon_ns = clock::monotonic_ns() + plan.period_ns;
    let mut due_ns = soon_ns;
    if let Some(first_ns) = plan.first_ns {
        // If the set-up took longer than that, whole periods later: the cores keep their distance.
        let periods = soon_ns.saturating_sub(first_ns).div_ceil(plan.period_ns);
        due_ns = first_ns + periods * plan.period_ns;
    }
    let mut before_ns = wait_ns();
    let mut left = plan.wakeups;
    while !signals.is_over() && left > 0 {
        left -= 1;
        clock::sleep_until(due_ns);
        let user_ns = clock::monotonic_ns();
        let after_ns = wait_ns();
        let wakeup = TimerWakeup { due_ns, user_ns, waited_ns: after_ns.saturating_sub(before_ns) };
        before_ns = after_ns;
        outbox.push(&mut writer, wakeup);
        outbox.complete_until(user_ns);
        if user_ns - due_ns > plan.stop_ns {
            signals.end();
        }
        let missed = user_ns.saturating_sub(due_ns) / plan.period_ns;
        due_ns += (missed + 1) * plan.period_ns;
    }
    outbox.complete_until(u64::MAX);
    signals.done();
}
