//! State and results of a pass through a chain.

use super::super::state::NodeState;
use super::poll::ChainPoller;
use crate::Error;
use crate::base::slot::PartSlot;
use crate::operator::inline::Inline;
use crate::operator::{Operator, Step};

/// Operators inside of a chain, by their shortcuts. All are `Some` while a pass runs.
pub(crate) type Inside<'w> = [Option<&'w mut dyn Inline>];

/// State of a worker that a pass works on, borrowed once for a batch of passes.
pub(crate) struct PassState<'w> {
    /// Source, if chunks come from it and none is queued at the first operator inside.
    pub source: Option<&'w mut Box<dyn Operator>>,
    /// Operators between the ends.
    pub inside: &'w mut Inside<'w>,
    /// Sink, if it belongs to the chain and all of its conditions hold. Changes of that are handled before
    /// the next pass.
    pub sink: Option<&'w mut Box<dyn Operator>>,
    /// Numbers of the source, of the first operator inside, and of the sink.
    pub numbers: [u32; 3],
    /// One bit per operator inside, lowest first: whether the operator writes other chunks.
    pub rewriting: u64,
    /// State of the source.
    pub node: &'w mut NodeState,
    pub slot: &'w PartSlot,
    pub poller: ChainPoller<'w>,
    /// Number of passes before the last one. They went from end to end.
    pub whole: &'w mut u64,
    /// Counts for a migrating sink.
    pub partial: Option<&'w mut PartialCounts>,
    pub direct: &'w mut DirectCounts,
}

/// Passes without a step of one end.
///
/// A migrating sink is not stepped while chunks of the same turn are queued before the chain: all of them go
/// through first, and then into its turn together.
#[derive(Debug, Default)]
pub(crate) struct PartialCounts {
    /// Passes without a step of the source, which sent several messages in one step.
    pub without_source: u64,
    /// Passes without a step of the sink; their messages are queued there.
    pub without_sink: u64,
}

/// How far a pass came.
pub(crate) enum PassOutcome {
    /// To the source's step, which ended in this way.
    FromSource(Result<Step, Error>),
    /// Nowhere, as there was no chunk.
    Nowhere,
    /// Through this many operators inside. The next one failed.
    Failed(usize, Error),
    /// Through all operators inside, and no further.
    Through,
    /// To the sink's step, which ended in this way.
    ToSink(Result<Step, Error>),
}

/// Number of passes that can follow the first one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassBatch {
    /// Passes without a poll.
    pub unpolled: u32,
    /// All passes, if there are polls between them. Only direct hand-over has these.
    pub polled: u32,
}

impl PassBatch {
    pub const NONE: PassBatch = PassBatch { unpolled: 0, polled: 0 };
}

/// Chunks that were handed over directly, without being queued.
#[derive(Debug, Default)]
pub(crate) struct DirectCounts {
    pub from_source: u64,
    pub to_sink: u64,
    /// Whether all of [`PassState::whole`], which are not counted here yet, and the current pass are direct
    /// at both ends.
    pub all: bool,
}

impl DirectCounts {
    /// Counts the passes of a batch that has ended, given whether the last pass came from the source, and
    /// reached the sink.
    pub fn count(&mut self, whole: u64, from_source: bool, to_sink: bool) {
        if std::mem::take(&mut self.all) {
            self.from_source += whole + u64::from(from_source);
            self.to_sink += whole + u64::from(to_sink);
        }
    }
}
