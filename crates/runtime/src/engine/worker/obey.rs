//! What somebody outside asks for, carried out between two steps: orders, and pictures of what goes on.

use super::{Paused, Worker};
use crate::base::panic::panic_text;
use crate::base::wording::nearest;
use crate::engine::control::board::Doing;
use crate::engine::order::{Asked, Order};
use crate::operator::context::{Context, NONE, STARVED};
use crate::{Error, Value};
use onbeat_queue::sync::atomic::Ordering;
use onbeat_trace::record::{ChangeKind, ChangeRecord};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Worker {
    /// Carries out what was ordered, and paints a picture if one was asked for.
    #[cold]
    pub(super) fn obey(&mut self, cx: &mut Context) {
        self.control.board.hear(self.seat.part);
        while let Ok(Asked { order, answer }) = self.seat.orders.try_recv() {
            // Who has asked may have gone.
            let _ = answer.try_send(self.carry_out(cx, &order));
        }
        if let Some(picture) = self.control.board.is_asked(self.seat.part) {
            self.paint(cx);
            self.control.board.answer(self.seat.part, picture);
        }
    }

    fn carry_out(&mut self, cx: &mut Context, order: &Order) -> Result<(), Error> {
        match *order {
            Order::Pause(operator) => {
                self.check_open(cx, operator)?;
                self.check_running()?;
                self.pause(cx, operator);
            }
            Order::Resume(operator) => {
                self.check_open(cx, operator)?;
                self.resume_operator(cx, operator);
            }
            Order::PauseAll => {
                self.check_running()?;
                for operator in 0..self.nodes.len() as u32 {
                    let node = &self.nodes[operator as usize];
                    if !node.done && (node.source || node.circular) {
                        self.pause(cx, operator);
                    }
                }
                self.halted_ns.get_or_insert(cx.now_ns());
            }
            Order::ResumeAll => self.resume_all(cx),
            Order::Finish(operator) => {
                self.check_open(cx, operator)?;
                self.finish(cx, operator);
                self.changed(cx, operator, ChangeKind::Stopped, None);
            }
            Order::Set { operator, ref name, ref value, sample } => {
                self.check_open(cx, operator)?;
                self.set(cx, operator, name, value, sample)?;
                self.changed(cx, operator, ChangeKind::Set, Some((name, value, sample)));
            }
        }
        Ok(())
    }

    /// What the operator's own code says or does wrong is told to whoever asked, and does no harm to the run.
    fn set(
        &mut self,
        cx: &mut Context,
        operator: u32,
        name: &str,
        value: &Value,
        sample: Option<u64>,
    ) -> Result<(), Error> {
        let own = cx.names.operators[operator as usize].clone();
        let it = &mut self.operators[operator as usize];
        let known = it.settable();
        if !known.contains(&name) {
            let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let list = if list.is_empty() { "it has none".to_string() } else { format!("it has {list}") };
            let hint = nearest(name, known.iter().copied());
            let what =
                format!("operator `{own}` has no parameter `{name}` that can be changed while it runs");
            return Err(Error::new(format!("{what}{hint} ({list})")));
        }
        (cx.current, cx.next) = (operator, NONE);
        let set = AssertUnwindSafe(|| match sample {
            Some(sample) => it.set_at(cx, name, value, sample),
            None => it.set(cx, name, value),
        });
        let result = catch_unwind(set);
        if cx.next < STARVED {
            cx.ready.set(cx.next);
        }
        match result {
            Ok(result) => result.map_err(|error| Error::new(format!("operator `{own}`: {error}"))),
            Err(panic) => Err(Error::new(format!("operator `{own}`: panicked: {}", panic_text(&*panic)))),
        }
    }

    fn check_open(&self, cx: &Context, operator: u32) -> Result<(), Error> {
        if !self.nodes[operator as usize].done {
            return Ok(());
        }
        Err(Error::new(format!("operator `{}` has ended", cx.names.operators[operator as usize])))
    }

    fn check_running(&self) -> Result<(), Error> {
        if self.stopping {
            Err(Error::new("the run is coming to its end: nothing can be paused"))
        } else {
            Ok(())
        }
    }

    /// A pause is one more condition that does not hold. What the operator was about to do is remembered like for any other.
    fn pause(&mut self, cx: &mut Context, operator: u32) {
        let node = &mut self.nodes[operator as usize];
        if node.paused.is_some() {
            return;
        }
        let now_ns = cx.now_ns();
        // The alarm of one that is to be started anew may just have gone off.
        let alarm_ns = self.timers.get(operator).or(node.trouble.restarting.then_some(now_ns));
        self.timers.clear(operator);
        node.paused = Some(Paused { since_ns: now_ns, alarm_ns });
        cx.unmeet(operator);
        self.seat.team.pause_one();
        self.changed(cx, operator, ChangeKind::Paused, None);
    }

    fn resume_operator(&mut self, cx: &mut Context, operator: u32) {
        let Some(Paused { since_ns, alarm_ns }) = self.nodes[operator as usize].paused.take() else { return };
        self.seat.team.resume_one();
        let length_ns = cx.now_ns().saturating_sub(since_ns);
        cx.shifts_ns[operator as usize] += length_ns;
        if let Some(alarm_ns) = alarm_ns {
            self.timers.set(operator, alarm_ns.saturating_add(length_ns));
        }
        cx.meet(operator);
        self.changed(cx, operator, ChangeKind::Resumed, None);
    }

    /// For the record.
    fn changed(
        &mut self,
        cx: &Context,
        operator: u32,
        what: ChangeKind,
        set: Option<(&str, &Value, Option<u64>)>,
    ) {
        if self.nodes[operator as usize].is_copy {
            return;
        }
        self.changes.note(|| ChangeRecord {
            time_ns: cx.now_ns().saturating_sub(cx.start_ns),
            operator: cx.names.operators[operator as usize].clone(),
            what,
            parameter: set.map(|(name, ..)| name.to_string()),
            value: set.and_then(|(_, value, _)| serde_json::to_value(value).ok()),
            sample: set.and_then(|(.., sample)| sample),
        });
    }

    /// Lets everything go on that is paused.
    pub(super) fn resume_all(&mut self, cx: &mut Context) {
        for operator in 0..self.nodes.len() as u32 {
            self.resume_operator(cx, operator);
        }
        if let (Some(since_ns), Some(end_ns)) = (self.halted_ns.take(), &mut self.end_ns) {
            *end_ns = end_ns.saturating_add(cx.now_ns().saturating_sub(since_ns));
        }
    }

    /// Copies what people want to see to the board.
    pub fn paint(&self, cx: &Context) {
        let board = &self.control.board;
        for (number, node) in self.nodes.iter().enumerate() {
            let hot = &cx.hot[number];
            let since = u64::from(hot.every.saturating_sub(hot.left)) + self.passes(number as u32);
            let steps = self.meters[number].steps(since);
            let slot = &board.operators[node.plan];
            slot.set(steps, self.doing(cx, number as u32));
            slot.busy_ns.store(self.meters[number].busy_ns(steps), Ordering::Relaxed);
        }
        for deadline in &self.tracker.deadlines {
            let plan = self.nodes[deadline.operator as usize].plan;
            board.operators[plan].late.store(deadline.late, Ordering::Relaxed);
        }
        for path in &self.tracker.paths {
            path.measured.recent.paint(path.misses, &board.paths[path.plan]);
        }
        for (ends, state) in self.edges.iter().zip(&cx.edges) {
            let slot = &board.edges[ends.plan];
            let is_local = ends.from != NONE && ends.to != NONE;
            if ends.from != NONE {
                let sent = ends.probe.sent(&cx.owner) + if is_local { self.carried(ends.to) } else { 0 };
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
        if self.starved.iter().any(|starved| starved.operator == operator) {
            return Doing::AwaitsChunk;
        }
        let has_work = cx.ready.contains(operator) || cx.turn.contains(operator);
        if has_work && cx.hot[operator as usize].unmet == 0 {
            return Doing::Ready;
        }
        if let Some(&edge) = node.outputs.iter().find(|&&edge| self.is_full(cx, edge)) {
            return Doing::AwaitsRoom(self.edges[edge as usize].plan as u32);
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

    /// Whether the producer at this end waits for room.
    pub(super) fn is_full(&self, cx: &Context, edge: u32) -> bool {
        let ends = &self.edges[edge as usize];
        let here = ends.to != NONE && ends.probe.len(&cx.owner) >= ends.waits_at;
        here || cx.edges[edge as usize].waiting
    }

    /// Whether the consumer at this end has nothing there, and may get something.
    pub(super) fn is_awaited(&self, cx: &Context, edge: u32) -> bool {
        self.edges[edge as usize].probe.len(&cx.owner) == 0 && !cx.edges[edge as usize].closed
    }
}
