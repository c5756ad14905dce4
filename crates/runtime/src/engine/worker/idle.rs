//! What the worker does when no operator has a message: it listens to other workers, to alarms, and for the end; and it
//! says what its operators wait for when nothing goes on any more.

use super::{Failure, Pause, STREAK, Starved, Worker};
use crate::engine::control::stuck::Stuck;
use crate::engine::team::{Event, LOOKS, Lying, Rested, look};
use crate::operator::context::{Context, NONE, RunClock};
use crate::operator::link::EdgeEnds;

/// From one look at what else there is to do to the next, at least, where each step is timed.
const LOOK_NS: u64 = 1_000;

/// Most edges from other workers that one looks at itself: it is told of the messages of the others.
const WATCHED: usize = 8;

/// How seldom a worker looks at what others write while it has nothing to do.
///
/// Each look takes the line from the one who writes there, and that one has to fetch it back for its next message. So where messages
/// follow each other closely it looks less often; and not so seldom where there is little room, as the other side then waits for this
/// one.
#[derive(Debug)]
pub(crate) struct Listening {
    /// Pauses from one look to the next, where messages follow each other closely.
    pauses: u32,
    /// What was listened for the last time came soon.
    is_dense: bool,
}

/// Most pauses between two looks; one is 10 to 40 ns.
const PAUSES: usize = 16;

/// Soon is within so many pauses.
const SOON: u32 = 64;

impl Listening {
    /// To the other ends of these edges.
    pub fn on(edges: &[EdgeEnds]) -> Self {
        let afar = edges.iter().filter(|edge| edge.probe.far().is_some());
        let room = afar.map(|edge| edge.capacity).min().unwrap_or(0);
        Listening { pauses: (2 * room).clamp(1, PAUSES) as u32, is_dense: false }
    }
}

impl Worker {
    /// The clock was looked at: is there anything else to do? Not again so soon, where each step is timed.
    #[inline(always)]
    pub(super) fn look_around(&mut self, cx: &mut Context, end_ns: u64) {
        self.streak += 1;
        if end_ns >= self.look_ns {
            // A virtual clock stands still while there is work.
            self.look_ns = if cx.clock.is_real() { end_ns + LOOK_NS } else { 0 };
            self.look_now(cx, end_ns);
        }
    }

    #[inline(never)]
    fn look_now(&mut self, cx: &mut Context, end_ns: u64) {
        self.control.publish(end_ns, cx.stamp.time_ns);
        self.check_stop(cx, end_ns);
        self.fire_timers(cx, end_ns);
        if self.control.board.is_called(self.seat.part) {
            // Somebody outside waits for an answer.
            self.streak = STREAK;
        }
    }

    /// Whether anything but the sources' turns is to be looked at: a few loads in the usual case.
    #[inline]
    pub(super) fn needs_care(&self, cx: &Context) -> bool {
        let timers = !self.timers.is_empty() || (self.end_ns.is_some() && !self.stopping);
        timers && cx.clock.is_real()
            || self.control.is_to_stop(self.stopping)
            || !self.seat.inbox().is_empty()
            || !cx.waiting.full.is_empty()
            || self.watched.iter().any(|&edge| self.has_come(cx, edge))
    }

    /// What there is to do, between two turns of sources. Most often it is the time alone that is to be looked at.
    #[inline]
    pub(super) fn take_care_in_passing(&mut self, cx: &mut Context, now_ns: u64) {
        if !self.seat.inbox().is_empty() {
            self.hear(cx);
        }
        self.look_afar(cx);
        self.check_stop(cx, now_ns);
        self.fire_timers(cx, now_ns);
    }

    #[inline(never)]
    pub(super) fn take_care(&mut self, cx: &mut Context, now_ns: u64) {
        self.hear(cx);
        self.look_afar(cx);
        self.check_stop(cx, now_ns);
        self.fire_timers(cx, now_ns);
    }

    /// Takes in what other workers have told.
    fn hear(&mut self, cx: &mut Context) {
        // Collected first: what follows needs the context, and may ring other bells, this worker's own among them.
        let mut heard = std::mem::take(&mut self.heard);
        self.seat.inbox().drain(&mut cx.owner, |_, item| heard.push(item));
        for item in heard.drain(..) {
            match self.events[item as usize] {
                Event::Data(edge) => self.arrived(cx, edge),
                Event::Room(edge) => self.room_came(cx, edge),
                Event::Chunk => {
                    self.feed(cx);
                }
                Event::Operator(operator) => self.ask_again(cx, operator),
                Event::Control => self.obey(cx),
            }
        }
        self.heard = heard;
    }

    /// Messages came on an edge from another worker, or its end did.
    fn arrived(&mut self, cx: &mut Context, edge: u32) {
        // Not by a clone of the probe: its count lies where the producer reads.
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

    /// Looks whether edges to other workers that were full have room by now, and says whether one has.
    #[inline]
    fn look_for_room(&mut self, cx: &mut Context) -> bool {
        (0..cx.waiting.full.len()).rev().fold(false, |has_room, at| {
            let edge = cx.waiting.full[at];
            let far = self.edges[edge as usize].probe.far();
            if far.is_some_and(|far| far.has_gone(&cx.owner)) {
                self.room_came(cx, edge);
            }
            let waits = cx.edges[edge as usize].waiting;
            if !waits {
                cx.waiting.full.swap_remove(at);
            }
            has_room || !waits
        })
    }

    /// Edges from other workers that it may watch: some, as each look goes to all of them.
    pub fn watchable(edges: &[EdgeEnds]) -> Box<[u32]> {
        let comes_from_afar =
            |&edge: &u32| edges[edge as usize].to != NONE && edges[edge as usize].probe.far().is_some();
        (0..edges.len() as u32).filter(comes_from_afar).take(WATCHED).collect()
    }

    /// Whether messages of other workers are looked for here, and not told: where it looks anyway while it has nothing to do.
    pub fn watch(&mut self, cx: &Context, watches: bool) {
        if watches {
            self.look_again(cx);
        } else {
            self.watched = Box::default();
        }
    }

    fn look_again(&self, cx: &Context) {
        let far = |&edge: &u32| self.edges[edge as usize].probe.far();
        self.watched.iter().filter_map(far).for_each(|far| far.decline_notifications(&cx.owner));
    }

    #[inline]
    fn has_come(&self, cx: &Context, edge: u32) -> bool {
        self.edges[edge as usize].probe.far().is_some_and(|far| far.has_come(&cx.owner))
    }

    /// Looks at what is not told, and says whether there was something.
    #[inline]
    fn look_afar(&mut self, cx: &mut Context) -> bool {
        let mut has_come = self.look_for_room(cx);
        for at in 0..self.watched.len() {
            let edge = self.watched[at];
            if self.has_come(cx, edge) {
                self.arrived(cx, edge);
                has_come = true;
            }
        }
        has_come
    }

    /// Asks to be told of what it looked for until now. False where there is something.
    fn ask_afar(&mut self, cx: &mut Context) -> bool {
        for at in 0..cx.waiting.full.len() {
            self.room_came(cx, cx.waiting.full[at]);
        }
        if cx.waiting.full.iter().any(|&edge| !cx.edges[edge as usize].waiting) {
            return false;
        }
        self.has_asked = true;
        let far = |&edge: &u32| self.edges[edge as usize].probe.far();
        self.watched.iter().filter_map(far).all(|far| far.wait_for_message(&mut cx.owner))
    }

    /// An edge to another worker has room again, or its consumer is done.
    fn room_came(&mut self, cx: &mut Context, edge: u32) {
        let ends = &self.edges[edge as usize];
        let Some(far) = ends.probe.far() else { return };
        let from = ends.from;
        let left = far.is_left(&cx.owner);
        if cx.edges[edge as usize].waiting && (left || far.has_room(&mut cx.owner)) {
            cx.edges[edge as usize].waiting = false;
            cx.meet(from);
        }
        if left && !std::mem::replace(&mut cx.edges[edge as usize].gone, true) {
            self.lose_output(cx, from);
        }
    }

    /// Operators that found a chunk store empty are stepped again when it is not any more.
    fn feed(&mut self, cx: &mut Context) -> bool {
        let mut fed = false;
        for at in (0..self.starved.len()).rev() {
            let Starved { operator, store, chunks } = self.starved[at];
            if cx.stores[store].free() >= chunks {
                self.starved.swap_remove(at);
                self.let_step(cx, operator);
                fed = true;
            }
        }
        fed
    }

    /// Ends the sources when someone asked for it or the time is up; what is under way is worked off.
    pub(super) fn check_stop(&mut self, cx: &mut Context, now_ns: u64) {
        if self.stopping
            || !(self.control.stop_asked() || self.open_end_ns().is_some_and(|end_ns| now_ns >= end_ns))
        {
            return;
        }
        self.resume_all(cx);
        self.stopping = true;
        cx.stopping = true;
        self.control.set_stopped();
        for operator in 0..self.nodes.len() as u32 {
            let node = &self.nodes[operator as usize];
            if node.source || node.circular {
                self.finish(cx, operator);
            }
        }
        // Whoever waits for a time is asked whether it still wants to, and gates are open from now on.
        self.fire_timers(cx, u64::MAX);
        for operator in 0..self.nodes.len() as u32 {
            if self.conditions[operator as usize].is_some() {
                self.ask_again(cx, operator);
            }
        }
    }

    /// When the sources end. Not while all of them are paused.
    pub(super) fn open_end_ns(&self) -> Option<u64> {
        self.end_ns.filter(|_| !self.stopping && self.halted_ns.is_none())
    }

    pub(super) fn fire_timers(&mut self, cx: &mut Context, now_ns: u64) {
        while let Some(operator) = self.timers.take_due(now_ns) {
            self.let_step(cx, operator);
        }
    }

    /// Nothing is ready and no source has a turn. True when there is something after all; else `pause` says what to
    /// wait for.
    #[inline(never)]
    pub(super) fn wait(&mut self, cx: &mut Context) -> bool {
        if self.feed(cx) {
            return true;
        }
        if self.nodes.iter().all(|node| node.done) {
            self.pause = Pause::Over;
            return false;
        }
        let alarm_ns = self.alarm_ns();
        if let (RunClock::Manual(now_ns), Some(alarm_ns), 1) = (&mut cx.clock, alarm_ns, self.seat.team.len())
            && self.seat.inbox().is_empty()
        {
            // Nobody else to ask.
            *now_ns = alarm_ns.max(*now_ns);
            let now_ns = *now_ns;
            self.take_care(cx, now_ns);
            return true;
        }
        self.pause = Pause::Rest(alarm_ns);
        false
    }

    /// Looks until something is told, a chunk comes home, or the real clock comes to `end_ns`. Others still take it for awake, so what
    /// comes meanwhile costs neither side more than a message does. Says whether something came.
    pub fn listen(&mut self, cx: &mut Context, end_ns: u64) -> bool {
        let pauses = if self.listening.is_dense { self.listening.pauses } else { 1 };
        let mut looks = 0;
        let something_came = || {
            looks += 1;
            let turn = self.upcoming(cx);
            if let Some(operator) = turn {
                self.ask_again(cx, operator);
            }
            turn.is_some() || self.look_afar(cx) || !self.seat.inbox().is_empty() || self.feed(cx)
        };
        let every = (LOOKS / pauses).max(1);
        let has_come = look(end_ns, every, pauses, something_came, onbeat_os::clock::monotonic_ns);
        self.listening.is_dense = has_come && pauses.saturating_mul(looks) <= SOON;
        has_come
    }

    /// Lets the others know that nothing is to be done here before `alarm_ns` on the real clock. `None` when there is.
    pub fn lie_down(&mut self, cx: &mut Context, alarm_ns: Option<u64>) -> Option<Lying> {
        // From here on a chunk that comes home from another worker wakes this one.
        if self.starved.iter().any(|starved| !cx.stores[starved.store].want(starved.chunks)) {
            return None;
        }
        // The same goes for messages and room, and for a turn that comes.
        if !self.ask_afar(cx) || !self.wait_for_turns(cx) {
            return None;
        }
        self.release_turns();
        // Progress is looked at while the worker rests, and a stop ends that.
        self.control.publish(cx.now_ns(), cx.stamp.time_ns);
        self.seat.lie_down(&mut cx.owner, alarm_ns)
    }

    /// What [`Pause::Rest`] asked for is over, at `real_ns` on the real clock.
    pub fn wake_up(&mut self, cx: &mut Context, rested: Rested, real_ns: u64) -> Result<(), Failure> {
        if let RunClock::Manual(now_ns) = &mut cx.clock {
            *now_ns = self.seat.virtual_ns().max(*now_ns);
        }
        if rested == Rested::Silence {
            return Err(Failure::Stuck(self.what_is_left(cx)));
        }
        if std::mem::take(&mut self.has_asked) {
            self.look_again(cx);
        }
        let now_ns = if let RunClock::Real(_) = cx.clock { real_ns } else { cx.now_ns() };
        self.take_care(cx, now_ns);
        Ok(())
    }

    /// Nothing can be done and nothing will come. Fine if nothing is left to do, else a dead-lock.
    fn what_is_left(&mut self, cx: &Context) -> Stuck {
        let queued = self.edges.iter().any(|edge| edge.to != NONE && edge.probe.len(&cx.owner) > 0);
        let sources_done = self.nodes.iter().all(|node| node.done || !(node.source || node.circular));
        let serious = !sources_done || queued || !self.starved.is_empty();
        let mut reasons = Vec::new();
        for operator in
            (0..self.nodes.len()).filter(|&operator| !self.nodes[operator].done).collect::<Vec<_>>()
        {
            let mut waits = self.unmet_conditions(cx, operator as u32);
            let node = &self.nodes[operator];
            if self.starved.iter().any(|starved| starved.operator as usize == operator) {
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
                    "nothing that can come: its step returned `Wait`, and no input wakes it".to_string(),
                );
            }
            if waits.is_empty() {
                waits.push("something that its step did not say".to_string());
            }
            reasons.push(format!("{} waits for {}", cx.names.operators[operator], waits.join(" and ")));
        }
        Stuck { serious, reasons }
    }
}
