//! What follows a step that was more than "wait for the next message", and how operators and edges end.

use super::{Failure, Starved, Worker};
use crate::Error;
use crate::operator::Step;
use crate::operator::context::{Context, DONE, Hold, NONE, STARVED, flag};
use crate::operator::message::NO_DUE;
use std::sync::Arc;

/// Steps that may ask for another one without a visible reason while a run is coming to its end.
const FRUITLESS: u32 = 1_000_000;

impl Worker {
    /// Acts on what a step returned and on what is flagged for its operator.
    #[inline(never)]
    pub(super) fn after(
        &mut self,
        cx: &mut Context,
        operator: u32,
        outcome: Result<Step, Error>,
    ) -> Result<(), Failure> {
        let flags = cx.hot[operator as usize].flags;
        let step = outcome.map_err(|error| Failure::Operator(operator, error))?;
        if flags & flag::TRACKED != 0 {
            self.track(cx, operator);
        }
        if flags & flag::STARVED != 0 {
            cx.hot[operator as usize].flags &= !flag::STARVED;
            if step != Step::Done {
                cx.turn.clear(operator);
                self.starved.push(Starved { operator, store: cx.waiting.starved, chunks: 1 });
                self.keep_stamp(cx, operator);
                self.check_closing(cx, operator);
                return Ok(());
            }
        }
        let node = &mut self.nodes[operator as usize];
        if node.source {
            self.after_source(cx, operator, step, flags);
            return Ok(());
        }
        match step {
            Step::Wait => {
                cx.hot[operator as usize].flags &= !flag::RESUME;
                self.look_for_more(cx, operator, flags);
                self.check_closing(cx, operator);
                let node = &self.nodes[operator as usize];
                if node.open_inputs == 0 && !node.done && !node.has_turns {
                    self.finish(cx, operator);
                }
            }
            Step::Again => {
                let fruitful = cx.popped != 0 || cx.next < STARVED || std::mem::take(&mut cx.sent_away);
                self.fruitless = if fruitful || !self.stopping { 0 } else { self.fruitless + 1 };
                if self.fruitless > FRUITLESS {
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
                self.timers.set(operator, cx.waiting.until_ns);
            }
            Step::Done => self.finish(cx, operator),
        }
        Ok(())
    }

    /// Notes when a path or deadline that ends here was reached, for each message that the step has taken.
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
            self.finished(cx, operator, stamp, now_ns);
        }
        cx.joining.earlier.clear();
    }

    fn after_source(&mut self, cx: &mut Context, operator: u32, step: Step, flags: u32) {
        let node = &mut self.nodes[operator as usize];
        let has_sent = cx.next < STARVED || cx.sent_away;
        node.sequence += u64::from(has_sent);
        if has_sent {
            node.bounds.iter().for_each(|bound| bound.sent(node.sequence, cx.stamp.due_ns));
        }
        match step {
            Step::Again => {
                if !node.done {
                    self.let_step(cx, operator);
                }
            }
            Step::Wait => {
                cx.turn.clear(operator);
                self.look_for_more(cx, operator, flags);
                self.check_closing(cx, operator);
                let node = &self.nodes[operator as usize];
                if node.open_inputs == 0 && !node.inputs.is_empty() && !node.done {
                    self.finish(cx, operator);
                }
            }
            Step::Until => {
                cx.turn.clear(operator);
                if !node.done {
                    self.timers.set(operator, cx.waiting.until_ns);
                }
            }
            Step::Done => self.finish(cx, operator),
        }
    }

    /// Makes an operator ready that moved on in this step and has messages left, where its pops alone do not tell. One
    /// that took nothing is left alone: it has seen what is there.
    fn look_for_more(&mut self, cx: &mut Context, operator: u32, flags: u32) {
        let moved = cx.popped != 0 && flags & (flag::MULTI | flag::WHEN) != 0 || flags & flag::RESUME != 0;
        let inputs = &self.nodes[operator as usize].inputs;
        if moved && inputs.iter().any(|&edge| self.edges[edge as usize].probe.len(&cx.owner) > 0) {
            cx.ready.set(operator);
        }
    }

    fn keep_stamp(&mut self, cx: &mut Context, operator: u32) {
        let node = &mut self.nodes[operator as usize];
        if !node.source {
            node.kept = Some((cx.stamp, cx.keys.as_ref().map(Arc::clone)));
            cx.hot[operator as usize].flag(flag::RESUME);
        }
    }

    /// The next step comes whether there are messages or not.
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

    /// Closed inputs that have run empty are ended now.
    pub(super) fn check_closing(&mut self, cx: &mut Context, operator: u32) {
        if cx.hot[operator as usize].flags & flag::CLOSING == 0 {
            return;
        }
        for at in 0..self.nodes[operator as usize].inputs.len() {
            let edge = self.nodes[operator as usize].inputs[at];
            self.end_edge_if_empty(cx, edge);
        }
    }

    fn end_edge_if_empty(&mut self, cx: &mut Context, edge: u32) {
        let ends = &self.edges[edge as usize];
        let state = &mut cx.edges[edge as usize];
        if !state.closed || state.ended || ends.probe.len(&cx.owner) > 0 {
            return;
        }
        state.ended = true;
        self.nodes[ends.to as usize].open_inputs -= u32::from(ends.vital);
        // Something to see: `is_ended` is true now.
        cx.ready.set(ends.to);
    }

    /// The operator is done: its outputs close, and what comes in is not read any more.
    pub(super) fn finish(&mut self, cx: &mut Context, operator: u32) {
        // Its memory is kept: the end of an operator allocates nothing.
        let mut open = std::mem::take(&mut self.ending);
        open.push(operator);
        while let Some(operator) = open.pop() {
            let node = &mut self.nodes[operator as usize];
            if std::mem::replace(&mut node.done, true) {
                continue;
            }
            node.kept = None;
            node.trouble.restarting = false;
            if node.paused.take().is_some() {
                self.seat.team.resume_one();
            }
            self.timers.clear(operator);
            cx.turn.clear(operator);
            cx.ready.clear(operator);
            self.starved.retain(|starved| starved.operator != operator);
            if self.conditions[operator as usize].take().is_some_and(|conditions| conditions.outside) {
                self.seat.count_out();
            }
            cx.held[operator as usize] = Hold::No;
            cx.hot[operator as usize].unmet += DONE;
            cx.hot[operator as usize].flags &= !flag::RESUME;
            for at in 0..self.nodes[operator as usize].outputs.len() {
                let edge = self.nodes[operator as usize].outputs[at];
                match self.edges[edge as usize].probe.far() {
                    Some(far) => far.close(&mut cx.owner),
                    None => self.close(cx, edge),
                }
            }
            for at in 0..self.nodes[operator as usize].inputs.len() {
                let edge = self.nodes[operator as usize].inputs[at];
                let state = &mut cx.edges[edge as usize];
                let ends = &self.edges[edge as usize];
                if std::mem::replace(&mut state.gone, true) || state.closed {
                    continue;
                }
                if let Some(far) = ends.probe.far() {
                    far.leave(&mut cx.owner);
                    continue;
                }
                let producer = ends.from;
                let node = &mut self.nodes[producer as usize];
                node.open_outputs -= 1;
                if node.open_outputs == 0 {
                    // Nobody listens any more.
                    open.push(producer);
                }
            }
            self.clear_inputs(cx, operator);
        }
        self.ending = open;
    }

    /// One of its consumers, on another worker, is done.
    pub(super) fn lose_output(&mut self, cx: &mut Context, operator: u32) {
        let node = &mut self.nodes[operator as usize];
        node.open_outputs -= 1;
        if node.open_outputs == 0 {
            self.finish(cx, operator);
        }
    }

    /// No more will come on this edge, whose consumer is here.
    pub(super) fn close(&mut self, cx: &mut Context, edge: u32) {
        let ends = &self.edges[edge as usize];
        cx.edges[edge as usize].closed = true;
        if self.nodes[ends.to as usize].done {
            return;
        }
        // An empty edge that is closed keeps nobody waiting. (A full one is counted as it runs empty.)
        if ends.counted && ends.probe.len(&cx.owner) == 0 && !cx.edges[edge as usize].kept {
            cx.meet(ends.to);
        }
        cx.hot[ends.to as usize].flag(flag::CLOSING);
        if cx.hot[ends.to as usize].flags & flag::WHEN != 0 {
            // It may have waited for more than will come.
            cx.ready.set(ends.to);
        }
        self.end_edge_if_empty(cx, edge);
    }

    /// Throws away what lies before an operator that is done; its producers find room.
    pub(super) fn clear_inputs(&mut self, cx: &mut Context, operator: u32) {
        for at in 0..self.nodes[operator as usize].inputs.len() {
            let edge = self.nodes[operator as usize].inputs[at];
            let ends = &self.edges[edge as usize];
            let was_full = ends.from != NONE && ends.probe.len(&cx.owner) >= ends.waits_at;
            let cleared = ends.probe.clear(&mut cx.owner);
            let state = &mut cx.edges[edge as usize];
            state.unread += cleared;
            state.cleared += cleared;
            if was_full {
                cx.meet(ends.from);
            }
        }
    }
}
