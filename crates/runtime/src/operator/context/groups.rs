//! Fields of the context that change together.

use super::PairCheck;
use crate::base::descriptors::Descriptors;
use crate::operator::message::Stamp;
use std::sync::Arc;

/// Stamps of the messages that the current step took, if it took several.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Joining {
    /// The stamp of the message that was taken last, before it was joined with others. Written for operators
    /// with several inputs.
    pub own: Stamp,
    /// Whether the stamp in hand came round a cycle. It then yields to the next stamp.
    pub fed_back: bool,
    /// Stamps of messages that this step took before the one in hand. Kept only if a path or a deadline needs
    /// them.
    pub earlier: Vec<Stamp>,
    /// What this step took from several inputs.
    pub pairs: PairCheck,
}

/// State of the replicas and migrating ends on this worker.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Replicas {
    /// Pending-turn mask: one bit for each migrating end that waits for its turn.
    pub pending_turns: u64,
    /// Number of operators with slow steps on this worker. Counted only if the worker has lanes.
    pub slow_operators: u32,
    /// Number of messages that the migrating end may take from its input in this turn.
    pub visible: u32,
    /// Whether no turn follows this one at the migrating end.
    pub is_last: bool,
}

/// Reasons why the operators of this worker wait.
#[derive(Default)]
pub(crate) struct WaitState {
    /// Edges that their operator does not wait for until its next step: see
    /// [`Input::keep`](crate::Input::keep).
    pub kept: Vec<u32>,
    /// Operator that still holds a part of a message of an input that has ended.
    pub holds_rest: Option<u32>,
    /// Edges to other workers that were found full. Their producers wait until there is room.
    pub full: Vec<u32>,
    /// Place of the store that was empty in the current step. Valid if the operator has
    /// [`flag::STARVED`](super::flag).
    pub starved: usize,
    /// Time of the alarm that [`Step::Until`](crate::Step::Until) asks for, on the run's clock.
    pub until_ns: u64,
    /// Whether the current step has said for which descriptor its operator waits.
    pub is_armed: bool,
    /// Where operators wait for descriptors, with the number of their part. `None` in contexts without a
    /// worker.
    pub descriptors: Option<(Arc<Descriptors>, u32)>,
}
