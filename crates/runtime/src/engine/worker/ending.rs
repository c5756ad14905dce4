//! Ends of operators and edges.

use super::Worker;
use crate::operator::context::{Context, DONE, Hold, NONE, flag};

impl Worker {
    /// Ends closed inputs that have run empty.
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
        let node = &mut self.nodes[ends.to as usize];
        node.open_inputs -= u32::from(ends.vital);
        if node.open_inputs == 0 && !node.source && node.kept.is_none() {
            // What the operator sends now answers no message.
            node.kept = Some((cx.stamp.without_due(), None));
            cx.hot[ends.to as usize].flag(flag::RESUME);
        }
        // The operator sees that `is_ended` is true now.
        cx.ready.set(ends.to);
    }

    /// Ends an operator: its outputs close, and its inputs are not read any more.
    pub(super) fn finish(&mut self, cx: &mut Context, operator: u32) {
        // The list keeps its memory, so the end of an operator allocates nothing.
        let mut open = std::mem::take(&mut self.stop.ending);
        open.push(operator);
        while let Some(operator) = open.pop() {
            let node = &mut self.nodes[operator as usize];
            if std::mem::replace(&mut node.done, true) {
                continue;
            }
            self.operators[operator as usize].finished();
            node.kept = None;
            node.trouble.restarting = false;
            if node.paused.take().is_some() {
                self.seat.team.resume_one();
            }
            self.timers.clear(operator);
            self.nodes[operator as usize].awaits_descriptor = false;
            cx.turn.clear(operator);
            cx.ready.clear(operator);
            self.waiting.starved.retain(|starved| starved.operator != operator);
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
                    // No consumer is left.
                    open.push(producer);
                }
            }
            self.clear_inputs(cx, operator);
        }
        self.stop.ending = open;
    }

    /// Notes that one consumer of an operator, on another worker, is done.
    pub(super) fn lose_output(&mut self, cx: &mut Context, operator: u32) {
        let node = &mut self.nodes[operator as usize];
        node.open_outputs -= 1;
        if node.open_outputs == 0 {
            self.finish(cx, operator);
        }
    }

    /// Closes an edge whose consumer is here: no more messages will come.
    pub(super) fn close(&mut self, cx: &mut Context, edge: u32) {
        let ends = &self.edges[edge as usize];
        cx.edges[edge as usize].closed = true;
        if self.nodes[ends.to as usize].done {
            return;
        }
        // A closed edge that is empty keeps no operator waiting. (Any other is counted when it runs empty.)
        if ends.counted && ends.probe.len(&cx.owner) == 0 && !cx.edges[edge as usize].kept {
            cx.meet(ends.to);
        }
        cx.hot[ends.to as usize].flag(flag::CLOSING);
        if cx.hot[ends.to as usize].flags & flag::WHEN != 0 {
            // Its conditions may wait for more messages than will come.
            cx.ready.set(ends.to);
        }
        self.end_edge_if_empty(cx, edge);
    }

    /// Drops messages queued before an operator that is done, so that its producers find room.
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
