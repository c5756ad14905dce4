//! Operators that fail in a step without ending the run: they are started anew after a while, or the run goes on without
//! them.

use super::{Failure, Worker};
use crate::base::error::Error;
use crate::base::on_error::{OnError, Restart, Then};
use crate::operator::context::{Context, Hold, NONE, STARVED, flag};
use onbeat_trace::record::{FaultAction, FaultKind, FaultRecord};

impl Worker {
    /// What is to be done about an operator that failed in a step. `None` when the run fails with it.
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
        self.faults.note(|| FaultRecord {
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
            Some(delay_ns) => self.leave_alone(cx, operator, now_ns.saturating_add(delay_ns)),
            None => {
                self.finish(cx, operator);
                self.nodes[operator as usize].trouble.isolated = true;
            }
        }
        Some(())
    }

    /// Brings what the engine knows of an operator to where it is between two steps: the last one did not come to its end.
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
            // It was a slow one.
            (hot.left, hot.every) = (1, 1);
        }
        cx.turn.clear(operator);
        self.on_turn = NONE;
        self.wait_for_all(cx, operator);
        self.timers.clear(operator);
        self.starved.retain(|starved| starved.operator != operator);
        self.tick = None;
        if let Some(conditions) = &mut self.conditions[operator as usize] {
            (conditions.until_ns, conditions.again) = (None, false);
        }
        self.check_closing(cx, operator);
    }

    /// Until its alarm goes off, it is not stepped.
    fn leave_alone(&mut self, cx: &mut Context, operator: u32, until_ns: u64) {
        let trouble = &mut self.nodes[operator as usize].trouble;
        if !std::mem::replace(&mut trouble.restarting, true) {
            cx.unmeet(operator);
        }
        // A run that comes to its end does not wait: what is left is to be worked off.
        let until_ns = if self.stopping { 0 } else { until_ns };
        self.timers.set(operator, until_ns);
    }

    /// Whether it failed, and its alarm has gone off.
    pub(super) fn is_to_restart(&self, operator: u32) -> bool {
        let node = &self.nodes[operator as usize];
        node.trouble.restarting && node.paused.is_none() && self.timers.get(operator).is_none()
    }

    pub(super) fn restart(&mut self, cx: &mut Context, operator: u32) -> Result<(), Failure> {
        (cx.current, cx.next, cx.popped) = (operator, NONE, 0);
        self.slot.enter(operator);
        self.operators[operator as usize].restart(cx).map_err(|error| {
            Failure::Operator(operator, Error::new(format!("cannot start anew: {error}")))
        })?;
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
            self.let_step(cx, operator);
        }
        cx.meet(operator);
        self.poke_chain(cx, operator);
        Ok(())
    }
}

impl crate::base::on_error::Trouble {
    /// One failure more: how long to wait before the next start, if there is to be one.
    fn fail(&mut self, restart: &Restart, now_ns: u64) -> Option<u64> {
        if !self.restarting && now_ns.saturating_sub(self.restarted_ns) >= restart.within_ns {
            self.row = 0;
        }
        self.row += 1;
        (self.row <= restart.limit).then(|| restart.delay_ns(self.row))
    }
}
