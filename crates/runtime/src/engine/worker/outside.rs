//! What a worker is told from outside, looked at while it lets one chunk after the other go through.

use super::Worker;
use crate::base::quiescence::Inbox;
use crate::engine::control::Control;
use crate::engine::pool::Pool;
use crate::engine::team::Seat;
use crate::operator::context::Context;

/// Passes of short steps from one look to the next, where nothing but loads are to be made for it.
const FEW: u32 = 16;

/// The most where the time is looked at, too, which takes 20 ns: as long as so many take no longer than [`BRIEF_NS`].
const MANY: u32 = 128;

/// So long it may go without a look.
const BRIEF_NS: u64 = 4_000;

/// How often it looks.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Passes from one look to the next, where there is an alarm.
    between: u32,
    /// The time of the last look, where there was one.
    looked_ns: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { between: 1, looked_ns: 0 }
    }
}

/// Where it looks: some loads of lines that are seldom written, and the time where there is an alarm.
pub(crate) struct Outside<'w> {
    inbox: &'w Inbox,
    control: &'w Control,
    pool: Option<&'w Pool>,
    /// The next alarm, or the end, on the run's clock.
    alarm_ns: Option<u64>,
    is_stopping: bool,
    /// Some steps are long ones.
    is_long: bool,
    /// Passes that there may be still.
    left: u32,
    pace: &'w mut Pace,
}

impl<'w> Outside<'w> {
    pub fn new(
        (seat, control): (&'w Seat, &'w Control),
        alarm_ns: Option<u64>,
        (is_stopping, is_long): (bool, bool),
        pace: &'w mut Pace,
    ) -> Self {
        let (pool, inbox) = (seat.pool.as_deref(), seat.inbox());
        Outside { inbox, control, pool, alarm_ns, is_stopping, is_long, left: 0, pace }
    }

    /// So many passes are made behind those that need no look.
    pub fn go_on_for(&mut self, passes: u32) {
        self.left = passes;
    }

    /// How many passes may follow until the next look; 0 where there is something else to do, or there were as many as there may be.
    #[inline(never)]
    pub fn look(&mut self, cx: &Context) -> u32 {
        if self.left == 0 {
            return 0;
        }
        let passes = self.between_looks(cx).min(self.left);
        self.left -= passes;
        passes
    }

    fn between_looks(&mut self, cx: &Context) -> u32 {
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
        let took_ns = now_ns.saturating_sub(std::mem::replace(&mut self.pace.looked_ns, now_ns));
        if took_ns > BRIEF_NS {
            let fewer = u64::from(self.pace.between) * BRIEF_NS / took_ns;
            self.pace.between = (fewer as u32).max(1);
        } else if 2 * took_ns <= BRIEF_NS {
            self.pace.between = (2 * self.pace.between).min(MANY);
        }
        self.pace.between
    }
}

impl Worker {
    /// When there is something to do next, on the run's clock, whatever comes.
    pub(super) fn alarm_ns(&self) -> Option<u64> {
        match (self.timers.earliest_ns(), self.open_end_ns()) {
            (Some(alarm_ns), Some(end_ns)) => Some(alarm_ns.min(end_ns)),
            (alarm_ns, end_ns) => alarm_ns.or(end_ns),
        }
    }
}
