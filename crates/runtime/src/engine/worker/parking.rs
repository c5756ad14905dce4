//! Waits of a worker without work: it spins, parks, wakes up, and says what its operators wait for if nothing
//! can happen any more.

use super::{Failure, Pause, Worker};
use crate::engine::control::standstill::Standstill;
use crate::engine::team::{POLLS, ParkOutcome, ParkState, spin_until};
use crate::operator::context::{Context, NONE, RunClock};

/// Most polls and pauses of a short wait.
const SHORT_WAIT: u32 = 64;

impl Worker {
    /// Called when nothing is ready and no source wants a turn. True if there is work after all; otherwise
    /// [`Waiting::pause`](super::Waiting::pause) says what to wait for.
    #[inline(never)]
    pub(super) fn wait(&mut self, cx: &mut Context) -> bool {
        if self.retry_starved(cx) {
            return true;
        }
        if self.nodes.iter().all(|node| node.done) {
            self.waiting.pause = Pause::Over;
            return false;
        }
        let alarm_ns = self.alarm_ns();
        if let (RunClock::Manual(now_ns), Some(alarm_ns), 1) = (&mut cx.clock, alarm_ns, self.seat.team.len())
            && self.seat.inbox().is_empty()
        {
            // No other part can have an earlier alarm.
            *now_ns = alarm_ns.max(*now_ns);
            let now_ns = *now_ns;
            self.poll_all(cx, now_ns);
            return true;
        }
        self.waiting.pause = Pause::Rest(alarm_ns);
        false
    }

    /// Polls until something changes, a chunk comes home, or the real clock reaches `end_ns`. Other workers
    /// still see this one as awake, so whatever comes costs neither side more than a message does. Returns
    /// whether something came.
    pub fn spin(&mut self, cx: &mut Context, end_ns: u64) -> bool {
        let pauses = if self.waiting.spin_pace.is_dense { self.waiting.spin_pace.pauses } else { 1 };
        let mut polls = 0u32;
        let something_came = || {
            polls += 1;
            if polls.is_multiple_of(POLLS) {
                self.seat.descriptors.look();
            }
            let end = self.due_migrating_end(cx);
            if let Some(operator) = end {
                self.recheck(cx, operator);
            }
            end.is_some() || self.poll_edges(cx) || !self.seat.inbox().is_empty() || self.retry_starved(cx)
        };
        let every = (POLLS / pauses).max(1);
        let has_come = spin_until(end_ns, every, pauses, something_came, onbeat_os::clock::monotonic_ns);
        self.waiting.spin_pace.is_dense = has_come && pauses.saturating_mul(polls) <= SHORT_WAIT;
        has_come
    }

    /// Parks this part: there is no work here before `alarm_ns` on the real clock. `None` if there is work
    /// after all.
    pub fn park(&mut self, cx: &mut Context, alarm_ns: Option<u64>) -> Option<ParkState> {
        // From here on, a chunk that comes home from another worker wakes this one.
        if self.waiting.starved.iter().any(|starved| !cx.stores[starved.store].want(starved.chunks)) {
            return None;
        }
        // Messages, room and turns of migrating ends do so, too.
        if !self.arm_notifications(cx) || !self.await_migrating_ends(cx) {
            return None;
        }
        self.release_turns();
        // Other threads read the progress while the worker is parked. A request to stop wakes it.
        self.control.publish(cx.now_ns(), cx.stamp.time_ns);
        let awaits_descriptor = self.nodes.iter().any(|node| node.awaits_descriptor);
        self.seat.park(&mut cx.owner, alarm_ns, awaits_descriptor)
    }

    /// Continues after [`Pause::Rest`], at `real_ns` on the real clock.
    pub fn wake_up(&mut self, cx: &mut Context, outcome: ParkOutcome, real_ns: u64) -> Result<(), Failure> {
        if let RunClock::Manual(now_ns) = &mut cx.clock {
            *now_ns = self.seat.virtual_ns().max(*now_ns);
        }
        if outcome == ParkOutcome::Quiescent {
            return Err(Failure::Stuck(self.standstill(cx)));
        }
        if std::mem::take(&mut self.waiting.has_asked) {
            self.disarm_notifications(cx);
        }
        let now_ns = if let RunClock::Real(_) = cx.clock { real_ns } else { cx.now_ns() };
        self.poll_all(cx, now_ns);
        Ok(())
    }

    /// What operators here wait for although nothing will come: a deadlock if messages or sources are left.
    fn standstill(&mut self, cx: &Context) -> Standstill {
        let queued = self.edges.iter().any(|edge| edge.to != NONE && edge.probe.len(&cx.owner) > 0);
        let sources_done = self.nodes.iter().all(|node| node.done || !(node.source || node.circular));
        let serious = !sources_done || queued || !self.waiting.starved.is_empty();
        let mut reasons = Vec::new();
        for operator in
            (0..self.nodes.len()).filter(|&operator| !self.nodes[operator].done).collect::<Vec<_>>()
        {
            let mut waits = self.unmet_conditions(cx, operator as u32);
            let node = &self.nodes[operator];
            if self.waiting.starved.iter().any(|starved| starved.operator as usize == operator) {
                waits.push("a chunk from a store that has none left".to_string());
            }
            for &edge in &node.outputs {
                if self.is_full(cx, edge) {
                    let full = self.edges[edge as usize].capacity;
                    waits.push(format!("room on {} ({full} of {full})", cx.names.edges[edge as usize]));
                }
            }
            for &edge in &node.inputs {
                if self.is_awaited(cx, edge) {
                    waits.push(format!("a message on {}", cx.names.edges[edge as usize]));
                }
            }
            if node.has_turns && waits.is_empty() {
                waits.push("its turn".to_string());
            }
            if node.source && waits.is_empty() {
                waits.push(
                    "something that can never come: its step returned `Wait`, but it has no input that could wake it".to_string(),
                );
            }
            if waits.is_empty() {
                waits.push("something that its step did not say".to_string());
            }
            reasons.push(format!("{} waits for {}", cx.names.operators[operator], waits.join(" and ")));
        }
        Standstill { serious, reasons }
    }
}
