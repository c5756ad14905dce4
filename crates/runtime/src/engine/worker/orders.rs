//! Orders from outside, and requests for a snapshot, carried out between two steps.

use super::{OperatorPause, Worker};
use crate::base::panic::panic_text;
use crate::base::wording::nearest;
use crate::engine::order::{Order, OrderRequest};
use crate::operator::context::{Context, NONE, STARVED};
use crate::{Error, FetchedData, Value};
use onbeat_trace::record::{ChangeKind, ChangeRecord};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Worker {
    /// Carries out pending orders, and publishes a snapshot if one was requested.
    #[cold]
    pub(super) fn carry_out_orders(&mut self, cx: &mut Context) {
        self.control.board.take_call(self.seat.part);
        while let Ok(OrderRequest { order, answer }) = self.seat.orders.try_recv() {
            // The thread that gave the order may be gone.
            let _ = answer.try_send(self.carry_out(cx, &order));
        }
        if let Some(snapshot) = self.control.board.requested(self.seat.part) {
            self.publish_snapshot(cx);
            self.control.board.answer(self.seat.part, snapshot);
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
                self.stop.halted_ns.get_or_insert(cx.now_ns());
            }
            Order::ResumeAll => self.resume_all(cx),
            Order::Finish(operator) => {
                self.check_open(cx, operator)?;
                self.finish(cx, operator);
                self.note_change(cx, operator, ChangeKind::Stopped, None);
            }
            Order::Set { operator, ref name, ref value, sample } => {
                self.check_open(cx, operator)?;
                self.set(cx, operator, name, value, sample)?;
                self.note_change(cx, operator, ChangeKind::Set, Some((name, value, sample)));
            }
            Order::Fetch(operator, ref to) => {
                self.check_open(cx, operator)?;
                let fetched = self.fetch(cx, operator)?;
                // The thread that asked may be gone, and replicas have one answer.
                let _ = to.try_send(fetched);
            }
        }
        Ok(())
    }

    /// Sets a parameter. Errors and panics of the operator's code go to the thread that gave the order, and
    /// do not fail the run.
    fn set(
        &mut self,
        cx: &mut Context,
        operator: u32,
        name: &str,
        value: &Value,
        sample: Option<u64>,
    ) -> Result<(), Error> {
        let operator_name = cx.names.operators[operator as usize].clone();
        let target = &mut self.operators[operator as usize];
        let known = target.settable();
        if !known.contains(&name) {
            let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let list = if list.is_empty() { "it has none".to_string() } else { format!("it has {list}") };
            let hint = nearest(name, known.iter().copied());
            let what = format!(
                "operator `{operator_name}` has no parameter `{name}` that can be changed while it runs"
            );
            return Err(Error::new(format!("{what}{hint} ({list})")));
        }
        (cx.current, cx.next) = (operator, NONE);
        let call = AssertUnwindSafe(|| match sample {
            Some(sample) => target.set_at(cx, name, value, sample),
            None => target.set(cx, name, value),
        });
        let result = catch_unwind(call);
        if cx.next < STARVED {
            cx.ready.set(cx.next);
        }
        match result {
            Ok(result) => result.map_err(|error| Error::new(format!("operator `{operator_name}`: {error}"))),
            Err(panic) => {
                Err(Error::new(format!("operator `{operator_name}`: panicked: {}", panic_text(&*panic))))
            }
        }
    }

    /// Lets an operator hand something out. Errors and panics go to the thread that gave the order.
    fn fetch(&mut self, cx: &mut Context, operator: u32) -> Result<FetchedData, Error> {
        let name = &cx.names.operators[operator as usize];
        let target = &mut self.operators[operator as usize];
        let wrong = |text: &str| Error::new(format!("operator `{name}`: {text}"));
        match catch_unwind(AssertUnwindSafe(|| target.fetch())) {
            Ok(result) => result.map_err(|error| wrong(&error.to_string())),
            Err(panic) => Err(wrong(&format!("panicked: {}", panic_text(&*panic)))),
        }
    }

    fn check_open(&self, cx: &Context, operator: u32) -> Result<(), Error> {
        if !self.nodes[operator as usize].done {
            return Ok(());
        }
        Err(Error::new(format!("operator `{}` has ended", cx.names.operators[operator as usize])))
    }

    fn check_running(&self) -> Result<(), Error> {
        if self.stop.is_stopping {
            Err(Error::new("the run is coming to its end: nothing can be paused"))
        } else {
            Ok(())
        }
    }

    /// Pauses an operator: one more condition does not hold. Its pending work is kept as for any other
    /// condition.
    fn pause(&mut self, cx: &mut Context, operator: u32) {
        let node = &mut self.nodes[operator as usize];
        if node.paused.is_some() {
            return;
        }
        let now_ns = cx.now_ns();
        // The alarm of an operator that will be restarted may just have gone off.
        // So may the descriptor of one that waits for it: it looks again when it is resumed.
        let looks_again = node.trouble.restarting || node.awaits_descriptor;
        let alarm_ns = self.timers.get(operator).or(looks_again.then_some(now_ns));
        self.timers.clear(operator);
        node.paused = Some(OperatorPause { since_ns: now_ns, alarm_ns });
        cx.unmeet(operator);
        self.seat.team.pause_one();
        self.note_change(cx, operator, ChangeKind::Paused, None);
    }

    fn resume_operator(&mut self, cx: &mut Context, operator: u32) {
        let Some(OperatorPause { since_ns, alarm_ns }) = self.nodes[operator as usize].paused.take() else {
            return;
        };
        self.seat.team.resume_one();
        let length_ns = cx.now_ns().saturating_sub(since_ns);
        cx.shifts_ns[operator as usize] += length_ns;
        if let Some(alarm_ns) = alarm_ns {
            self.timers.set(operator, alarm_ns.saturating_add(length_ns));
        }
        cx.meet(operator);
        self.note_change(cx, operator, ChangeKind::Resumed, None);
    }

    /// Notes a change for the record.
    fn note_change(
        &mut self,
        cx: &Context,
        operator: u32,
        what: ChangeKind,
        set: Option<(&str, &Value, Option<u64>)>,
    ) {
        if self.nodes[operator as usize].is_copy {
            return;
        }
        self.history.changes.note(|| ChangeRecord {
            time_ns: cx.now_ns().saturating_sub(cx.start_ns),
            operator: cx.names.operators[operator as usize].clone(),
            what,
            parameter: set.map(|(name, ..)| name.to_string()),
            value: set.and_then(|(_, value, _)| serde_json::to_value(value).ok()),
            sample: set.and_then(|(.., sample)| sample),
        });
    }

    /// Resumes all paused operators.
    pub(super) fn resume_all(&mut self, cx: &mut Context) {
        for operator in 0..self.nodes.len() as u32 {
            self.resume_operator(cx, operator);
        }
        if let (Some(since_ns), Some(end_ns)) = (self.stop.halted_ns.take(), &mut self.stop.end_ns) {
            *end_ns = end_ns.saturating_add(cx.now_ns().saturating_sub(since_ns));
        }
    }
}
