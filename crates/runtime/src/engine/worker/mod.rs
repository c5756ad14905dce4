//! Workers step operators. [`Worker::run`] is the hot loop; the other files here have what the loop calls
//! when it cannot simply follow a message to its consumer.

mod after_step;
pub(crate) mod chain;
mod conditions;
mod ending;
mod meter;
mod migrating_ends;
mod notes;
mod orders;
mod parking;
mod polling;
mod pooled;
mod recover;
mod slow_path;
mod snapshot;
mod starved_lanes;
mod state;
mod stopping;
mod tracker;
mod turns;
mod waiting;
mod yielding;

use chain::Chain;
pub(crate) use meter::Meter;
pub(crate) use migrating_ends::MigratingEnds;
pub(crate) use pooled::{PooledPart, WorkerPool};
pub(crate) use state::{Failure, History, NodeState, OperatorPause, Pause, begin_turn};
pub(crate) use stopping::Stopping;
pub(crate) use tracker::{Deadline, Path, PathStatistics, Tracker};
pub(crate) use turns::SourceTurns;
use turns::{STREAK, UNPOLLED_TURNS};
pub(crate) use waiting::{StarvedOperator, Waiting};
use yielding::PICKS;

use crate::Error;
use crate::base::slot::PartSlot;
use crate::base::timers::Timers;
use crate::engine::control::Control;
use crate::engine::flight::Flight;
use crate::engine::team::Seat;
use crate::operator::context::{Context, Hold, NONE, STARVED, flag};
use crate::operator::link::EdgeEnds;
use crate::operator::message::NO_DUE;
use crate::operator::when::Conditions;
use crate::operator::{Operator, Step};
use std::sync::Arc;

/// State of one worker that its operators do not see. Only the thread that steps the operators reads and
/// writes it.
pub(crate) struct Worker {
    pub operators: Box<[Box<dyn Operator>]>,
    /// By operator.
    pub nodes: Box<[NodeState]>,
    /// By operator: the chain that begins with this operator.
    pub chains: Box<[Option<Chain>]>,
    /// By operator: conditions beyond messages and room.
    pub conditions: Box<[Option<Box<Conditions>>]>,
    /// By operator.
    pub meters: Box<[Meter]>,
    pub edges: Box<[EdgeEnds]>,
    pub timers: Timers,
    pub turns: SourceTurns,
    pub waiting: Waiting,
    pub stop: Stopping,
    pub migrating: MigratingEnds,
    /// Source time and due time of the tick that lets the next step through. Set by the conditions, taken by
    /// that step.
    pub tick: Option<(u64, u64)>,
    pub seat: Seat,
    /// Slot in which the worker shows which operator is running.
    pub slot: Arc<PartSlot>,
    /// Pool whose threads share this part, if threads do.
    pub pool: Option<Arc<WorkerPool>>,
    pub control: Arc<Control>,
    pub tracker: Tracker,
    pub history: History,
    /// Whether a message in the graph can be too late.
    pub has_limits: bool,
    /// Flight recorder, if misses are explained.
    pub flight: Option<Box<Flight>>,
}

impl Worker {
    /// The hot loop: picks an operator, steps it, and follows its message to the consumer while the data is
    /// in the cache.
    ///
    /// Besides the step itself, a hop costs a count-down and two reads of
    /// [`Hot`](crate::operator::context::Hot) state. Everything except "one message in, one message out,
    /// next" takes the slow path: [`step_slow`](Self::step_slow) before the step,
    /// [`after_step`](Self::after_step) after it.
    pub fn run(&mut self, cx: &mut Context) -> Result<Pause, Failure> {
        self.turns.picks_left = PICKS;
        while let Some(mut operator) = self.pick(cx)? {
            loop {
                let hot = &mut cx.hot[operator as usize];
                hot.left -= 1;
                if hot.left == 0 {
                    if hot.flags & flag::CHAINED == 0 || !self.step_chain(cx, operator)? {
                        self.step_slow(cx, operator)?;
                    }
                    if self.turns.streak >= STREAK && cx.next < STARVED {
                        cx.ready.set(cx.next);
                        break;
                    }
                } else {
                    let outcome = self.step(cx, operator);
                    if !matches!(outcome, Ok(Step::Wait)) || cx.next == STARVED {
                        self.finish_step(cx, operator, outcome)?;
                    }
                }
                if cx.next >= STARVED {
                    let end = cx.hot[operator as usize].flags & flag::END != 0;
                    if end && (cx.stamp.due_ns != NO_DUE || !cx.joining.earlier.is_empty()) {
                        self.track(cx, operator);
                    }
                    break;
                }
                operator = cx.next;
                if cx.hot[operator as usize].unmet != 0 {
                    cx.ready.set(operator);
                    break;
                }
            }
        }
        self.slot.exit();
        Ok(self.waiting.pause)
    }

    #[inline(always)]
    fn step(&mut self, cx: &mut Context, operator: u32) -> Result<Step, Error> {
        cx.begin_step(operator, &self.slot);
        self.operators[operator as usize].step(cx)
    }

    /// Returns the next operator to step: the ready one furthest down the graph, otherwise the next source in
    /// turn, otherwise an operator whose time has come. `None` if there is none; [`Waiting::pause`] says why.
    #[inline]
    fn pick(&mut self, cx: &mut Context) -> Result<Option<u32>, Failure> {
        self.end_turn(cx);
        // The end of a timed step is the present time, once. It is not the time at which the next step
        // begins.
        let mut ended_ns = self.flight.as_mut().map_or(0, |flight| std::mem::take(&mut flight.last_end_ns));
        let mut checks_lanes = cx.replicas.slow_operators != 0;
        loop {
            if cx.replicas.pending_turns != 0
                && let Some(operator) = self.pick_migrating_end(cx)
            {
                return Ok(Some(operator));
            }
            if self.pool.is_some() && self.should_yield(cx) {
                self.waiting.pause = Pause::Yield;
                return Ok(None);
            }
            // Operators after one that feeds a starved lane wait.
            let last = if checks_lanes { self.starved_lane(cx) } else { NONE };
            if let Some(operator) = self.take_ready(cx, last) {
                if cx.hot[operator as usize].unmet == 0 {
                    return Ok(Some(operator));
                }
                self.hold(cx, operator, Hold::Ready)?;
                continue;
            }
            let polls = self.turns.unpolled == 0;
            if !polls {
                self.turns.unpolled -= 1;
            } else if self.has_news(cx) {
                self.poll_before_turn(cx, &mut ended_ns);
                if self.control.is_aborted() {
                    self.waiting.pause = Pause::Over;
                    return Ok(None);
                }
                if self.turns.streak < STREAK && cx.ready.has(last) {
                    continue;
                }
            }
            let Some(source) = cx.turn.next() else {
                if last != NONE {
                    // No operator has anything for the starved lane: the others are picked again.
                    checks_lanes = false;
                } else if !self.picks_again(cx, polls) {
                    return Ok(None);
                }
                continue;
            };
            if self.give_turn(cx, source, polls)? {
                return Ok(Some(source));
            }
        }
    }

    /// Ends the turn of the previous source, which keeps it only if its step returned `Again`.
    ///
    /// (To end the turn and to set it again at each step would make every step wait for the stores of the
    /// previous one.)
    #[inline(always)]
    fn end_turn(&mut self, cx: &mut Context) {
        if self.turns.on_turn != NONE {
            cx.turn.clear(self.turns.on_turn);
            self.turns.on_turn = NONE;
        }
    }

    /// Takes the ready operator furthest down the graph, up to `last`. None after a long streak: a source has
    /// its turn first.
    #[inline(always)]
    fn take_ready(&self, cx: &mut Context, last: u32) -> Option<u32> {
        if self.turns.streak < STREAK { cx.ready.take_highest(last) } else { None }
    }

    /// Polls what changes elsewhere, at `ended_ns` if the previous step was timed. Takes that time.
    #[inline(always)]
    fn poll_before_turn(&mut self, cx: &mut Context, ended_ns: &mut u64) {
        let now_ns = match std::mem::take(ended_ns) {
            0 => cx.now_ns(),
            ended_ns => ended_ns,
        };
        self.poll_in_passing(cx, now_ns);
    }

    /// No operator is ready and no source wants a turn. Returns whether to pick again: after a broken streak,
    /// after a skipped poll, or because something came.
    #[inline(always)]
    fn picks_again(&mut self, cx: &mut Context, has_polled: bool) -> bool {
        self.turns.unpolled = 0;
        std::mem::take(&mut self.turns.streak) >= STREAK || !has_polled || self.wait(cx)
    }

    /// Gives a source its turn, or holds it if its conditions do not hold. Returns whether it has the turn.
    #[inline(always)]
    fn give_turn(&mut self, cx: &mut Context, source: u32, has_polled: bool) -> Result<bool, Failure> {
        self.turns.streak = 0;
        if has_polled {
            self.turns.unpolled = if self.turns.long_steps == 0 { UNPOLLED_TURNS } else { 0 };
        }
        if cx.hot[source as usize].unmet == 0 {
            self.turns.on_turn = source;
            self.begin_turn(cx, source);
            return Ok(true);
        }
        cx.turn.clear(source);
        self.hold(cx, source, Hold::Turn)?;
        Ok(false)
    }

    /// Remembers an operator that has work but may not be stepped, until its conditions hold.
    #[cold]
    fn hold(&mut self, cx: &mut Context, operator: u32, how: Hold) -> Result<(), Failure> {
        if self.nodes[operator as usize].done {
            self.clear_inputs(cx, operator);
        } else if self.should_restart(operator) {
            self.restart(cx, operator)?;
        } else if cx.held[operator as usize] != Hold::Turn {
            cx.held[operator as usize] = how;
            self.note_hold(cx, operator);
        }
        Ok(())
    }
}
