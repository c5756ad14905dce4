//! Polls between passes of direct hand-over: alarms, notifications, stops, and other parts that wait for the
//! thread.

use crate::base::quiescence::WorkerInbox;
use crate::engine::control::Control;
use crate::engine::team::Seat;
use crate::engine::worker::Worker;
use crate::engine::worker::WorkerPool;
use crate::operator::context::Context;

/// Passes of short steps from one poll to the next if a poll consists of loads alone.
const FEW: u32 = 16;

/// Most passes from one poll to the next if a poll reads the clock, which takes 20 ns, and the passes take at
/// most [`BRIEF_NS`].
const MANY: u32 = 128;

/// Longest time between two polls that read the clock, in nanoseconds.
const BRIEF_NS: u64 = 4_000;

/// How often a chain polls.
#[derive(Debug)]
pub(crate) struct PollRate {
    /// Passes from one poll to the next if there is an alarm.
    between: u32,
    /// Time of the last poll that read the clock.
    polled_ns: u64,
}

impl Default for PollRate {
    fn default() -> Self {
        PollRate { between: 1, polled_ns: 0 }
    }
}

/// State to poll: some loads of cache lines that are seldom written, and the clock if there is an alarm.
pub(crate) struct ChainPoller<'w> {
    inbox: &'w WorkerInbox,
    control: &'w Control,
    pool: Option<&'w WorkerPool>,
    /// Next alarm, or the end, on the run's clock.
    alarm_ns: Option<u64>,
    is_stopping: bool,
    /// Whether some steps are long.
    is_long: bool,
    /// Further passes that are allowed.
    left: u32,
    poll_rate: &'w mut PollRate,
}

impl<'w> ChainPoller<'w> {
    pub fn new(
        (seat, pool, control): (&'w Seat, Option<&'w WorkerPool>, &'w Control),
        alarm_ns: Option<u64>,
        (is_stopping, is_long): (bool, bool),
        poll_rate: &'w mut PollRate,
    ) -> Self {
        let inbox = seat.inbox();
        ChainPoller { inbox, control, pool, alarm_ns, is_stopping, is_long, left: 0, poll_rate }
    }

    /// Sets the number of passes that are allowed after those that need no poll.
    pub fn allow(&mut self, passes: u32) {
        self.left = passes;
    }

    /// Returns the number of passes until the next poll; 0 if there is something else to do, or no more
    /// passes are allowed.
    #[inline(never)]
    pub fn poll(&mut self, cx: &Context) -> u32 {
        if self.left == 0 {
            return 0;
        }
        let passes = self.between_polls(cx).min(self.left);
        self.left -= passes;
        passes
    }

    fn between_polls(&mut self, cx: &Context) -> u32 {
        let has_news = !self.inbox.is_empty()
            || self.control.must_stop(self.is_stopping)
            || self.pool.is_some_and(|pool| pool.others_wait() || pool.has_due(|| cx.clock.real_ns()));
        if has_news {
            return 0;
        }
        let Some(alarm_ns) = self.alarm_ns.filter(|_| cx.clock.is_real()) else {
            return if self.is_long { 1 } else { FEW };
        };
        let now_ns = cx.clock.now_ns();
        if now_ns >= alarm_ns {
            return 0;
        }
        let took_ns = now_ns.saturating_sub(std::mem::replace(&mut self.poll_rate.polled_ns, now_ns));
        if took_ns > BRIEF_NS {
            let fewer = u64::from(self.poll_rate.between) * BRIEF_NS / took_ns;
            self.poll_rate.between = (fewer as u32).max(1);
        } else if 2 * took_ns <= BRIEF_NS {
            self.poll_rate.between = (2 * self.poll_rate.between).min(MANY);
        }
        self.poll_rate.between
    }
}

impl Worker {
    /// Next alarm or end of the sources, on the run's clock.
    pub(in crate::engine::worker) fn alarm_ns(&self) -> Option<u64> {
        match (self.timers.earliest_ns(), self.open_end_ns()) {
            (Some(alarm_ns), Some(end_ns)) => Some(alarm_ns.min(end_ns)),
            (alarm_ns, end_ns) => alarm_ns.or(end_ns),
        }
    }
}
