//! Operators that fail in a step without ending the run: they are restarted after a delay, or the run
//! continues without them.

use super::{Failure, Worker};
use crate::base::error::Error;
use crate::base::on_error::{OnError, Restart, Then};
use crate::operator::context::{Context, Hold, NONE, STARVED, flag};
use onbeat_trace::record::{FaultAction, FaultKind, FaultRecord};

impl Worker {
    /// Handles the failure of an operator in a step, as its policy says. `None` if the run fails.
    #[cold]
    pub fn recover(&mut self, cx: &mut Context, operator: u32, what: FaultKind, text: &str) -> Option<()> {
        if what == FaultKind::Panic {
            self.note_panic(operator);
        }
        let now_ns = cx.now_ns();
        let node = self.nodes.get_mut(operator as usize).filter(|node| !node.done)?;
        let (then, delay_ns) = match node.on_error {
            OnError::Stop => return None,
            OnError::Isolate => (FaultAction::Isolated, None),
            OnError::Restart(restart) => match node.trouble.fail(&restart, now_ns) {
                Some(delay_ns) => (FaultAction::Restarted, Some(delay_ns)),
                None if restart.then == Then::Isolate => (FaultAction::Isolated, None),
                None => return None,
            },
        };
        self.history.faults.note(|| FaultRecord {
            time_ns: now_ns.saturating_sub(cx.start_ns),
            operator: Some(cx.names.operators[operator as usize].clone()),
            what,
            text: text.to_string(),
            then,
            delay_ns,
            stack: Vec::new(),
        });
        self.clean_up(cx, operator);
        match delay_ns {
            Some(delay_ns) => self.delay_restart(cx, operator, now_ns.saturating_add(delay_ns)),
            None => {
                self.finish(cx, operator);
                self.nodes[operator as usize].trouble.isolated = true;
            }
        }
        Some(())
    }

    /// Resets the engine's state of an operator to that between two steps, as its last step did not come to
    /// an end.
    fn clean_up(&mut self, cx: &mut Context, operator: u32) {
        if cx.next < STARVED {
            cx.ready.set(cx.next);
        }
        let sent = cx.next < STARVED || std::mem::take(&mut cx.sent_away);
        let node = &mut self.nodes[operator as usize];
        if node.source {
            node.sequence += u64::from(sent);
        }
        node.kept = None;
        (cx.next, cx.popped, cx.stamped_edge) = (NONE, 0, NONE);
        cx.joining.earlier.clear();
        let hot = &mut cx.hot[operator as usize];
        hot.flags &= !(flag::RESUME | flag::STARVED);
        if hot.left == 0 {
            // The step took the slow path.
            (hot.left, hot.every) = (1, 1);
        }
        cx.turn.clear(operator);
        self.turns.on_turn = NONE;
        self.wait_for_all(cx, operator);
        self.timers.clear(operator);
        self.nodes[operator as usize].awaits_descriptor = false;
        self.waiting.starved.retain(|starved| starved.operator != operator);
        self.tick = None;
        if let Some(conditions) = &mut self.conditions[operator as usize] {
            (conditions.until_ns, conditions.again) = (None, false);
        }
        self.check_closing(cx, operator);
    }

    /// Keeps an operator from being stepped until its alarm goes off.
    fn delay_restart(&mut self, cx: &mut Context, operator: u32, until_ns: u64) {
        let trouble = &mut self.nodes[operator as usize].trouble;
        if !std::mem::replace(&mut trouble.restarting, true) {
            cx.unmeet(operator);
        }
        // A run that ends does not wait: messages in flight should still be processed.
        let until_ns = if self.stop.is_stopping { 0 } else { until_ns };
        self.timers.set(operator, until_ns);
    }

    /// Whether an operator has failed, and its alarm has gone off.
    pub(super) fn should_restart(&self, operator: u32) -> bool {
        let node = &self.nodes[operator as usize];
        node.trouble.restarting && node.paused.is_none() && self.timers.get(operator).is_none()
    }

    /// Calls the operator's `restart`, and lets it be stepped again.
    pub(super) fn restart(&mut self, cx: &mut Context, operator: u32) -> Result<(), Failure> {
        (cx.current, cx.next, cx.popped) = (operator, NONE, 0);
        self.slot.enter(operator);
        self.forget_alarm(cx);
        self.operators[operator as usize]
            .restart(cx)
            .map_err(|error| Failure::Operator(operator, Error::new(format!("cannot restart: {error}"))))?;
        if cx.next < STARVED {
            cx.ready.set(cx.next);
        }
        let now_ns = cx.now_ns();
        let node = &mut self.nodes[operator as usize];
        node.trouble.restarting = false;
        node.trouble.restarts += 1;
        node.trouble.restarted_ns = now_ns;
        let inputs = &node.inputs;
        let has_work = inputs.iter().any(|&edge| self.edges[edge as usize].probe.len(&cx.owner) > 0)
            || !inputs.is_empty() && node.open_inputs == 0;
        cx.held[operator as usize] = Hold::No;
        if node.source || has_work || self.conditions[operator as usize].is_some() {
            self.schedule(cx, operator);
        }
        cx.meet(operator);
        self.set_first_alarm(cx, operator);
        self.resume_chain(cx, operator);
        Ok(())
    }
}

impl crate::base::on_error::Trouble {
    /// Counts a failure. Returns the delay before the restart, `None` if the limit is reached.
    fn fail(&mut self, restart: &Restart, now_ns: u64) -> Option<u64> {
        if !self.restarting && now_ns.saturating_sub(self.restarted_ns) >= restart.within_ns {
            self.row = 0;
        }
        self.row += 1;
        (self.row <= restart.limit).then(|| restart.delay_ns(self.row))
    }
}
