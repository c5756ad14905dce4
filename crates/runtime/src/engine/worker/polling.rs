//! Changes from elsewhere, as a worker takes them in: messages and room on edges to other workers,
//! notifications, alarms, the end.

use super::waiting::StarvedOperator;
use super::{STREAK, Worker};
use crate::engine::team::InboxEvent;
use crate::operator::context::{Context, NONE};
use crate::operator::link::EdgeEnds;
use std::sync::Arc;

/// Shortest time from one poll to the next while each step is timed, in nanoseconds.
const POLL_NS: u64 = 1_000;

/// Most edges from other workers that a worker polls. Other edges notify it of messages.
const WATCHED: usize = 8;

impl Worker {
    /// After a timed step: polls at `end_ns`, unless the last poll was less than [`POLL_NS`] before.
    #[inline(always)]
    pub(super) fn poll_after_timed_step(&mut self, cx: &mut Context, end_ns: u64) {
        self.turns.streak += 1;
        if end_ns >= self.turns.next_poll_ns {
            // A virtual clock stands still while there is work.
            self.turns.next_poll_ns = if cx.clock.is_real() { end_ns + POLL_NS } else { 0 };
            self.poll_now(cx, end_ns);
        }
    }

    #[inline(never)]
    fn poll_now(&mut self, cx: &mut Context, end_ns: u64) {
        self.control.publish(end_ns, cx.stamp.time_ns);
        self.seat.descriptors.look_at(|| cx.clock.real_at(end_ns));
        self.check_stop(cx, end_ns);
        self.fire_timers(cx, end_ns);
        if self.control.board.is_called(self.seat.part) {
            // A thread outside waits for an answer.
            self.turns.streak = STREAK;
        }
    }

    /// Whether there is anything to poll before a source has its turn. A few loads in the usual case.
    #[inline]
    pub(super) fn has_news(&self, cx: &Context) -> bool {
        let has_alarm = !self.timers.is_empty() || (self.stop.end_ns.is_some() && !self.stop.is_stopping);
        has_alarm && cx.clock.is_real()
            || self.seat.descriptors.next_look_ns().is_some()
            || self.control.must_stop(self.stop.is_stopping)
            || !self.seat.inbox().is_empty()
            || !cx.waiting.full.is_empty()
            || self.waiting.watched.iter().any(|&edge| self.has_arrived(cx, edge))
    }

    /// Takes in what changed elsewhere, between two turns of sources. Most often only the time has changed.
    #[inline]
    pub(super) fn poll_in_passing(&mut self, cx: &mut Context, now_ns: u64) {
        self.seat.descriptors.look_at(|| cx.clock.real_at(now_ns));
        if !self.seat.inbox().is_empty() {
            self.take_notifications(cx);
        }
        self.poll_edges(cx);
        self.check_stop(cx, now_ns);
        self.fire_timers(cx, now_ns);
    }

    /// Takes in everything that changed elsewhere.
    #[inline(never)]
    pub(super) fn poll_all(&mut self, cx: &mut Context, now_ns: u64) {
        self.take_notifications(cx);
        self.poll_edges(cx);
        self.check_stop(cx, now_ns);
        self.fire_timers(cx, now_ns);
    }

    /// Acts on the items in the inbox.
    fn take_notifications(&mut self, cx: &mut Context) {
        // Collected first: acting on an item needs the context, and may schedule more items, here or
        // elsewhere.
        let mut notified = std::mem::take(&mut self.waiting.notified);
        self.seat.inbox().drain(&mut cx.owner, |_, item| notified.push(item));
        for item in notified.drain(..) {
            match self.waiting.events[item as usize] {
                InboxEvent::Data(edge) => self.receive(cx, edge),
                InboxEvent::Room(edge) => self.find_room(cx, edge),
                InboxEvent::Chunk => {
                    self.retry_starved(cx);
                }
                InboxEvent::Descriptor => self.take_ready_descriptors(cx),
                InboxEvent::Operator(operator) => self.recheck(cx, operator),
                InboxEvent::Control => self.carry_out_orders(cx),
            }
        }
        self.waiting.notified = notified;
    }

    /// Schedules the operators whose descriptors are ready.
    fn take_ready_descriptors(&mut self, cx: &mut Context) {
        let descriptors = Arc::clone(&self.seat.descriptors);
        descriptors.take(self.seat.part, |operator| match self.nodes[operator as usize].awaits_descriptor {
            true => self.step_again(cx, operator),
            // A condition waited for it, or the operator goes on for another reason.
            false => self.recheck(cx, operator),
        });
    }

    /// Brings new messages of an edge from another worker into view, or its end.
    fn receive(&mut self, cx: &mut Context, edge: u32) {
        // Without a clone of the probe: its count is on a cache line that the producer reads.
        let ends = &self.edges[edge as usize];
        let Some(far) = ends.probe.far() else { return };
        let (before, now, closed) = far.poll(&mut cx.owner);
        let (to, counted) = (ends.to, ends.counted);
        if self.nodes[to as usize].done {
            self.clear_inputs(cx, to);
            return;
        }
        let state = &cx.edges[edge as usize];
        if before == 0 && now > 0 && counted && !state.kept && !state.closed {
            cx.meet(to);
        }
        if now > 0 {
            cx.ready.set(to);
        }
        if closed && !cx.edges[edge as usize].closed {
            self.close(cx, edge);
        }
    }

    /// Polls edges to other workers that were full. Returns whether one has room now.
    #[inline]
    fn poll_room(&mut self, cx: &mut Context) -> bool {
        (0..cx.waiting.full.len()).rev().fold(false, |has_room, at| {
            let edge = cx.waiting.full[at];
            let far = self.edges[edge as usize].probe.far();
            if far.is_some_and(|far| far.has_gone(&cx.owner)) {
                self.find_room(cx, edge);
            }
            let waits = cx.edges[edge as usize].waiting;
            if !waits {
                cx.waiting.full.swap_remove(at);
            }
            has_room || !waits
        })
    }

    /// Edges from other workers that a worker may poll: not more than [`WATCHED`], as each poll reads all of
    /// them.
    pub fn watchable(edges: &[EdgeEnds]) -> Box<[u32]> {
        let comes_from_afar =
            |&edge: &u32| edges[edge as usize].to != NONE && edges[edge as usize].probe.far().is_some();
        (0..edges.len() as u32).filter(comes_from_afar).take(WATCHED).collect()
    }

    /// Sets whether this worker polls edges from other workers instead of being notified, as a worker that
    /// spins does.
    pub fn watch(&mut self, cx: &Context, watches: bool) {
        if watches {
            self.disarm_notifications(cx);
        } else {
            self.waiting.watched = Box::default();
        }
    }

    /// Tells the producers of watched edges that this worker polls: they need not notify it.
    pub(super) fn disarm_notifications(&self, cx: &Context) {
        let far = |&edge: &u32| self.edges[edge as usize].probe.far();
        self.waiting.watched.iter().filter_map(far).for_each(|far| far.decline_notifications(&cx.owner));
    }

    #[inline]
    fn has_arrived(&self, cx: &Context, edge: u32) -> bool {
        self.edges[edge as usize].probe.far().is_some_and(|far| far.has_come(&cx.owner))
    }

    /// Polls full and watched edges. Returns whether one of them has changed.
    #[inline]
    pub(super) fn poll_edges(&mut self, cx: &mut Context) -> bool {
        let mut has_changed = self.poll_room(cx);
        for at in 0..self.waiting.watched.len() {
            let edge = self.waiting.watched[at];
            if self.has_arrived(cx, edge) {
                self.receive(cx, edge);
                has_changed = true;
            }
        }
        has_changed
    }

    /// Arms notifications for the edges that were polled until now. False if one of them has changed.
    pub(super) fn arm_notifications(&mut self, cx: &mut Context) -> bool {
        for at in 0..cx.waiting.full.len() {
            self.find_room(cx, cx.waiting.full[at]);
        }
        if cx.waiting.full.iter().any(|&edge| !cx.edges[edge as usize].waiting) {
            return false;
        }
        self.waiting.has_asked = true;
        let far = |&edge: &u32| self.edges[edge as usize].probe.far();
        self.waiting.watched.iter().filter_map(far).all(|far| far.wait_for_message(&mut cx.owner))
    }

    /// Acts on room on an edge to another worker, or on the end of its consumer.
    pub(super) fn find_room(&mut self, cx: &mut Context, edge: u32) {
        let ends = &self.edges[edge as usize];
        let Some(far) = ends.probe.far() else { return };
        let from = ends.from;
        let is_left = far.is_left(&cx.owner);
        if cx.edges[edge as usize].waiting && (is_left || far.has_room(&mut cx.owner)) {
            cx.edges[edge as usize].waiting = false;
            cx.meet(from);
        }
        if is_left && !std::mem::replace(&mut cx.edges[edge as usize].gone, true) {
            self.lose_output(cx, from);
        }
    }

    /// Schedules operators that found too few chunks and can have them now. Returns whether there was one.
    pub(super) fn retry_starved(&mut self, cx: &mut Context) -> bool {
        let mut is_any = false;
        for at in (0..self.waiting.starved.len()).rev() {
            let StarvedOperator { operator, store, chunks } = self.waiting.starved[at];
            if cx.stores[store].free() >= chunks {
                self.waiting.starved.swap_remove(at);
                self.schedule(cx, operator);
                is_any = true;
            }
        }
        is_any
    }

    /// Schedules operators whose alarms are due.
    pub(super) fn fire_timers(&mut self, cx: &mut Context, now_ns: u64) {
        while let Some(operator) = self.timers.take_due(now_ns) {
            self.schedule(cx, operator);
        }
    }
}
