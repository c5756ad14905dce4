//! Ends of replicated stretches that wait for their turn: their worker looks for it, and has itself told only when it lies down.

use super::{NodeState, Worker};
use crate::operator::context::Context;
use crate::plan::replicate::End;

impl Worker {
    /// An end of a replicated stretch whose turn has come: others wait until it was there, so it goes first. But not twice in a row, for
    /// the sake of what is ready here.
    #[inline(never)]
    pub(super) fn turn_came(&mut self, cx: &mut Context) -> Option<u32> {
        if std::mem::take(&mut self.asked) {
            return None;
        }
        let operator = self.upcoming(cx)?;
        let NodeState { source, done, .. } = self.nodes[operator as usize];
        // Sources go round: this one does not go before others that wait.
        if cx.hot[operator as usize].unmet != 0 || done || source && !cx.turn.is_empty() {
            self.ask_again(cx, operator);
            return None;
        }
        self.asked = true;
        if source {
            cx.turn.set(operator);
            self.on_turn = operator;
            self.begin_turn(cx, operator);
        }
        Some(operator)
    }

    /// From here on a turn that comes wakes this worker. False when one has come already.
    pub(super) fn wait_for_turns(&mut self, cx: &mut Context) -> bool {
        let waits = |wish: usize| self.upcoming[wish].1.wait();
        let up =
            (0..self.upcoming.len()).find(|&wish| cx.replicas.pending_turns & 1 << wish != 0 && !waits(wish));
        if let Some(wish) = up {
            cx.replicas.pending_turns &= !(1 << wish);
            self.ask_again(cx, self.upcoming[wish].0);
        }
        up.is_none()
    }

    /// Whoever wants something of an operator at the end of a replicated stretch does not wait for this worker.
    #[inline]
    pub fn release_turns(&mut self) {
        for &(operator, _) in &self.upcoming {
            if let Some(end) = End::of(&mut *self.operators[operator as usize]) {
                end.release();
            }
        }
    }

    /// An end of a replicated stretch whose turn has come while it was looked for. It is not looked for any more.
    #[inline]
    pub(super) fn upcoming(&self, cx: &mut Context) -> Option<u32> {
        let mut wishes = cx.replicas.pending_turns;
        while wishes != 0 {
            let wish = wishes.trailing_zeros();
            let (operator, turn) = &self.upcoming[wish as usize];
            if turn.is_up() {
                cx.replicas.pending_turns &= !(1 << wish);
                return Some(*operator);
            }
            wishes &= wishes - 1;
        }
        None
    }
}
