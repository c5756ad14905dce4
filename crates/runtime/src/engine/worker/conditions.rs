//! Operators that wait for more than messages and room: their conditions are checked whenever something has
//! changed for them. They take the slow path at every step; other operators pay nothing.

use super::{Failure, Worker};
use crate::base::error::Error;
use crate::base::panic::panic_text;
use crate::base::quiescence::NEVER;
use crate::operator::Step;
use crate::operator::context::{Context, NONE};
use crate::operator::when::{Asks, Compiled, Readiness, View};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Worker {
    /// Whether all conditions of an operator hold. If not, they are checked again when that may have changed;
    /// if they can never hold, the operator is ended.
    pub(super) fn conditions_hold(&mut self, cx: &mut Context, operator: u32) -> Result<bool, Failure> {
        let Some(conditions) = &self.conditions[operator as usize] else { return Ok(true) };
        let node = &self.nodes[operator as usize];
        let ended = !node.inputs.is_empty() && node.open_inputs == 0;
        let until_ns = conditions.until_ns;
        let until = until_ns.is_some_and(|until_ns| cx.now_ns() >= until_ns);
        let waived = conditions.again || until || ended;
        cx.current = operator;
        let mut unmet = None;
        let checked =
            self.with_conditions(cx, operator, waived, |list, view| check_all(list, view, ended, &mut unmet));
        if let Some(conditions) = &mut self.conditions[operator as usize] {
            conditions.unmet = unmet.unwrap_or(u32::MAX);
        }
        let Some((verdict, Asks { tick, chunks, notes, released_ns })) = checked else { return Ok(true) };
        notes.into_inner().into_iter().for_each(|note| cx.note(note));
        match verdict.and_then(|verdict| verdict).map_err(|error| Failure::Operator(operator, error))? {
            Readiness::Holds => {
                self.tick = tick.get();
                (cx.released_ns, cx.held_ns) = (released_ns.get(), 0);
                return Ok(true);
            }
            Readiness::Until(time_ns) => {
                self.timers.set(operator, until_ns.map_or(time_ns, |until_ns| until_ns.min(time_ns)));
            }
            Readiness::Waits => {
                if let Some(until_ns) = until_ns {
                    self.timers.set(operator, until_ns);
                }
                if let Some((store, chunks)) = chunks.get()
                    && !self.waiting.starved.iter().any(|starved| starved.operator == operator)
                {
                    self.waiting.starved.push(super::StarvedOperator { operator, store, chunks });
                }
            }
            Readiness::Never => self.finish(cx, operator),
        }
        // Nothing was stepped, so there is no message to follow.
        (cx.next, cx.popped) = (NONE, 0);
        Ok(false)
    }

    /// Gives the messages of a source that a tick has let through the due time of the tick.
    pub(super) fn stamp_tick(&mut self, cx: &mut Context) {
        if let Some((time_ns, due_ns)) = self.tick.take() {
            let due_ns = (cx.pace(crate::Pace::Real) == crate::Pace::Real).then_some(due_ns);
            cx.set_time(time_ns, due_ns);
        }
    }

    /// Notes a step of an operator with conditions.
    pub(super) fn note_conditional_step(
        &mut self,
        cx: &Context,
        operator: u32,
        outcome: &Result<Step, Error>,
    ) -> Result<(), Failure> {
        let Some(conditions) = &mut self.conditions[operator as usize] else { return Ok(()) };
        conditions.steps += 1;
        let source = self.nodes[operator as usize].source;
        conditions.again = !source && matches!(outcome, Ok(Step::Again));
        let until_ns = Some(cx.waiting.until_ns).filter(|&until_ns| until_ns != NEVER);
        conditions.until_ns = until_ns.filter(|_| matches!(outcome, Ok(Step::Until)));
        let stepped =
            |list: &mut [Compiled], view: &View<'_>| list.iter_mut().for_each(|it| it.stepped(view));
        match self.with_conditions(cx, operator, false, stepped) {
            Some((Err(error), _)) => Err(Failure::Operator(operator, error)),
            _ => Ok(()),
        }
    }

    /// Has the conditions of an operator checked again.
    pub(super) fn recheck(&mut self, cx: &mut Context, operator: u32) {
        if !self.nodes[operator as usize].done {
            self.schedule(cx, operator);
        }
    }

    /// Conditions that do not hold, in words.
    pub(super) fn unmet_conditions(&mut self, cx: &Context, operator: u32) -> Vec<String> {
        let unmet = |condition: &mut Compiled, view: &View<'_>| match condition.check(view) {
            Ok(Readiness::Holds) => None,
            _ => Some(condition.describe()),
        };
        let all = |list: &mut [Compiled], view: &View<'_>| {
            list.iter_mut().filter_map(|condition| unmet(condition, view)).collect()
        };
        match self.with_conditions(cx, operator, false, all) {
            Some((Ok(unmet), _)) => unmet,
            _ => Vec::new(),
        }
    }

    /// Calls `act` with the conditions of an operator. `None` if it has none; an error if one of them panics.
    fn with_conditions<R>(
        &mut self,
        cx: &Context,
        operator: u32,
        waived: bool,
        act: impl FnOnce(&mut [Compiled], &View<'_>) -> R,
    ) -> Option<(Result<R, Error>, Asks)> {
        let mut conditions = self.conditions[operator as usize].take()?;
        let mut list = std::mem::take(&mut conditions.list);
        let view = View { cx, edges: &self.edges, of: &conditions, waived, asks: Asks::default() };
        // The operator may continue after a panic, and keeps its conditions then.
        let result = catch_unwind(AssertUnwindSafe(|| act(&mut list, &view)));
        let asks = view.asks;
        conditions.list = list;
        self.conditions[operator as usize] = Some(conditions);
        let panicked = |panic: Box<dyn Any + Send>| {
            Error::new(format!("one of its conditions panicked: {}", panic_text(&*panic)))
        };
        Some((result.map_err(panicked), asks))
    }
}

/// Checks all conditions together. After the end of all inputs, only conditions that end an operator count:
/// it should see the end.
fn check_all(
    list: &mut [Compiled],
    view: &View<'_>,
    ended: bool,
    unmet: &mut Option<u32>,
) -> Result<Readiness, Error> {
    let usual = |edge: &u32| {
        let state = &view.cx.edges[*edge as usize];
        state.closed || state.kept || view.edges[*edge as usize].probe.len(&view.cx.owner) > 0
    };
    let mut waits = !view.waived
        && view.of.inputs.iter().filter(|input| input.usual).any(|input| !input.edges.iter().all(usual));
    let mut until_ns = None;
    for (condition, place) in list.iter_mut().zip(0u32..) {
        let verdict = condition.check(view)?;
        if verdict != Readiness::Holds {
            unmet.get_or_insert(place);
        }
        match verdict {
            Readiness::Holds => {}
            Readiness::Never => return Ok(Readiness::Never),
            _ if ended => {}
            Readiness::Waits => waits = true,
            // All must hold: a check is useless before the last one can.
            Readiness::Until(time_ns) => until_ns = until_ns.max(Some(time_ns)),
        }
    }
    Ok(match (waits, until_ns) {
        (_, Some(time_ns)) => Readiness::Until(time_ns),
        (true, None) => Readiness::Waits,
        (false, None) => Readiness::Holds,
    })
}
