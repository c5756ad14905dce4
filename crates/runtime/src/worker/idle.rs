//! What the worker does when no operator has a message: turns of sources, alarms, the end, and dead-locks.

use super::{Failure, Worker};
use crate::context::{Clock, Context};

impl Worker {
    /// Whether anything but the sources' turns is to be looked at. Two loads in the usual case.
    #[inline]
    pub(super) fn needs_care(&self, cx: &Context) -> bool {
        let timers = !self.timers.is_empty() || (self.end_ns.is_some() && !self.stopping);
        timers && cx.clock == Clock::Real || self.control.stop_asked() && !self.stopping
    }

    #[inline(never)]
    pub(super) fn take_care(&mut self, cx: &mut Context) {
        let now_ns = cx.now_ns();
        self.check_stop(cx, now_ns);
        self.fire_timers(cx, now_ns);
    }

    /// Ends the sources when someone asked for it or the time is up; what is under way is worked off.
    pub(super) fn check_stop(&mut self, cx: &mut Context, now_ns: u64) {
        if self.stopping || !(self.control.stop_asked() || self.end_ns.is_some_and(|end_ns| now_ns >= end_ns))
        {
            return;
        }
        self.stopping = true;
        self.control.set_stopped();
        for operator in 0..self.nodes.len() as u32 {
            if self.nodes[operator as usize].source {
                self.finish(cx, operator);
            }
        }
    }

    pub(super) fn fire_timers(&mut self, cx: &mut Context, now_ns: u64) {
        while let Some(operator) = self.timers.take_due(now_ns) {
            if self.nodes[operator as usize].source {
                cx.turn.set(operator);
            } else {
                cx.ready.set(operator);
            }
        }
    }

    /// Nothing is ready and no source has a turn. Waits for time to pass; says `false` when the run is over.
    #[inline(never)]
    pub(super) fn wait(&mut self, cx: &mut Context) -> Result<bool, Failure> {
        let mut fed = false;
        self.starved.retain(|&(operator, store)| {
            let free = cx.stores[store].has_free();
            if free {
                let set = if self.nodes[operator as usize].source { &mut cx.turn } else { &mut cx.ready };
                set.set(operator);
            }
            fed |= free;
            !free
        });
        if fed {
            return Ok(true);
        }
        let alarm_ns = match (self.timers.earliest_ns(), self.end_ns.filter(|_| !self.stopping)) {
            (Some(alarm_ns), Some(end_ns)) => Some(alarm_ns.min(end_ns)),
            (Some(alarm_ns), None) => Some(alarm_ns),
            (None, _) => None,
        };
        let Some(alarm_ns) = alarm_ns else {
            if self.nodes.iter().all(|node| node.done) {
                return Ok(false);
            }
            return self.dead_end(cx);
        };
        match &mut cx.clock {
            Clock::Real => {
                let begin_ns = onbeat_os::clock::monotonic_ns();
                // Progress is looked at while the worker sleeps, and a stop wakes it.
                self.control.publish(begin_ns, cx.stamp.time_ns);
                let _ = self.parker.park_until(alarm_ns);
                self.idle_ns += onbeat_os::clock::monotonic_ns().saturating_sub(begin_ns);
            }
            Clock::Manual(now_ns) => *now_ns = alarm_ns.max(*now_ns),
        }
        let now_ns = cx.now_ns();
        self.check_stop(cx, now_ns);
        self.fire_timers(cx, now_ns);
        Ok(true)
    }

    /// Nothing can be done and nothing will come. Fine if nothing is left to do, else a dead-lock.
    fn dead_end(&mut self, cx: &mut Context) -> Result<bool, Failure> {
        let queued = self.edges.iter().any(|edge| edge.probe.len(&cx.owner) > 0);
        let sources_done = self.nodes.iter().all(|node| node.done || !node.source);
        if sources_done && !queued && self.starved.is_empty() {
            return Ok(false);
        }
        let mut reasons = Vec::new();
        for (operator, node) in self.nodes.iter().enumerate().filter(|(_, node)| !node.done) {
            let mut waits = Vec::new();
            if self.starved.iter().any(|&(starved, _)| starved as usize == operator) {
                waits.push("a chunk from a store that has none left".to_string());
            }
            for &edge in &node.outputs {
                let ends = &self.edges[edge as usize];
                let len = ends.probe.len(&cx.owner);
                if ends.waits && len == ends.capacity {
                    waits.push(format!("room on {} ({len} of {len})", cx.names.edges[edge as usize]));
                }
            }
            for &edge in &node.inputs {
                let ends = &self.edges[edge as usize];
                if ends.probe.len(&cx.owner) == 0 && !cx.edges[edge as usize].closed {
                    waits.push(format!("a message on {}", cx.names.edges[edge as usize]));
                }
            }
            if node.source && waits.is_empty() {
                waits.push(
                    "nothing that can come: its step returned `Wait`, and no input wakes it".to_string(),
                );
            }
            if waits.is_empty() {
                waits.push("something that its step did not say".to_string());
            }
            reasons.push(format!("{} waits for {}", cx.names.operators[operator], waits.join(" and ")));
        }
        Err(Failure::Deadlock(reasons))
    }
}
