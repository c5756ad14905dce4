//! Migrating ends that wait for their turn: their worker polls for it, and arms a notification only before it
//! parks.

use super::{NodeState, Worker};
use crate::operator::context::Context;
use crate::plan::replicate::{End, Upcoming};

/// Migrating ends of a worker.
pub(crate) struct MigratingEnds {
    /// By bit of the pending-turn mask ([`Context::wishes`]): the operator and its turn, which is polled
    /// while the bit is set.
    pub ends: Box<[(u32, Upcoming)]>,
    /// Whether the last pick was a migrating end.
    pub was_picked: bool,
}

impl Worker {
    /// Returns a migrating end whose turn has come. It goes first, as other workers wait for it; but not
    /// twice in a row, so that ready operators get their steps.
    #[inline(never)]
    pub(super) fn pick_migrating_end(&mut self, cx: &mut Context) -> Option<u32> {
        if std::mem::take(&mut self.migrating.was_picked) {
            return None;
        }
        let operator = self.due_migrating_end(cx)?;
        let NodeState { source, done, .. } = self.nodes[operator as usize];
        // Sources go round: a migrating source does not overtake sources that wait.
        if cx.hot[operator as usize].unmet != 0 || done || source && !cx.turn.is_empty() {
            self.recheck(cx, operator);
            return None;
        }
        self.migrating.was_picked = true;
        if source {
            cx.turn.set(operator);
            self.turns.on_turn = operator;
            self.begin_turn(cx, operator);
        }
        Some(operator)
    }

    /// Lets a turn that comes wake this worker from now on. False if one has come already.
    pub(super) fn await_migrating_ends(&mut self, cx: &mut Context) -> bool {
        let waits = |bit: usize| self.migrating.ends[bit].1.wait();
        let due = (0..self.migrating.ends.len())
            .find(|&bit| cx.replicas.pending_turns & 1 << bit != 0 && !waits(bit));
        if let Some(bit) = due {
            cx.replicas.pending_turns &= !(1 << bit);
            self.recheck(cx, self.migrating.ends[bit].0);
        }
        due.is_none()
    }

    /// Releases the turns of migrating ends here, so that no other worker waits for this one.
    #[inline]
    pub fn release_turns(&mut self) {
        for &(operator, _) in &self.migrating.ends {
            if let Some(end) = End::of(&mut *self.operators[operator as usize]) {
                end.release();
            }
        }
    }

    /// Returns a migrating end whose turn has come, and clears its bit: it is not polled any more.
    #[inline]
    pub(super) fn due_migrating_end(&self, cx: &mut Context) -> Option<u32> {
        let mut pending = cx.replicas.pending_turns;
        while pending != 0 {
            let bit = pending.trailing_zeros();
            let (operator, turn) = &self.migrating.ends[bit as usize];
            if turn.is_up() {
                cx.replicas.pending_turns &= !(1 << bit);
                return Some(*operator);
            }
            pending &= pending - 1;
        }
        None
    }
}
