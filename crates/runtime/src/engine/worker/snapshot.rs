//! Snapshots of a worker for threads that watch the run: counters, and what each operator waits for.

use super::Worker;
use crate::engine::control::board::Doing;
use crate::operator::context::{Context, NONE};
use onbeat_queue::sync::atomic::Ordering;

impl Worker {
    /// Copies counters and states to the board.
    pub fn publish_snapshot(&self, cx: &Context) {
        let board = &self.control.board;
        for (number, node) in self.nodes.iter().enumerate() {
            let hot = &cx.hot[number];
            let since = u64::from(hot.every.saturating_sub(hot.left)) + self.passes(number as u32);
            let steps = self.meters[number].steps(since);
            let slot = &board.operators[node.plan];
            slot.set(steps, self.doing(cx, number as u32));
            slot.busy_ns.store(self.meters[number].busy_ns(steps), Ordering::Relaxed);
            slot.lost.store(cx.losses.total(number as u32), Ordering::Relaxed);
        }
        for deadline in &self.tracker.deadlines {
            let plan = self.nodes[deadline.operator as usize].plan;
            board.operators[plan].late.store(deadline.late, Ordering::Relaxed);
        }
        for path in &self.tracker.paths {
            path.statistics.recent.publish(path.misses, &board.paths[path.plan]);
        }
        for (ends, state) in self.edges.iter().zip(&cx.edges) {
            let slot = &board.edges[ends.plan];
            let is_local = ends.from != NONE && ends.to != NONE;
            if ends.from != NONE {
                let sent = ends.probe.sent(&cx.owner) + if is_local { self.unqueued(ends.to) } else { 0 };
                let inside = if is_local {
                    ends.probe.len(&cx.owner) as u64
                } else {
                    sent - (state.dropped - state.refused)
                };
                slot.sent.store(sent + state.refused, Ordering::Relaxed);
                slot.put.store(inside, Ordering::Relaxed);
                slot.dropped.store(state.dropped, Ordering::Relaxed);
            }
            if ends.to != NONE && !is_local {
                slot.taken.store(ends.probe.taken(&cx.owner), Ordering::Relaxed);
            }
        }
    }

    /// What an operator does at the moment.
    fn doing(&self, cx: &Context, operator: u32) -> Doing {
        let node = &self.nodes[operator as usize];
        if node.done {
            return if node.trouble.isolated { Doing::Isolated } else { Doing::Done };
        }
        if node.paused.is_some() {
            return Doing::Paused;
        }
        if node.trouble.restarting {
            return Doing::Restarts;
        }
        if self.waiting.starved.iter().any(|starved| starved.operator == operator) {
            return Doing::AwaitsChunk;
        }
        let has_work = cx.ready.contains(operator) || cx.turn.contains(operator);
        if has_work && cx.hot[operator as usize].unmet == 0 {
            return Doing::Ready;
        }
        if let Some(&edge) = node.outputs.iter().find(|&&edge| self.is_full(cx, edge)) {
            return Doing::AwaitsRoom(self.edges[edge as usize].plan as u32);
        }
        if node.awaits_descriptor {
            return Doing::AwaitsDescriptor;
        }
        if self.timers.get(operator).is_some() {
            return Doing::AwaitsTime;
        }
        if let Some(conditions) = &self.conditions[operator as usize] {
            return Doing::AwaitsCondition(conditions.unmet);
        }
        match node.inputs.iter().find(|&&edge| self.is_awaited(cx, edge)) {
            Some(&edge) => Doing::AwaitsMessage(self.edges[edge as usize].plan as u32),
            None => Doing::Awaits,
        }
    }

    /// Whether the producer waits for room on this edge.
    pub(super) fn is_full(&self, cx: &Context, edge: u32) -> bool {
        let ends = &self.edges[edge as usize];
        let here = ends.to != NONE && ends.probe.len(&cx.owner) >= ends.waits_at;
        here || cx.edges[edge as usize].waiting
    }

    /// Whether the consumer of this edge has no message there, but may get one.
    pub(super) fn is_awaited(&self, cx: &Context, edge: u32) -> bool {
        self.edges[edge as usize].probe.len(&cx.owner) == 0 && !cx.edges[edge as usize].closed
    }
}
