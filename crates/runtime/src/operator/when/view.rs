//! View of an operator for its conditions.

use super::conditions::Conditions;
use crate::base::options::Pace;
use crate::operator::context::Context;
use crate::operator::link::EdgeEnds;
use onbeat_os::poll::Interest;
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::BorrowedFd;

/// State of an operator that its conditions can read.
pub struct View<'w> {
    pub(crate) cx: &'w Context,
    pub(crate) edges: &'w [EdgeEnds],
    pub(crate) of: &'w Conditions,
    /// Whether input conditions count as holding: the activation continues, or all inputs have ended.
    pub(crate) waived: bool,
    /// Requests besides the verdict.
    pub(crate) asks: Asks,
}

/// Requests of conditions to the engine besides their verdict.
#[derive(Default)]
pub(crate) struct Asks {
    /// Source time and due time of the tick that allows the step.
    pub tick: Cell<Option<(u64, u64)>>,
    /// Store and number of its chunks that must be free before the next check.
    pub chunks: Cell<Option<(usize, usize)>>,
    pub notes: RefCell<Vec<String>>,
    /// Time at which a full path let the source go on, on the run's clock; 0 if it has never held it.
    pub released_ns: Cell<u64>,
}

impl View<'_> {
    /// Has the conditions checked again when the descriptor is ready.
    pub(crate) fn await_descriptor(&self, fd: BorrowedFd<'_>, what: Interest) -> io::Result<()> {
        if let Some((descriptors, part)) = &self.cx.waiting.descriptors {
            descriptors.arm(*part, self.cx.current, fd, what)?;
        }
        Ok(())
    }

    /// Returns the time in nanoseconds on the run's clock.
    pub fn now_ns(&self) -> u64 {
        self.cx.now_ns()
    }

    /// Returns the start of the run in nanoseconds on its clock.
    pub fn start_ns(&self) -> u64 {
        self.cx.start_ns()
    }

    /// Whether the run is being stopped.
    pub fn is_stopping(&self) -> bool {
        self.cx.is_stopping()
    }

    /// Whether the run's pace is [`Pace::Fast`].
    pub fn is_fast(&self) -> bool {
        self.cx.pace(Pace::Real) == Pace::Fast
    }

    /// Returns the number of steps of the operator so far.
    pub fn steps(&self) -> u64 {
        self.of.steps
    }

    /// Returns the number of messages queued at an input; 0 if no input has this name.
    pub fn messages(&self, input: &str) -> usize {
        self.of.input(input).map_or(0, |port| self.messages_at(port))
    }

    /// Whether an input has ended. Messages may still be queued there.
    pub fn is_closed(&self, input: &str) -> bool {
        self.of.input(input).is_some_and(|port| self.is_closed_at(port))
    }

    /// Whether the step should come however few messages there are: all inputs have ended, or the operator
    /// asked for the step.
    pub fn inputs_are_waived(&self) -> bool {
        self.waived
    }

    /// Adds a note to the record, like [`Context::note`].
    pub fn note(&self, text: impl Into<String>) {
        self.asks.notes.borrow_mut().push(text.into());
    }

    pub(crate) fn messages_at(&self, input: usize) -> usize {
        let edges = self.of.inputs.get(input).map_or(&[][..], |input| &input.edges);
        edges.iter().map(|&edge| self.edges[edge as usize].probe.len(&self.cx.owner)).sum()
    }

    /// Number of messages that have ever been taken from an input.
    pub(crate) fn taken_at(&self, input: usize) -> u64 {
        let edges = self.of.inputs.get(input).map_or(&[][..], |input| &input.edges);
        edges.iter().map(|&edge| self.edges[edge as usize].probe.taken(&self.cx.owner)).sum()
    }

    pub(crate) fn is_closed_at(&self, input: usize) -> bool {
        let edges = self.of.inputs.get(input).map_or(&[][..], |input| &input.edges);
        edges.iter().all(|&edge| self.cx.edges[edge as usize].closed)
    }
}
