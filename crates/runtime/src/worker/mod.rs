//! The thread that steps operators. [`Worker::run`] is the hot loop: everything else in this folder is what it calls
//! when something else than "the next message" is the case.

mod after;
mod idle;
mod meter;
mod tracker;

pub(crate) use meter::Meter;
pub(crate) use tracker::{Deadline, Path, Tracker};

use crate::Error;
use crate::context::{Context, Held, NONE, flag};
use crate::link::Probe;
use crate::message::{Keys, Stamp};
use crate::operator::{Operator, Step};
use crate::run::Control;
use crate::timers::Timers;
use onbeat_os::Parker;
use std::sync::Arc;

/// Everything of one worker that its operators do not see.
pub(crate) struct Worker {
    pub operators: Box<[Box<dyn Operator>]>,
    pub nodes: Box<[NodeState]>,
    pub edges: Box<[EdgeEnds]>,
    pub meters: Box<[Meter]>,
    pub tracker: Tracker,
    pub timers: Timers,
    pub control: Arc<Control>,
    /// Time on the run's clock after which sources are ended.
    pub end_ns: Option<u64>,
    /// The source whose turn is next.
    pub cursor: u32,
    /// Whether sources have been told to end.
    pub stopping: bool,
    /// Operators that found a chunk store empty, and which.
    pub starved: Vec<(u32, usize)>,
    pub parker: Parker,
    pub idle_ns: u64,
}

/// What the worker knows of one operator besides its [`Hot`](crate::context::Hot) part.
#[derive(Debug, Default)]
pub(crate) struct NodeState {
    pub inputs: Vec<u32>,
    pub outputs: Vec<u32>,
    /// Waits for no input.
    pub source: bool,
    /// Place among the sources.
    pub source_number: u64,
    /// Messages sent so far, of a source.
    pub sequence: u64,
    /// Inputs that it waits for and that are not ended.
    pub open_inputs: u32,
    /// Outputs whose consumer is still there.
    pub open_outputs: u32,
    pub done: bool,
    /// The stamp to go on with: the last step was not finished with its message.
    pub kept: Option<(Stamp, Option<Arc<Keys>>)>,
}

/// Who is at the ends of an edge.
pub(crate) struct EdgeEnds {
    pub from: u32,
    pub to: u32,
    pub probe: Arc<dyn Probe>,
    pub capacity: usize,
    pub waits: bool,
    pub counted: bool,
    pub required: bool,
}

/// Why the loop ended before its time.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An operator returned an error.
    Operator(u32, Error),
    /// Nothing can be done, and messages are left.
    Deadlock(Vec<String>),
}

impl Worker {
    /// The hot loop: pick an operator, step it, follow its message to the consumer while the data is in the cache.
    ///
    /// A step costs a count-down, a call, and two looks at one line of [`Hot`](crate::context::Hot) state.
    pub fn run(&mut self, cx: &mut Context) -> Result<(), Failure> {
        while let Some(mut operator) = self.pick(cx)? {
            loop {
                let hot = &mut cx.hot[operator as usize];
                hot.left -= 1;
                if hot.left == 0 {
                    self.step_timed(cx, operator)?;
                } else {
                    cx.next = NONE;
                    cx.popped = 0;
                    cx.current = operator;
                    let outcome = self.operators[operator as usize].step(cx);
                    if !matches!(outcome, Ok(Step::Wait)) || cx.hot[operator as usize].flags != 0 {
                        self.after(cx, operator, outcome)?;
                    }
                }
                let next = cx.next;
                if next == NONE {
                    break;
                }
                let hot = &cx.hot[next as usize];
                if hot.unmet != 0 || hot.flags & flag::RESUME != 0 {
                    cx.ready.set(next);
                    break;
                }
                operator = next;
            }
        }
        Ok(())
    }

    /// The next operator to step, and its stamp put in place: the one furthest down the graph that has work, else the
    /// next source in turn, else whatever time or the end brings. `None` when all is done.
    #[inline]
    fn pick(&mut self, cx: &mut Context) -> Result<Option<u32>, Failure> {
        loop {
            if let Some(operator) = cx.ready.take_highest() {
                let hot = &cx.hot[operator as usize];
                if hot.unmet != 0 {
                    self.hold(cx, operator, Held::Ready);
                    continue;
                }
                if hot.flags & flag::RESUME != 0 || self.nodes[operator as usize].source {
                    self.resume(cx, operator);
                }
                return Ok(Some(operator));
            }
            if self.needs_care(cx) {
                self.take_care(cx);
            }
            let Some(source) = cx.turn.next_from(self.cursor) else {
                if self.wait(cx)? {
                    continue;
                }
                return Ok(None);
            };
            self.cursor = source + 1;
            if cx.hot[source as usize].unmet != 0 {
                cx.turn.clear(source);
                self.hold(cx, source, Held::Turn);
                continue;
            }
            self.resume(cx, source);
            return Ok(Some(source));
        }
    }

    /// Puts the stamp in place with which an operator goes on, or that a source begins with.
    fn resume(&mut self, cx: &mut Context, operator: u32) {
        let node = &mut self.nodes[operator as usize];
        cx.carried = NONE;
        if node.source {
            let origin = node.source_number << 48 | (node.sequence & crate::message::SEQUENCE_MASK);
            cx.stamp = Stamp { time_ns: 0, due_ns: 0, origin };
            cx.keys = None;
        } else if let Some((stamp, keys)) = node.kept.take() {
            cx.stamp = stamp;
            cx.keys = keys;
        }
    }

    /// An operator that has work but may not be stepped: it is remembered until its conditions hold.
    #[cold]
    fn hold(&mut self, cx: &mut Context, operator: u32, how: Held) {
        if self.nodes[operator as usize].done {
            self.clear_inputs(cx, operator);
        } else if cx.held[operator as usize] != Held::Turn {
            cx.held[operator as usize] = how;
        }
    }

    /// One step between two looks at the clock.
    #[inline(never)]
    fn step_timed(&mut self, cx: &mut Context, operator: u32) -> Result<(), Failure> {
        let begin_ns = cx.now_ns();
        if self.nodes[operator as usize].source && cx.stamp.due_ns == 0 {
            // A free-running source has no due time; this one of its messages is followed.
            cx.carried = NONE;
            cx.stamp.due_ns = begin_ns;
        }
        cx.next = NONE;
        cx.popped = 0;
        cx.current = operator;
        let outcome = self.operators[operator as usize].step(cx);
        let end_ns = cx.now_ns();
        let exact = cx.hot[operator as usize].flags & flag::EXACT != 0;
        let every = self.meters[operator as usize].timed(end_ns.saturating_sub(begin_ns), exact);
        let hot = &mut cx.hot[operator as usize];
        self.meters[operator as usize].count(hot.every);
        (hot.every, hot.left) = (every, every);
        self.control.publish(end_ns, cx.stamp.time_ns);
        self.check_stop(cx, end_ns);
        self.fire_timers(cx, end_ns);
        if !matches!(outcome, Ok(Step::Wait)) || cx.hot[operator as usize].flags != 0 {
            self.after(cx, operator, outcome)?;
        }
        Ok(())
    }
}
