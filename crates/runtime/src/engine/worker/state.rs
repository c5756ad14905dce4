//! State of operators beyond their hot part, and results of the worker's loop.

use crate::Error;
use crate::base::bounded_list::BoundedList;
use crate::base::on_error::{OnError, Trouble};
use crate::engine::control::standstill::Standstill;
use crate::engine::limits::InFlightBound;
use crate::operator::context::{Context, NONE};
use crate::operator::message::{Keys, SEQUENCE_MASK, Stamp};
use onbeat_trace::record::{ChangeRecord, FaultRecord};
use std::sync::Arc;

/// State of one operator besides its [`Hot`](crate::operator::context::Hot) part.
#[derive(Debug, Default)]
pub(crate) struct NodeState {
    /// Number in the plan.
    pub plan: usize,
    pub inputs: Vec<u32>,
    pub outputs: Vec<u32>,
    /// Whether the operator waits for no input.
    pub source: bool,
    /// Whether the operator waits only for its own messages, round a cycle: it ends when the sources end.
    pub circular: bool,
    /// Place among the sources of the plan.
    pub source_number: u64,
    /// For a source: number of messages sent so far.
    pub sequence: u64,
    /// For a source: limits on messages in flight.
    pub bounds: Vec<Arc<InFlightBound>>,
    /// Number of inputs that have not ended, of those that together end the operator.
    pub open_inputs: u32,
    /// Number of outputs whose consumer is not done.
    pub open_outputs: u32,
    pub done: bool,
    /// First operator of the chain to which this operator belongs.
    pub chain: Option<u32>,
    /// Whether this is a further replica of an operator; the first replica reports for all.
    pub is_copy: bool,
    /// Whether the operator is a migrating end, which has turns with those of other workers. It says itself
    /// when it is done.
    pub has_turns: bool,
    pub on_error: OnError,
    pub trouble: Trouble,
    pub paused: Option<OperatorPause>,
    /// Whether a note says already that it takes messages that it needs others for.
    pub is_unpaired: bool,
    /// Whether the operator rests until a descriptor is ready.
    pub awaits_descriptor: bool,
    /// Stamp to continue with, if the last step was not finished with its message.
    pub kept: Option<(Stamp, Option<Arc<Keys>>)>,
}

impl NodeState {
    /// Sets the stamp with which a source begins.
    #[inline(always)]
    pub fn begin_turn(&self, cx: &mut Context) {
        begin_turn(cx, self.source_number, self.sequence);
    }
}

/// Sets the stamp with which a source begins its next message, from the source's number and the number of
/// messages that it has sent.
#[inline(always)]
pub(crate) fn begin_turn(cx: &mut Context, source_number: u64, sequence: u64) {
    let origin = source_number << 48 | (sequence & SEQUENCE_MASK);
    cx.stamped_edge = NONE;
    cx.sent_away = false;
    // Only fields that change are written. The stamp is copied in wide pieces: these would wait for narrow
    // stores, and the stores for everything that the previous message wrote.
    let (Stamp { time_ns, due_ns, .. }, stamp) = (Stamp::default(), &mut cx.stamp);
    if stamp.time_ns != time_ns || stamp.due_ns != due_ns {
        (stamp.time_ns, stamp.due_ns) = (time_ns, due_ns);
    }
    stamp.origin = origin;
    if cx.keys.is_some() {
        cx.keys = None;
    }
}

/// Reason why [`Worker::run`](super::Worker::run) returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// All operators are done.
    Over,
    /// There is nothing to do until a notification comes, or until this time on the run's clock.
    Rest(Option<u64>),
    /// There is more to do, but other parts that share the thread come first.
    Yield,
}

/// Pause of an operator, ordered from outside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperatorPause {
    /// Begin, on the run's clock.
    pub since_ns: u64,
    /// Alarm that was set before.
    pub alarm_ns: Option<u64>,
}

/// Reason why the loop ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An operator returned an error.
    Operator(u32, Error),
    /// No part of the run can continue: what the operators here wait for.
    Stuck(Standstill),
}

/// Lists for the record, each with the number of all its events.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Pauses, settings and ends ordered from outside.
    pub changes: BoundedList<ChangeRecord>,
    /// Failures of operators that did not end the run.
    pub faults: BoundedList<FaultRecord>,
}
