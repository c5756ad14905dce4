//! The thread that steps operators. [`Worker::run`] is the hot loop: everything else in this folder is what it calls
//! when something else than "the next message" is the case.

mod after;
pub(crate) mod chain;
mod conditions;
mod dry;
mod idle;
mod meter;
mod noted;
mod obey;
mod pooled;
mod recover;
mod sharing;
mod state;
mod tracker;
mod upcoming;

use chain::Chain;
pub(crate) use idle::Listening;
pub(crate) use meter::Meter;
pub(crate) use pooled::{Pooled, WorkerPool};
use sharing::TURNS;
pub(crate) use state::{Failure, NodeState, Pause, Paused, Starved, begin_turn};
pub(crate) use tracker::{Deadline, Measured, Path, Tracker};

use crate::Error;
use crate::base::bounded_list::BoundedList;
use crate::base::slot::PartSlot;
use crate::base::timers::Timers;
use crate::engine::control::Control;
use crate::engine::flight::Flight;
use crate::engine::team::{Event, Seat};
use crate::operator::context::{Context, Hold, NONE, STARVED, flag};
use crate::operator::link::EdgeEnds;
use crate::operator::message::NO_DUE;
use crate::operator::when::Conditions;
use crate::operator::{Operator, Step};
use crate::plan::replicate::Upcoming;
use onbeat_trace::record::{ChangeRecord, FaultRecord};
use std::sync::Arc;

/// Timed steps after which a chain of steps is broken: a cycle never runs out of messages, and others are to have their
/// turn too.
const STREAK: u32 = 64;

/// Turns of sources with short steps between two looks for what is told from outside: the look costs as much as several such steps.
const BLIND: u32 = 16;

/// Up to here a step is short.
const BRISK_NS: u64 = 500;

/// From here on a step is so long that other workers run out of what they have in advance.
const SLOW_NS: u64 = 4_000;

/// Everything of one worker that its operators do not see.
pub(crate) struct Worker {
    pub operators: Box<[Box<dyn Operator>]>,
    pub nodes: Box<[NodeState]>,
    /// By operator: the chain that begins with it.
    pub chains: Box<[Option<Chain>]>,
    pub edges: Box<[EdgeEnds]>,
    pub meters: Box<[Meter]>,
    pub tracker: Tracker,
    pub timers: Timers,
    pub control: Arc<Control>,
    /// Where it shows what it is in.
    pub slot: Arc<PartSlot>,
    /// Time on the run's clock after which sources are ended.
    pub end_ns: Option<u64>,
    /// What was changed from outside, and how often.
    pub changes: BoundedList<ChangeRecord>,
    /// What failed and did not end the run, and how often.
    pub faults: BoundedList<FaultRecord>,
    /// Since when all of its sources are paused.
    pub halted_ns: Option<u64>,
    /// The source whose turn it is, until it asks for another one; [`NONE`] then.
    pub on_turn: u32,
    /// Turns of sources until it looks for what is told from outside: [`BLIND`] after each look, but 0 while there is an operator whose
    /// steps take longer than [`BRISK_NS`].
    pub blind: u32,
    /// How many such operators there are.
    pub long: u32,
    /// Whether sources have been told to end.
    pub stopping: bool,
    /// Ends of replicated stretches whose turn is looked for while their bit is set in [`Replicas::pending_turns`]: by bit, the operator.
    pub upcoming: Box<[(u32, Upcoming)]>,
    /// Edges from other workers of whose messages it is not told, because it looks itself, until it asks before it lies down.
    pub watched: Box<[u32]>,
    pub listening: Listening,
    /// It has asked.
    pub has_asked: bool,
    /// The operator that was picked last was such a one.
    pub asked: bool,
    /// Operators that end now; empty between two ends.
    pub ending: Vec<u32>,
    /// Operators that found too few chunks.
    pub starved: Vec<Starved>,
    /// By operator.
    pub conditions: Box<[Option<Box<Conditions>>]>,
    /// Source time and due time of the tick that has let the coming step through.
    pub tick: Option<(u64, u64)>,
    pub seat: Seat,
    /// The pool whose threads share this part.
    pub pool: Option<Arc<WorkerPool>>,
    /// What the items of the inbox stand for.
    pub events: Box<[Event]>,
    /// Those that were just heard; room for all of them.
    pub heard: Vec<u32>,
    /// Steps in a row that asked for another one and neither took nor sent anything, while the run is to stop.
    pub fruitless: u32,
    /// Timed steps since a source had its turn.
    pub streak: u32,
    /// Until then nothing else is looked for behind a timed step.
    pub look_ns: u64,
    /// Why `pick` found nothing.
    pub pause: Pause,
    /// Turns until it looks up.
    pub turns: u32,
    /// Its steps are long enough to be worth the way to another thread. Only where it roams.
    pub heavy: bool,
    /// Something in the graph may be too late.
    pub has_limits: bool,
    /// Where misses are to be explained.
    pub flight: Option<Box<Flight>>,
}

impl Worker {
    /// The hot loop: pick an operator, step it, follow its message to the consumer while the data is in the cache.
    ///
    /// Beside the step itself a hop costs a count-down and two looks at [`Hot`](crate::operator::context::Hot) state. Whatever is
    /// not "one message in, one message out, next" takes the slow way: [`step_slow`](Self::step_slow) before and
    /// [`after`](Self::after) behind the step.
    pub fn run(&mut self, cx: &mut Context) -> Result<Pause, Failure> {
        self.turns = TURNS;
        while let Some(mut operator) = self.pick(cx)? {
            loop {
                let hot = &mut cx.hot[operator as usize];
                hot.left -= 1;
                if hot.left == 0 {
                    if hot.flags & flag::CHAINED == 0 || !self.step_chain(cx, operator)? {
                        self.step_slow(cx, operator)?;
                    }
                    if self.streak >= STREAK && cx.next < STARVED {
                        cx.ready.set(cx.next);
                        break;
                    }
                } else {
                    let outcome = self.step(cx, operator);
                    if !matches!(outcome, Ok(Step::Wait)) || cx.next == STARVED {
                        self.go_on(cx, operator, outcome)?;
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
        Ok(self.pause)
    }

    #[inline(always)]
    fn step(&mut self, cx: &mut Context, operator: u32) -> Result<Step, Error> {
        cx.begin_step(operator, &self.slot);
        self.operators[operator as usize].step(cx)
    }

    /// The next operator to step: the one furthest down the graph that has work, else the next source in turn, else
    /// whatever time or the end brings. `None` when there is none, and `pause` says why.
    #[inline]
    fn pick(&mut self, cx: &mut Context) -> Result<Option<u32>, Failure> {
        // The source of before keeps its turn where its step returned `Again`. Taking it away and giving it back at each step would
        // make every step wait for the stores of the one before.
        if self.on_turn != NONE {
            cx.turn.clear(self.on_turn);
            self.on_turn = NONE;
        }
        // Where the step before was timed, that was just now; its end is not where the next one begins.
        let mut ended_ns = self.flight.as_mut().map_or(0, |flight| std::mem::take(&mut flight.last_end_ns));
        let mut asks_lanes = cx.replicas.slow_operators != 0;
        loop {
            if cx.replicas.pending_turns != 0
                && let Some(operator) = self.turn_came(cx)
            {
                return Ok(Some(operator));
            }
            if self.pool.is_some() && self.looks_up(cx) {
                self.pause = Pause::Yield;
                return Ok(None);
            }
            let most = if asks_lanes { self.runs_dry(cx) } else { NONE };
            let ready = if self.streak < STREAK { cx.ready.take_highest(most) } else { None };
            if let Some(operator) = ready {
                if cx.hot[operator as usize].unmet == 0 {
                    return Ok(Some(operator));
                }
                self.hold(cx, operator, Hold::Ready)?;
                continue;
            }
            let looked = self.blind == 0;
            if !looked {
                self.blind -= 1;
            } else if self.needs_care(cx) {
                let now_ns = match std::mem::take(&mut ended_ns) {
                    0 => cx.now_ns(),
                    ended_ns => ended_ns,
                };
                self.take_care_in_passing(cx, now_ns);
                if self.control.is_aborted() {
                    self.pause = Pause::Over;
                    return Ok(None);
                }
                if self.streak < STREAK && cx.ready.has(most) {
                    continue;
                }
            }
            let Some(source) = cx.turn.next() else {
                if most != NONE {
                    // Nobody has anything for that lane.
                    asks_lanes = false;
                    continue;
                }
                self.blind = 0;
                if std::mem::take(&mut self.streak) >= STREAK || !looked || self.wait(cx) {
                    continue;
                }
                return Ok(None);
            };
            self.streak = 0;
            if looked {
                self.blind = if self.long == 0 { BLIND } else { 0 };
            }
            if cx.hot[source as usize].unmet == 0 {
                self.on_turn = source;
                self.begin_turn(cx, source);
                return Ok(Some(source));
            }
            cx.turn.clear(source);
            self.hold(cx, source, Hold::Turn)?;
        }
    }

    /// An operator that has work but may not be stepped: it is remembered until its conditions hold.
    #[cold]
    fn hold(&mut self, cx: &mut Context, operator: u32, how: Hold) -> Result<(), Failure> {
        if self.nodes[operator as usize].done {
            self.clear_inputs(cx, operator);
        } else if self.is_to_restart(operator) {
            self.restart(cx, operator)?;
        } else if cx.held[operator as usize] != Hold::Turn {
            cx.held[operator as usize] = how;
            self.note_hold(cx, operator);
        }
        Ok(())
    }

    /// One step with what its flags ask for, and between two looks at the clock when it is time for that.
    #[inline(never)]
    fn step_slow(&mut self, cx: &mut Context, operator: u32) -> Result<(), Failure> {
        if cx.hot[operator as usize].flags & flag::WHEN != 0 && !self.conditions_hold(cx, operator)? {
            cx.hot[operator as usize].left = 1;
            return Ok(());
        }
        let hot = cx.hot[operator as usize];
        let timed = self.meters[operator as usize].count(hot.every);
        // The turn of a source has begun where it was picked, if it was its turn.
        if hot.flags & (flag::RESUME | flag::SOURCE) != 0 && self.on_turn != operator {
            self.resume(cx, operator);
        }
        if hot.flags & flag::MULTI != 0 && !cx.waiting.kept.is_empty() {
            self.wait_for_all(cx, operator);
        }
        if hot.flags & flag::WHEN != 0 {
            self.stamp_tick(cx);
        }
        let outcome = if timed { self.step_timed(cx, operator) } else { self.step(cx, operator) };
        let flags = cx.hot[operator as usize].flags;
        if flags & flag::WHEN != 0 {
            self.note_step(cx, operator, &outcome)?;
        }
        if !matches!(outcome, Ok(Step::Wait)) || flags & flag::SLOW != 0 {
            self.go_on(cx, operator, outcome)?;
        }
        let hot = &mut cx.hot[operator as usize];
        hot.every = if hot.flags & flag::SLOW == 0 { self.meters[operator as usize].left() } else { 1 };
        hot.left = hot.every;
        Ok(())
    }

    #[inline(always)]
    fn step_timed(&mut self, cx: &mut Context, operator: u32) -> Result<Step, Error> {
        let begin_ns = self.step_begins(cx);
        self.follow(cx, operator, begin_ns);
        let outcome = self.step(cx, operator);
        let end_ns = cx.now_ns();
        let is_exact = self.is_exact(cx, operator, operator, (begin_ns, end_ns));
        self.note_step_of(cx, operator, begin_ns..end_ns, is_exact);
        self.look_around(cx, end_ns);
        outcome
    }

    /// A step that is timed begins. A free-running source has no due time: a sample of its messages is followed, and each where one may
    /// be too late or too many.
    #[inline]
    fn follow(&mut self, cx: &mut Context, operator: u32, begin_ns: u64) {
        let flags = cx.hot[operator as usize].flags;
        if flags & flag::SOURCE != 0 && cx.stamp.due_ns == NO_DUE {
            let is_followed =
                self.has_limits || flags & flag::EXACT != 0 || self.meters[operator as usize].is_sample();
            cx.stamp.due_ns = if is_followed { begin_ns } else { NO_DUE };
        }
    }

    /// Finds out whether steps of an operator are long, after one of them.
    fn weigh(&mut self, cx: &mut Context, operator: u32, step_ns: u64) {
        let meter = &mut self.meters[operator as usize];
        // The first steps of all are long, in cold caches: that is forgotten as the mean falls.
        let is_long = meter.is_above(step_ns, BRISK_NS);
        if std::mem::replace(&mut meter.is_long, is_long) != is_long {
            self.long = if is_long { self.long + 1 } else { self.long - 1 };
            self.blind = 0;
        }
        if !cx.lanes.is_empty() {
            let is_slow = meter.is_above(step_ns, SLOW_NS);
            if std::mem::replace(&mut meter.is_slow, is_slow) != is_slow {
                cx.replicas.slow_operators =
                    if is_slow { cx.replicas.slow_operators + 1 } else { cx.replicas.slow_operators - 1 };
            }
        }
        if let Some(pool) = &self.pool {
            self.heavy = meter.mean_ns() >= pool.heavy_ns;
        }
    }

    /// Behind a step that was not "one message in, one message out".
    #[inline(always)]
    fn go_on(
        &mut self,
        cx: &mut Context,
        operator: u32,
        outcome: Result<Step, Error>,
    ) -> Result<(), Failure> {
        let asks = matches!(outcome, Ok(Step::Again));
        if !asks || cx.hot[operator as usize].flags & !flag::RECORDED != flag::SOURCE {
            return self.after(cx, operator, outcome);
        }
        // A plain source asks for another turn. It is the one on turn: nobody else comes to be stepped without a message.
        self.nodes[operator as usize].sequence += u64::from(cx.next < STARVED || cx.sent_away);
        self.on_turn = NONE;
        Ok(())
    }

    /// Has an operator stepped when nothing hinders it, message or not.
    fn let_step(&mut self, cx: &mut Context, operator: u32) {
        if !self.nodes[operator as usize].source {
            cx.ready.set(operator);
            return;
        }
        cx.turn.set(operator);
        if self.on_turn == operator {
            self.on_turn = NONE;
        }
    }

    /// The step has come: what the operator said it would not wait for is waited for again.
    fn wait_for_all(&mut self, cx: &mut Context, operator: u32) {
        for at in (0..cx.waiting.kept.len()).rev() {
            let edge = cx.waiting.kept[at];
            let ends = &self.edges[edge as usize];
            if ends.to == operator {
                cx.waiting.kept.swap_remove(at);
                let state = &mut cx.edges[edge as usize];
                state.kept = false;
                if ends.probe.len(&cx.owner) == 0 && !state.closed {
                    cx.unmeet(operator);
                }
            }
        }
    }

    /// Puts the stamp in place with which an operator goes on, or that a source begins with.
    fn resume(&mut self, cx: &mut Context, operator: u32) {
        let node = &mut self.nodes[operator as usize];
        if node.source {
            self.begin_turn(cx, operator);
            return;
        }
        cx.stamped_edge = NONE;
        if let Some((stamp, keys)) = node.kept.take() {
            cx.stamp = stamp;
            cx.keys = keys;
        }
    }

    #[inline(always)]
    fn begin_turn(&mut self, cx: &mut Context, source: u32) {
        self.nodes[source as usize].begin_turn(cx);
    }
}
