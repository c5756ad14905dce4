//! Conditions of operators, besides the usual ones: each input has a message, and each output has room.

mod built_in;
mod conditions;
mod handles;
mod readable;
mod view;

pub use handles::{Event, Gate, Waker};
pub use view::View;

pub(crate) use built_in::{Compiled, compile};
pub(crate) use conditions::{Conditions, InputEdges};
pub(crate) use view::Asks;

use crate::base::error::Error;
use crate::operator::ticker::Overrun;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A condition of an operator. If an operator has several conditions, it is stepped when all of them hold.
///
/// A condition on inputs replaces the usual one for these inputs: at least one message. It cannot ask for
/// more messages than the edges into the port hold. An ended input no longer counts: the remaining messages
/// are processed, however few they are, and the operator is stepped once more to see the end.
///
/// ```
/// use onbeat_runtime::{Context, Error, Graph, Input, Operator, Options, Ports, Step, When};
///
/// /// Takes all queued messages at each step.
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
///         if count == 0 && self.input.is_ended(cx) {
///             return Ok(Step::Done);
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
/// assert_eq!(record.operators[1].steps, 4); // 4, 4, the last 2, and the end
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
    /// A condition that makes no sense. The text is the plan's error.
    Misused(&'static str),
}

/// Rule that combines several inputs.
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
    /// At least `least` messages are queued at an input. `""` stands for the only input.
    pub fn messages(input: &str, least: usize) -> Self {
        When(Requirement::Messages { port: input.to_string(), least })
    }

    /// An output has room for at least `least` messages, on all edges that wait when full. The usual value is
    /// 1. With 0, the operator is also stepped when the output is full, and should check
    ///    [`Output::room`](crate::Output::room). `""` stands for the only output.
    pub fn room(output: &str, least: usize) -> Self {
        When(Requirement::Room { port: output.to_string(), least })
    }

    /// One of these inputs has a message. An empty list stands for all inputs.
    pub fn any<'n>(inputs: impl IntoIterator<Item = &'n str>) -> Self {
        Self::inputs(inputs, How::Any, 1)
    }

    /// Each of these inputs has a message. An empty list stands for all inputs.
    pub fn all<'n>(inputs: impl IntoIterator<Item = &'n str>) -> Self {
        Self::inputs(inputs, How::All, 1)
    }

    /// These inputs have at least `least` queued messages in total. An empty list stands for all inputs.
    pub fn sum<'n>(inputs: impl IntoIterator<Item = &'n str>, least: usize) -> Self {
        Self::inputs(inputs, How::Sum, least)
    }

    fn inputs<'n>(inputs: impl IntoIterator<Item = &'n str>, how: How, least: usize) -> Self {
        let ports = inputs.into_iter().map(str::to_string).collect();
        When(Requirement::Inputs { ports, how, least, timeout_ns: None })
    }

    /// For [`any`](When::any) and [`all`](When::all): sets the number of messages that an input needs to
    /// count. For other conditions it is an error of the plan.
    pub fn least(mut self, messages: usize) -> Self {
        match &mut self.0 {
            Requirement::Inputs { least, .. } | Requirement::Messages { least, .. } => *least = messages,
            other => *other = Requirement::Misused("`least` goes with `any`, `all`, `sum` and `messages`"),
        }
        self
    }

    /// For [`any`](When::any), [`all`](When::all) and [`sum`](When::sum): sets the time in nanoseconds after
    /// the last step at which the next step comes anyway, even without messages. For other conditions it is
    /// an error of the plan.
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

    /// `size` messages are queued at an input, or the first of fewer has waited for `delay_ns` nanoseconds.
    /// `""` stands for the only input.
    pub fn batch(input: &str, size: usize, delay_ns: u64) -> Self {
        When(Requirement::Batch { port: input.to_string(), size, delay_ns })
    }

    /// The operator has made fewer than `steps` steps. After that many it is done.
    pub fn count(steps: u64) -> Self {
        When(Requirement::Count(steps))
    }

    /// The gate is open. A run that is being stopped opens all gates, so that messages in flight get through.
    pub fn gate(gate: &Gate) -> Self {
        When(Requirement::Gate(gate.clone()))
    }

    /// The event was rung since the last step. If nobody can ring the event any more, the operator is done.
    pub fn event(event: &Event) -> Self {
        When(Requirement::Event(event.inside()))
    }

    /// A read from this file would not block: data has come, or the end. Meant for sockets, pipes and
    /// eventfds; regular files are always readable. The worker waits for it as for messages. An operator can
    /// also wait within its steps: [`Context::readable`](crate::Context::readable).
    pub fn readable(file: impl Into<OwnedFd>) -> Self {
        When(Requirement::Readable(Arc::new(file.into())))
    }

    /// The next tick of a period is due; see [`Ticker`](crate::Ticker). Messages of a source are due at their
    /// tick.
    pub fn period_ns(period_ns: u64, overrun: Overrun) -> Self {
        When(Requirement::Period { period_ns, overrun })
    }

    /// Returns the period in nanoseconds of a [`period_ns`](Self::period_ns) condition.
    pub(crate) fn tick_ns(&self) -> Option<u64> {
        match self.0 {
            Requirement::Period { period_ns, .. } => Some(period_ns),
            _ => None,
        }
    }

    /// At least `chunks` chunks are free for each output with samples.
    pub fn chunk_room(chunks: usize) -> Self {
        When(Requirement::ChunkRoom(chunks))
    }

    /// At least one of these conditions holds. [`room`](When::room) cannot be among them: an operator always
    /// waits for the room of its outputs.
    pub fn any_of(conditions: impl IntoIterator<Item = When>) -> Self {
        When(Requirement::AnyOf(conditions.into_iter().collect()))
    }

    /// A user-defined condition.
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

    pub(crate) fn boxed(condition: Box<dyn Condition>) -> Self {
        When(Requirement::Own(OwnCondition(condition)))
    }
}

/// Answer of a [`Condition`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// The condition holds.
    Holds,
    /// The condition does not hold. It is checked again when a message comes, an input ends, an output gets
    /// room, an alarm rings or its [`Waker`] is called.
    Waits,
    /// The condition does not hold. It is checked again at this time in nanoseconds on the run's clock, or
    /// earlier as for `Waits`.
    Until(u64),
    /// The condition never holds again: the operator is done.
    Never,
}

/// A user-defined condition of an operator. The worker calls it, so it must be quick and must not block.
///
/// ```
/// use onbeat_runtime::{Condition, Error, Graph, Options, Readiness, View, When};
///
/// /// Allows step `n` from `n` µs after the start of the run on.
/// struct EveryOther(u64);
/// impl Condition for EveryOther {
///     fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error> {
///         let due_ns = view.start_ns() + 1000 * self.0;
///         Ok(if view.now_ns() < due_ns { Readiness::Until(due_ns) } else { Readiness::Holds })
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
    /// Checks whether the condition holds now.
    ///
    /// # Errors
    /// An error counts as an error of the operator's step.
    fn check(&mut self, view: &View<'_>) -> Result<Readiness, Error>;

    /// Called after each step of the operator. The default does nothing.
    fn stepped(&mut self, view: &View<'_>) {
        let _ = view;
    }

    /// Returns the noun for "`x` waits for …" in messages.
    fn describe(&self) -> String;

    /// Called before the first step with a waker, through which any thread can have the condition checked
    /// again. The default does nothing.
    fn attach(&mut self, waker: &Waker) {
        let _ = waker;
    }

    /// Whether something outside of the graph can make the condition hold, through its [`Waker`]. While an
    /// operator waits for such a condition, an idle run is not a deadlock. The default is `false`.
    fn is_outside(&self) -> bool {
        false
    }
}
