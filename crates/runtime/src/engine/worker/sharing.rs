//! One that shares its thread with others looks up from time to time.

use super::Worker;
use crate::operator::context::Context;

/// Turns after which one that shares its thread looks up: others may wait, or an alarm.
pub(super) const TURNS: u32 = 32;

/// Long steps in a row of one that shares its thread where nothing in the pool waits for a time. With one, who is furthest down the graph
/// often has all done when the next message comes, and waits: a tenth of the throughput.
const LONG_TURNS: u32 = 4;

impl Worker {
    /// Whether somebody else is to have the thread: another part after each long step, or after some where nothing waits for a time,
    /// and after a number of short ones.
    pub(super) fn looks_up(&mut self, cx: &Context) -> bool {
        let had = TURNS - self.turns;
        self.turns -= 1;
        let spent = self.turns == 0;
        if had == 0 || !spent && !self.heavy {
            return false;
        }
        if !spent && had < LONG_TURNS && self.pool.as_ref().is_some_and(|pool| !pool.keeps_time()) {
            return false;
        }
        if spent {
            self.turns = TURNS;
        }
        if cx.ready.is_empty() && cx.turn.is_empty() {
            return false;
        }
        // Its steps are long ones: beside them a look at the time is nothing.
        let now_ns = || cx.clock.real_ns();
        spent || self.pool.as_ref().is_some_and(|pool| pool.others_wait() || pool.has_due(now_ns))
    }
}
