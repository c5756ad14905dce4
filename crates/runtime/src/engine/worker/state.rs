//! What a worker knows of its operators and edges, and how its loop may end.

use crate::Error;
use crate::base::on_error::{OnError, Trouble};
use crate::engine::control::stuck::Stuck;
use crate::engine::limits::Bound;
use crate::operator::context::{Context, NONE};
use crate::operator::message::{Keys, SEQUENCE_MASK, Stamp};
use std::sync::Arc;

/// What the worker knows of one operator besides its [`Hot`](crate::operator::context::Hot) part.
#[derive(Debug, Default)]
pub(crate) struct NodeState {
    /// Its number in the plan.
    pub plan: usize,
    pub inputs: Vec<u32>,
    pub outputs: Vec<u32>,
    /// Waits for no input.
    pub source: bool,
    /// Waits for nothing but what it sends itself, round a cycle: it ends when the sources are told to.
    pub circular: bool,
    /// Place among the sources of the plan.
    pub source_number: u64,
    /// Messages sent so far, of a source.
    pub sequence: u64,
    /// Limits on what is under way, of a source.
    pub bounds: Vec<Arc<Bound>>,
    /// Inputs that are not ended, of those that together end it.
    pub open_inputs: u32,
    /// Outputs whose consumer is still there.
    pub open_outputs: u32,
    pub done: bool,
    /// The first operator of the run that it is in.
    pub chain: Option<u32>,
    /// There is one before it that is the same; what both do is told by that one.
    pub is_copy: bool,
    /// It is one end of a replicated stretch, and has turns with those of other workers: it says itself when it is done.
    pub has_turns: bool,
    pub on_error: OnError,
    pub trouble: Trouble,
    pub paused: Option<Paused>,
    /// The stamp to go on with: the last step was not finished with its message.
    pub kept: Option<(Stamp, Option<Arc<Keys>>)>,
}

impl NodeState {
    /// Puts the stamp in place that a source begins with.
    #[inline(always)]
    pub fn begin_turn(&self, cx: &mut Context) {
        begin_turn(cx, self.source_number, self.sequence);
    }
}

/// Puts the stamp in place that a source begins its next message with, given its place among those of the plan and how many it has sent.
#[inline(always)]
pub(crate) fn begin_turn(cx: &mut Context, source_number: u64, sequence: u64) {
    let origin = source_number << 48 | (sequence & SEQUENCE_MASK);
    cx.stamped_edge = NONE;
    cx.sent_away = false;
    // Only what changes: the stamp is copied in wide pieces, which would wait for narrow stores, and these for all that the message
    // before has had written.
    let (Stamp { time_ns, due_ns, .. }, stamp) = (Stamp::default(), &mut cx.stamp);
    if stamp.time_ns != time_ns || stamp.due_ns != due_ns {
        (stamp.time_ns, stamp.due_ns) = (time_ns, due_ns);
    }
    stamp.origin = origin;
    if cx.keys.is_some() {
        cx.keys = None;
    }
}

/// An operator that found too few chunks in a store, and how many it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Starved {
    pub operator: u32,
    pub store: usize,
    pub chunks: usize,
}

/// Why [`Worker::run`](super::Worker::run) came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// All is done.
    Over,
    /// There is nothing to do until somebody says so, or until this time on the run's clock.
    Rest(Option<u64>),
    /// It has more to do; others that share its thread are to have their turn.
    Yield,
}

/// An operator that is not stepped because somebody said so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paused {
    /// On the run's clock.
    pub since_ns: u64,
    /// The alarm that it had.
    pub alarm_ns: Option<u64>,
}

/// Why the loop ended before its time.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An operator returned an error.
    Operator(u32, Error),
    /// Nothing can be done for anyone; what its operators wait for, and whether that is more than the end.
    Stuck(Stuck),
}
