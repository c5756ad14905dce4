//! Consequences of a step that did more than return `Wait` after one message.

use super::{Failure, StarvedOperator, Worker};
use crate::Error;
use crate::base::quiescence::NEVER;
use crate::engine::limits::InFlightBound;
use crate::operator::Step;
use crate::operator::context::{Context, STARVED, flag};
use crate::operator::message::NO_DUE;
use onbeat_queue::sync::atomic::Ordering;
use std::sync::Arc;

/// Steps in a row that may return `Again` without taking or sending anything while a run ends.
const FRUITLESS: u32 = 1_000_000;

impl Worker {
    /// Acts on the result of a step and on the flags of its operator.
    #[inline(never)]
    pub(super) fn after_step(
        &mut self,
        cx: &mut Context,
        operator: u32,
        outcome: Result<Step, Error>,
    ) -> Result<(), Failure> {
        let flags = cx.hot[operator as usize].flags;
        let step = outcome.map_err(|error| Failure::Operator(operator, error))?;
        if flags & flag::MULTI != 0 {
            cx.check_pairs().map_err(|error| Failure::Operator(operator, error))?;
            self.note_unpaired(cx, operator);
        }
        if flags & flag::TRACKED != 0 {
            self.track(cx, operator);
        }
        if flags & flag::STARVED != 0 {
            cx.hot[operator as usize].flags &= !flag::STARVED;
            if step != Step::Done {
                cx.turn.clear(operator);
                self.waiting.starved.push(StarvedOperator { operator, store: cx.waiting.starved, chunks: 1 });
                self.keep_stamp(cx, operator);
                self.check_closing(cx, operator);
                return Ok(());
            }
        }
        let node = &mut self.nodes[operator as usize];
        if node.source {
            self.after_source_step(cx, operator, step, flags);
            return Ok(());
        }
        match step {
            Step::Wait => {
                cx.hot[operator as usize].flags &= !flag::RESUME;
                let had_ended = node.open_inputs == 0;
                self.keep_ready(cx, operator, flags);
                // If the last input ends here, the operator is stepped once more, and sees the end.
                self.check_closing(cx, operator);
                let node = &self.nodes[operator as usize];
                if had_ended && !node.done && !node.has_turns && !self.awaits_others(cx, operator) {
                    self.finish(cx, operator);
                }
            }
            Step::Again => {
                let is_fruitful = cx.popped != 0 || cx.next < STARVED || std::mem::take(&mut cx.sent_away);
                self.stop.fruitless =
                    if is_fruitful || !self.stop.is_stopping { 0 } else { self.stop.fruitless + 1 };
                if self.stop.fruitless > FRUITLESS {
                    return Err(Failure::Operator(
                        operator,
                        Error::new(
                            "its step returns `Again` again and again without taking or sending anything, so the run cannot end: \
                         return `Wait` until there is something to do",
                        ),
                    ));
                }
                self.keep_stamp(cx, operator);
                self.check_closing(cx, operator);
                self.keep_inputs(cx, operator);
                cx.ready.set(operator);
            }
            Step::Until => {
                self.keep_stamp(cx, operator);
                self.check_closing(cx, operator);
                self.keep_inputs(cx, operator);
                self.rest(cx, operator);
            }
            Step::Done => self.finish(cx, operator),
        }
        Ok(())
    }

    /// Whether an operator holds a rest of inputs that have ended, and what it needs for it can still come
    /// round a cycle.
    fn awaits_others(&self, cx: &mut Context, operator: u32) -> bool {
        let holds_rest = cx.waiting.holds_rest.take() == Some(operator);
        let is_open = |edge: &u32| !cx.edges[*edge as usize].ended;
        holds_rest && self.nodes[operator as usize].inputs.iter().any(is_open)
    }

    /// Says once that an operator takes messages that it needs others for, which will not come.
    fn note_unpaired(&mut self, cx: &mut Context, operator: u32) {
        let node = &mut self.nodes[operator as usize];
        if !node.outputs.is_empty()
            && !node.is_unpaired
            && let Some(text) = cx.unpaired()
        {
            node.is_unpaired = true;
            cx.note(text);
        }
    }

    /// Notes the times of paths and deadlines that end here, for each message that the step has taken.
    pub(super) fn track(&mut self, cx: &mut Context, operator: u32) {
        if cx.popped == 0 {
            return;
        }
        if cx.stamp.due_ns != NO_DUE {
            cx.joining.earlier.push(cx.stamp);
        }
        let now_ns = if cx.joining.earlier.is_empty() { 0 } else { self.ended_ns(cx, operator) };
        for at in 0..cx.joining.earlier.len() {
            let stamp = cx.joining.earlier[at];
            self.record_arrival(cx, operator, stamp, now_ns);
        }
        cx.joining.earlier.clear();
    }

    /// [`after_step`](Self::after_step) for a source.
    fn after_source_step(&mut self, cx: &mut Context, operator: u32, step: Step, flags: u32) {
        let node = &mut self.nodes[operator as usize];
        let has_sent = cx.next < STARVED || cx.sent_away;
        node.sequence += u64::from(has_sent);
        if has_sent {
            let time_ns = if node.bounds.is_empty() { 0 } else { cx.now_ns().saturating_sub(cx.start_ns) };
            let sent =
                |bound: &Arc<InFlightBound>| bound.sent(node.sequence, cx.stamp.due_ns, time_ns, cx.held_ns);
            node.bounds.iter().for_each(sent);
        }
        match step {
            Step::Again => {
                if !node.done {
                    self.schedule(cx, operator);
                }
            }
            Step::Wait => {
                cx.turn.clear(operator);
                let had_ended = node.open_inputs == 0;
                self.keep_ready(cx, operator, flags);
                self.check_closing(cx, operator);
                let node = &self.nodes[operator as usize];
                if had_ended && !node.inputs.is_empty() && !node.done {
                    self.finish(cx, operator);
                }
            }
            Step::Until => {
                cx.turn.clear(operator);
                if !node.done {
                    self.rest(cx, operator);
                }
            }
            Step::Done => self.finish(cx, operator),
        }
    }

    /// Lets an operator rest until its alarm, or until the descriptor that it waits for is ready.
    fn rest(&mut self, cx: &mut Context, operator: u32) {
        let node = &mut self.nodes[operator as usize];
        node.awaits_descriptor = std::mem::take(&mut cx.waiting.is_armed);
        if node.awaits_descriptor {
            // Relaxed: a fact for explanations, which orders nothing.
            self.control.board.operators[node.plan].awaits_descriptors.store(true, Ordering::Relaxed);
        }
        match cx.waiting.until_ns {
            NEVER => self.timers.clear(operator),
            until_ns => self.timers.set(operator, until_ns),
        }
    }

    /// Forgets the alarm of the last step, before an operator starts.
    pub fn forget_alarm(&self, cx: &mut Context) {
        (cx.waiting.until_ns, cx.waiting.is_armed) = (NEVER, false);
    }

    /// Has an operator stepped, with or without messages, when the alarm goes off that its start has set.
    pub fn set_first_alarm(&mut self, cx: &mut Context, operator: u32) {
        if cx.waiting.until_ns != NEVER && !self.nodes[operator as usize].source {
            self.keep_inputs(cx, operator);
            self.rest(cx, operator);
        }
    }

    /// Has an operator stepped that waited in a step for a time or a descriptor, whatever its conditions say.
    pub(super) fn step_again(&mut self, cx: &mut Context, operator: u32) {
        self.nodes[operator as usize].awaits_descriptor = false;
        if let Some(conditions) = &mut self.conditions[operator as usize] {
            conditions.again = true;
        }
        self.recheck(cx, operator);
    }

    /// Makes an operator ready that made progress in this step and has messages left, if its pops alone do
    /// not show that. An operator that took nothing stays as it is: it has seen its messages.
    fn keep_ready(&mut self, cx: &mut Context, operator: u32, flags: u32) {
        let has_progressed =
            cx.popped != 0 && flags & (flag::MULTI | flag::WHEN) != 0 || flags & flag::RESUME != 0;
        let inputs = &self.nodes[operator as usize].inputs;
        if has_progressed && inputs.iter().any(|&edge| self.edges[edge as usize].probe.len(&cx.owner) > 0) {
            cx.ready.set(operator);
        }
    }

    /// Keeps the stamp for the next step, which continues with the same message.
    fn keep_stamp(&mut self, cx: &mut Context, operator: u32) {
        let node = &mut self.nodes[operator as usize];
        if !node.source {
            node.kept = Some((cx.stamp, cx.keys.as_ref().map(Arc::clone)));
            cx.hot[operator as usize].flag(flag::RESUME);
        }
    }

    /// Lets the next step come with or without messages.
    fn keep_inputs(&mut self, cx: &mut Context, operator: u32) {
        for &edge in &self.nodes[operator as usize].inputs {
            let ends = &self.edges[edge as usize];
            let state = &mut cx.edges[edge as usize];
            if ends.counted && !state.kept && !state.closed {
                state.kept = true;
                cx.waiting.kept.push(edge);
                if ends.probe.len(&cx.owner) == 0 {
                    cx.meet(operator);
                }
            }
        }
    }
}
