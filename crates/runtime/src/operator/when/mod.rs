//! What must hold before an operator is stepped, beyond "every input has a message and every output has
//! room".

mod built_in;
mod conditions;
mod handles;
mod readable;

pub use handles::{Event, Gate, Waker};

pub(crate) use built_in::{Compiled, compile};
pub(crate) use conditions::{Conditions, InputEdges};
pub(crate) use readable::{FileWatch, FileWatcher};

use crate::base::error::Error;
use crate::base::options::Pace;
use crate::operator::context::Context;
use crate::operator::link::EdgeEnds;
use crate::operator::ticker::Overrun;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A condition of an operator. Several hold together: the operator is stepped when all of them do.
///
/// A condition about inputs takes the place of the usual "one message at least" for those inputs. An input
/// that has ended keeps nobody waiting: the rest is worked off however little it is. How many messages an
/// operator waits for has nothing to do with how many an edge holds, but for this: it cannot wait for more
/// than the edges into a port hold.
///
/// ```
/// use onbeat_runtime::{Context, Error, Graph, Input, Operator, Options, Ports, Step, When};
///
/// /// Adds up what there is.
/// #[derive(Default)]
/// struct Batches { input: Input<u64> }
/// impl Operator for Batches {
///     fn ports(&mut self, p: &mut Ports) {
///         p.input("in", &mut self.input);
///     }
///     fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
///         let mut count = 0;
///         while self.input.pop(cx).is_some() {
///             count += 1;
///         }
///         assert!(count == 4 || count == 2);
///         Ok(Step::Wait)
///     }
/// }
///
/// let mut graph = Graph::new("batches");
/// let mut n = 0u64;
/// let numbers = graph.source("numbers", move || { n += 1; (n <= 10).then_some(n) });
/// let batches = graph.add("batches", Batches::default());
/// graph.connect(numbers, |s| &s.out, batches, |b| &b.input);
/// graph.when(batches, When::messages("in", 4));
/// let record = graph.run(&Options::default())?;
/// assert_eq!(record.operators[1].steps, 3); // 4, 4, and the last 2
/// # Ok::<(), onbeat_runtime::RunError>(())
/// ```
#[derive(Debug)]
pub struct When(pub(crate) Requirement);

#[derive(Debug)]
pub(crate) enum Requirement {
    Messages {
        port: String,
        least: usize,
    },
    Room {
        port: String,
        least: usize,
    },
    Inputs {
        ports: Vec<String>,
        how: How,
        least: usize,
        timeout_ns: Option<u64>,
    },
    Batch {
        port: String,
        size: usize,
        delay_ns: u64,
    },
    Count(u64),
    Gate(Gate),
    Event(Event),
    Readable(Arc<OwnedFd>),
    Period {
        period_ns: u64,
        overrun: Overrun,
    },
    ChunkRoom(usize),
    AnyOf(Vec<When>),
    Own(OwnCondition),
    /// Made in a way that means nothing; what the plan says of it.
    Misused(&'static str),
}

/// How several inputs count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Any,
    All,
    Sum,
}

pub(crate) struct OwnCondition(pub Box<dyn Condition>);

impl fmt::Debug for OwnCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.describe())
    }
}

impl When {
    /// So many messages lie at an input. `""` is the only input.
    pub fn messages(input: &str, least: usize) -> Self {
        When(Requirement::Messages { port: input.to_string(), least })
    }

    /// An output has room for so many messages, on all edges that wait when they are full; 1 is usual. With 0
    /// the operator is stepped also when it is full, and asks [`Output::room`](crate::Output::room) itself.
    /// `""` is the only output.
    pub fn room(output: &str, least: usize) -> Self {
        When(Requirement::Room { port: output.to_string(), least })
    }

    /// One of these inputs has a message; all inputs where none is named.
    pub fn any<'n>(inputs: impl IntoIterator<Item = &'n str>) -> Self {
        Self::inputs(inputs, How::Any, 1)
    }

    /// Each of these inputs has a message; all inputs where none is named.
    pub fn all<'n>(inputs: impl IntoIterator<Item = &'n str>) -> Self {
        Self::inputs(inputs, How::All, 1)
    }

    /// So many messages lie at these inputs together; at all inputs where none is named.
    pub fn sum<'n>(inputs: impl IntoIterator<Item = &'n str>, least: usize) -> Self {
        Self::inputs(inputs, How::Sum, least)
    }

    fn inputs<'n>(inputs: impl IntoIterator<Item = &'n str>, how: How, least: usize) -> Self {
        let ports = inputs.into_iter().map(str::to_string).collect();
        When(Requirement::Inputs { ports, how, least, timeout_ns: None })
    }

    /// For [`any`](When::any) and [`all`](When::all): each of them needs so many messages to count. For
    /// others it is an error of the plan.
    pub fn least(mut self, messages: usize) -> Self {
        match &mut self.0 {
            Requirement::Inputs { least, .. } | Requirement::Messages { least, .. } => *least = messages,
            other => *other = Requirement::Misused("`least` goes with `any`, `all`, `sum` and `messages`"),
        }
        self
    }

    /// For [`any`](When::any), [`all`](When::all) and [`sum`](When::sum): when this much time has passed
    /// since the last step, the next one comes anyway, with whatever messages there are, and be it none. For
    /// others it is an error of the plan.
    pub fn timeout_ns(mut self, time_ns: u64) -> Self {
        match &mut self.0 {
            Requirement::Inputs { timeout_ns, .. } => *timeout_ns = Some(time_ns),
            other => {
                *other = Requirement::Misused(
                    "`timeout_ns` goes with `any`, `all` and `sum`; for one input, write `When::all([\"in\"]).least(4)`",
                );
            }
        }
        self
    }

    /// `size` messages lie at an input, or the first of fewer has waited for `delay_ns` nanoseconds. `""` is
    /// the only input.
    pub fn batch(input: &str, size: usize, delay_ns: u64) -> Self {
        When(Requirement::Batch { port: input.to_string(), size, delay_ns })
    }

    /// The operator is stepped so often, and is done then.
    pub fn count(steps: u64) -> Self {
        When(Requirement::Count(steps))
    }

    /// The gate is open. A run that is stopped opens all gates, so that what is under way gets through.
    pub fn gate(gate: &Gate) -> Self {
        When(Requirement::Gate(gate.clone()))
    }

    /// The event was rung since the last step. An operator that waits for an event that nobody can ring any
    /// more is done.
    pub fn event(event: &Event) -> Self {
        When(Requirement::Event(event.inside()))
    }

    /// A read from this file would not wait: it has data, or its end has come. A socket, a pipe, an eventfd;
    /// regular files always are readable. A thread of its own, `onbeat-events`, waits for all such files of a
    /// run.
    pub fn readable(file: impl Into<OwnedFd>) -> Self {
        When(Requirement::Readable(Arc::new(file.into())))
    }

    /// The next tick of a period is due; see [`Ticker`](crate::Ticker). Messages of a source are due at their
    /// tick.
    pub fn period_ns(period_ns: u64, overrun: Overrun) -> Self {
        When(Requirement::Period { period_ns, overrun })
    }

    /// Its period in nanoseconds, if it is one.
    pub(crate) fn tick_ns(&self) -> Option<u64> {
        match self.0 {
            Requirement::Period { period_ns, .. } => Some(period_ns),
            _ => None,
        }
    }

    /// So many chunks are free for each output with samples.
    pub fn chunk_room(chunks: usize) -> Self {
        When(Requirement::ChunkRoom(chunks))
    }

    /// One of these holds. ([`room`](When::room) cannot be among them: an output without room always waits.)
    pub fn any_of(conditions: impl IntoIterator<Item = When>) -> Self {
        When(Requirement::AnyOf(conditions.into_iter().collect()))
    }

    /// A condition of your own.
    pub fn own(condition: impl Condition) -> Self {
        When(Requirement::Own(OwnCondition(Box::new(condition))))
    }

    pub(crate) fn is_outside(&self) -> bool {
        match &self.0 {
            Requirement::Gate(_) | Requirement::Event(_) | Requirement::Readable(_) => true,
            Requirement::AnyOf(list) => list.iter().any(When::is_outside),
            Requirement::Own(own) => own.0.is_outside(),
            _ => false,
        }
    }

    /// Whether it needs a [`FileWatcher`].
    pub(crate) fn waits_for_files(&self) -> bool {
        match &self.0 {
            Requirement::Readable(_) => true,
            Requirement::AnyOf(list) => list.iter().any(When::waits_for_files),
            _ => false,
        }
    }

    pub(crate) fn boxed(condition: Box<dyn Condition>) -> Self {
        When(Requirement::Own(OwnCondition(condition)))
    }
}

/// What a [`Condition`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not. It is asked again when a message comes, an input ends, an output gets room, an alarm
    /// rings or its [`Waker`] is called.
    Waits,
    /// It does not, and is asked again at this time on the run's clock, if not before.
    Until(u64),
    /// It never will again: the operator is done.
    Never,
}

/// A condition of one's own: what must hold before an operator is stepped. It is asked on the worker, so it
/// is quick and does not wait.
///
/// ```
/// use onbeat_runtime::{Condition, Error, Graph, Options, Verdict, View, When};
///
/// /// No more than one step per message of source time: lets every other step pass.
/// struct EveryOther(u64);
/// impl Condition for EveryOther {
///     fn check(&mut self, view: &View<'_>) -> Result<Verdict, Error> {
///         let due_ns = view.start_ns() + 1000 * self.0;
///         Ok(if view.now_ns() < due_ns { Verdict::Until(due_ns) } else { Verdict::Holds })
///     }
///     fn stepped(&mut self, _: &View<'_>) {
///         self.0 += 1;
///     }
///     fn describe(&self) -> String {
///         format!("microsecond {}", self.0)
///     }
/// }
///
/// let mut graph = Graph::new("own");
/// let mut n = 0;
/// let numbers = graph.source("numbers", move || { n += 1; (n <= 3).then_some(n) });
/// let end = graph.sink("end", |_: u64| ());
/// graph.connect(numbers, |s| &s.out, end, |e| &e.input);
/// graph.when(numbers, When::own(EveryOther(0)));
/// assert_eq!(graph.run(&Options::default())?.edges[0].received, 3);
/// # Ok::<(), onbeat_runtime::RunError>(())
/// ```
pub trait Condition: Send + 'static {
    /// Whether it holds now.
    ///
    /// # Errors
    /// The run fails as if the operator had.
    fn check(&mut self, view: &View<'_>) -> Result<Verdict, Error>;

    /// The operator was stepped.
    fn stepped(&mut self, view: &View<'_>) {
        let _ = view;
    }

    /// What the operator waits for, as in "x waits for …".
    fn describe(&self) -> String;

    /// Before the first step: how to have it asked again from elsewhere.
    fn attach(&mut self, waker: &Waker) {
        let _ = waker;
    }

    /// Whether somebody outside of the graph may make it hold, through its [`Waker`]. While an operator waits
    /// for such a condition, nothing to do is no dead-lock.
    fn is_outside(&self) -> bool {
        false
    }
}

/// What a condition can see of its operator.
pub struct View<'w> {
    pub(crate) cx: &'w Context,
    pub(crate) edges: &'w [EdgeEnds],
    pub(crate) of: &'w Conditions,
    /// Input conditions count as holding: the activation goes on, or all inputs have ended.
    pub(crate) waived: bool,
    /// What is asked for by the answer.
    pub(crate) asks: Asks,
}

/// What conditions ask of the engine beside their verdict.
#[derive(Default)]
pub(crate) struct Asks {
    /// Source time and due time of the tick that lets the step through.
    pub tick: Cell<Option<(u64, u64)>>,
    /// To be asked again when so many chunks of a store are free.
    pub chunks: Cell<Option<(usize, usize)>>,
    pub notes: RefCell<Vec<String>>,
}

impl View<'_> {
    /// Now, in nanoseconds on the run's clock.
    pub fn now_ns(&self) -> u64 {
        self.cx.now_ns()
    }

    /// When the run began, on its clock.
    pub fn start_ns(&self) -> u64 {
        self.cx.start_ns()
    }

    /// Whether the run is coming to its end.
    pub fn is_stopping(&self) -> bool {
        self.cx.is_stopping()
    }

    /// Whether sources go as fast as they can.
    pub fn is_fast(&self) -> bool {
        self.cx.pace(Pace::Real) == Pace::Fast
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.of.steps
    }

    /// Messages that lie at an input; 0 where there is none of this name.
    pub fn messages(&self, input: &str) -> usize {
        self.of.input(input).map_or(0, |port| self.messages_at(port))
    }

    /// Whether an input has ended: nothing more will come, though there may be messages left.
    pub fn is_closed(&self, input: &str) -> bool {
        self.of.input(input).is_some_and(|port| self.is_closed_at(port))
    }

    /// Whether the step is to come however few messages there are: all inputs have ended, or the operator
    /// asked for it.
    pub fn inputs_are_waived(&self) -> bool {
        self.waived
    }

    /// Says something in the record, as [`Context::note`] does.
    pub fn note(&self, text: impl Into<String>) {
        self.asks.notes.borrow_mut().push(text.into());
    }

    pub(crate) fn messages_at(&self, input: usize) -> usize {
        let edges = self.of.inputs.get(input).map_or(&[][..], |input| &input.edges);
        edges.iter().map(|&edge| self.edges[edge as usize].probe.len(&self.cx.owner)).sum()
    }

    pub(crate) fn is_closed_at(&self, input: usize) -> bool {
        let edges = self.of.inputs.get(input).map_or(&[][..], |input| &input.edges);
        edges.iter().all(|&edge| self.cx.edges[edge as usize].closed)
    }
}
