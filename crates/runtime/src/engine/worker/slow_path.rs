//! The slow path: timing, conditions, stamps to go on with, and everything else around a step that most steps
//! do not need.

use super::turns::{LONG_STEP_NS, SLOW_STEP_NS};
use super::{Failure, Worker};
use crate::Error;
use crate::operator::Step;
use crate::operator::context::{Context, NONE, STARVED, flag};
use crate::operator::message::NO_DUE;

impl Worker {
    /// One step with everything that its flags ask for. It is timed if the meter says so.
    #[inline(never)]
    pub(super) fn step_slow(&mut self, cx: &mut Context, operator: u32) -> Result<(), Failure> {
        if cx.hot[operator as usize].flags & flag::WHEN != 0 && !self.conditions_hold(cx, operator)? {
            cx.hot[operator as usize].left = 1;
            return Ok(());
        }
        let hot = cx.hot[operator as usize];
        let timed = self.meters[operator as usize].count(hot.every);
        // If a source was picked in its turn, the turn has begun already.
        if hot.flags & (flag::RESUME | flag::SOURCE) != 0 {
            // A wait that an earlier step asked for is over, and one that it did not return does not count.
            self.nodes[operator as usize].awaits_descriptor = false;
            cx.waiting.is_armed = false;
            if self.turns.on_turn != operator {
                self.resume(cx, operator);
            }
        }
        if hot.flags & flag::MULTI != 0 {
            cx.begin_pairs();
            if !cx.waiting.kept.is_empty() {
                self.wait_for_all(cx, operator);
            }
        }
        if hot.flags & flag::WHEN != 0 {
            self.stamp_tick(cx);
        }
        let (outcome, end_ns) = if timed {
            let (outcome, end_ns) = self.step_timed(cx, operator);
            (outcome, Some(end_ns))
        } else {
            (self.step(cx, operator), None)
        };
        let flags = cx.hot[operator as usize].flags;
        if flags & flag::WHEN != 0 {
            self.note_conditional_step(cx, operator, &outcome)?;
        }
        cx.released_ns = 0;
        if !matches!(outcome, Ok(Step::Wait)) || flags & flag::SLOW != 0 {
            self.finish_step(cx, operator, outcome)?;
        }
        let hot = &mut cx.hot[operator as usize];
        hot.every = if hot.flags & flag::SLOW == 0 { self.meters[operator as usize].left() } else { 1 };
        hot.left = hot.every;
        if let Some(end_ns) = end_ns {
            // Not earlier: a stop that comes now is told to an operator that waits, and to one that has not
            // seen the end of its inputs.
            self.poll_after_timed_step(cx, end_ns);
        }
        Ok(())
    }

    /// Returns the result of the step, and its end.
    #[inline(always)]
    fn step_timed(&mut self, cx: &mut Context, operator: u32) -> (Result<Step, Error>, u64) {
        let begin_ns = self.step_begin_ns(cx);
        self.sample_source(cx, operator, begin_ns);
        let outcome = self.step(cx, operator);
        let end_ns = cx.now_ns();
        let is_exact = self.is_exact(cx, operator, operator, (begin_ns, end_ns));
        self.note_timed_step(cx, operator, begin_ns..end_ns, is_exact);
        (outcome, end_ns)
    }

    /// Gives a message of a free-running source a due time, the begin of its timed step, if the message is
    /// tracked: each message if the graph has limits, otherwise a sample.
    #[inline]
    pub(super) fn sample_source(&mut self, cx: &mut Context, operator: u32, begin_ns: u64) {
        let flags = cx.hot[operator as usize].flags;
        if flags & flag::SOURCE != 0 && cx.stamp.due_ns == NO_DUE {
            let is_tracked =
                self.has_limits || flags & flag::EXACT != 0 || self.meters[operator as usize].is_sample();
            cx.stamp.due_ns = if is_tracked { begin_ns } else { NO_DUE };
        }
    }

    /// Finds out whether steps of an operator are long, after one of them.
    pub(super) fn classify_steps(&mut self, cx: &mut Context, operator: u32, step_ns: u64) {
        let meter = &mut self.meters[operator as usize];
        // First steps are long, as caches are cold. The mean falls later.
        let is_long = meter.is_above(step_ns, LONG_STEP_NS);
        if std::mem::replace(&mut meter.is_long, is_long) != is_long {
            self.turns.long_steps =
                if is_long { self.turns.long_steps + 1 } else { self.turns.long_steps - 1 };
            self.turns.unpolled = 0;
        }
        if !cx.lanes.is_empty() {
            let is_slow = meter.is_above(step_ns, SLOW_STEP_NS);
            if std::mem::replace(&mut meter.is_slow, is_slow) != is_slow {
                cx.replicas.slow_operators =
                    if is_slow { cx.replicas.slow_operators + 1 } else { cx.replicas.slow_operators - 1 };
            }
        }
        if let Some(pool) = &self.pool {
            self.turns.step_ns = meter.mean_ns();
            self.turns.is_heavy = self.turns.step_ns >= pool.weights.heavy_ns;
        }
    }

    /// Acts on a step that was not "one message in, one message out".
    #[inline(always)]
    pub(super) fn finish_step(
        &mut self,
        cx: &mut Context,
        operator: u32,
        outcome: Result<Step, Error>,
    ) -> Result<(), Failure> {
        let asks_again = matches!(outcome, Ok(Step::Again));
        if !asks_again || cx.hot[operator as usize].flags & !flag::RECORDED != flag::SOURCE {
            return self.after_step(cx, operator, outcome);
        }
        // A plain source asks for another turn. It is the source on turn: no other operator is stepped
        // without a message.
        self.nodes[operator as usize].sequence += u64::from(cx.next < STARVED || cx.sent_away);
        self.turns.on_turn = NONE;
        Ok(())
    }

    /// Schedules one step of an operator, with or without a message, for when its conditions hold.
    pub(super) fn schedule(&mut self, cx: &mut Context, operator: u32) {
        if !self.nodes[operator as usize].source {
            cx.ready.set(operator);
            return;
        }
        cx.turn.set(operator);
        if self.turns.on_turn == operator {
            self.turns.on_turn = NONE;
        }
    }

    /// Counts empty inputs as unmet conditions again that the operator did not wait for until now.
    pub(super) fn wait_for_all(&mut self, cx: &mut Context, operator: u32) {
        for at in (0..cx.waiting.kept.len()).rev() {
            let edge = cx.waiting.kept[at];
            let ends = &self.edges[edge as usize];
            if ends.to == operator {
                cx.waiting.kept.swap_remove(at);
                let state = &mut cx.edges[edge as usize];
                state.kept = false;
                if ends.probe.len(&cx.owner) == 0 && !state.closed {
                    cx.unmeet(operator);
                }
            }
        }
    }

    /// Sets the stamp with which an operator continues, or with which a source begins.
    fn resume(&mut self, cx: &mut Context, operator: u32) {
        let node = &mut self.nodes[operator as usize];
        if node.source {
            self.begin_turn(cx, operator);
            return;
        }
        cx.stamped_edge = NONE;
        if let Some((stamp, keys)) = node.kept.take() {
            cx.stamp = stamp;
            cx.keys = keys;
        }
    }

    #[inline(always)]
    pub(super) fn begin_turn(&mut self, cx: &mut Context, source: u32) {
        self.nodes[source as usize].begin_turn(cx);
    }
}
