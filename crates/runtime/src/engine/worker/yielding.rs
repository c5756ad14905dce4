//! A part that shares its thread lets others have it from time to time.

use super::Worker;
use crate::operator::context::Context;

/// Picks after which a part that shares its thread checks whether another part or an alarm waits.
pub(super) const PICKS: u32 = 32;

/// Long steps in a row of a part that shares its thread, if nothing in the pool waits for a time. With one
/// step, the part furthest down the graph has often done all its work when the next message comes, and waits:
/// a tenth of the throughput.
const LONG_STEPS: u32 = 4;

impl Worker {
    /// Whether another part should have the thread. That is checked after each long step, or after
    /// [`LONG_STEPS`] if nothing waits for a time, and after [`PICKS`] short steps.
    pub(super) fn should_yield(&mut self, cx: &Context) -> bool {
        let picks = PICKS - self.turns.picks_left;
        self.turns.picks_left -= 1;
        let is_spent = self.turns.picks_left == 0;
        if picks == 0 || !is_spent && !self.turns.is_heavy {
            return false;
        }
        if !is_spent && picks < LONG_STEPS && self.pool.as_ref().is_some_and(|pool| !pool.keeps_time()) {
            return false;
        }
        if is_spent {
            self.turns.picks_left = PICKS;
        }
        if cx.ready.is_empty() && cx.turn.is_empty() {
            return false;
        }
        // Steps are long: reading the clock costs little in comparison.
        let now_ns = || cx.clock.real_ns();
        is_spent || self.pool.as_ref().is_some_and(|pool| pool.others_wait() || pool.has_due(now_ns))
    }
}
