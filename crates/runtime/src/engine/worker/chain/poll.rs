//! What a worker is told from outside, looked at while it lets one chunk after the other go through.

use crate::base::quiescence::WorkerInbox;
use crate::engine::control::Control;
use crate::engine::team::Seat;
use crate::engine::worker::Worker;
use crate::engine::worker::WorkerPool;
use crate::operator::context::Context;

/// Passes of short steps from one look to the next, where nothing but loads are to be made for it.
const FEW: u32 = 16;

/// The most where the time is looked at, too, which takes 20 ns: as long as so many take no longer than [`BRIEF_NS`].
const MANY: u32 = 128;

/// So long it may go without a look.
const BRIEF_NS: u64 = 4_000;

/// How often it looks.
#[derive(Debug)]
pub(crate) struct PollRate {
    /// Passes from one look to the next, where there is an alarm.
    between: u32,
    /// The time of the last look, where there was one.
    looked_ns: u64,
}

impl Default for PollRate {
    fn default() -> Self {
        PollRate { between: 1, looked_ns: 0 }
    }
}

/// Where it looks: some loads of lines that are seldom written, and the time where there is an alarm.
pub(crate) struct Poller<'w> {
    inbox: &'w WorkerInbox,
    control: &'w Control,
    pool: Option<&'w WorkerPool>,
    /// The next alarm, or the end, on the run's clock.
    alarm_ns: Option<u64>,
    is_stopping: bool,
    /// Some steps are long ones.
    is_long: bool,
    /// Passes that there may be still.
    left: u32,
    poll_rate: &'w mut PollRate,
}

impl<'w> Poller<'w> {
    pub fn new(
        (seat, pool, control): (&'w Seat, Option<&'w WorkerPool>, &'w Control),
        alarm_ns: Option<u64>,
        (is_stopping, is_long): (bool, bool),
        poll_rate: &'w mut PollRate,
    ) -> Self {
        let inbox = seat.inbox();
        Poller { inbox, control, pool, alarm_ns, is_stopping, is_long, left: 0, poll_rate }
    }

    /// So many passes are made behind those that need no look.
    pub fn go_on_for(&mut self, passes: u32) {
        self.left = passes;
    }

    /// How many passes may follow until the next look; 0 where there is something else to do, or there were as many as there may be.
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
        let is_told = !self.inbox.is_empty()
            || self.control.is_to_stop(self.is_stopping)
            || self.pool.is_some_and(|pool| pool.others_wait() || pool.has_due(|| cx.clock.real_ns()));
        if is_told {
            return 0;
        }
        let Some(alarm_ns) = self.alarm_ns.filter(|_| cx.clock.is_real()) else {
            return if self.is_long { 1 } else { FEW };
        };
        let now_ns = cx.clock.now_ns();
        if now_ns >= alarm_ns {
            return 0;
        }
        let took_ns = now_ns.saturating_sub(std::mem::replace(&mut self.poll_rate.looked_ns, now_ns));
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
    /// When there is something to do next, on the run's clock, whatever comes.
    pub(in crate::engine::worker) fn alarm_ns(&self) -> Option<u64> {
        match (self.timers.earliest_ns(), self.open_end_ns()) {
            (Some(alarm_ns), Some(end_ns)) => Some(alarm_ns.min(end_ns)),
            (alarm_ns, end_ns) => alarm_ns.or(end_ns),
        }
    }
}
