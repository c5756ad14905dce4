//! What one pass through a chain works on, and what comes of it.

use super::super::state::NodeState;
use super::poll::Poller;
use crate::Error;
use crate::base::slot::PartSlot;
use crate::operator::inline::Inline;
use crate::operator::{Operator, Step};

/// The operators inside of a chain, by their shortcuts. All of them are there while a pass runs.
pub(crate) type Inside<'w> = [Option<&'w mut dyn Inline>];

/// The parts of a worker that a pass works on, borrowed once for a batch of passes.
pub(crate) struct PassState<'w> {
    /// The source, if chunks come from it and none is queued at the first operator inside.
    pub source: Option<&'w mut Box<dyn Operator>>,
    /// The operators between the ends.
    pub inside: &'w mut Inside<'w>,
    /// The sink, if it belongs to the chain and all of its conditions hold. What changes that is handled before the next pass.
    pub sink: Option<&'w mut Box<dyn Operator>>,
    /// Numbers of the source, of the first operator inside, and of the sink.
    pub numbers: [u32; 3],
    /// One bit per operator inside, lowest first: it writes other chunks.
    pub rewriting: u64,
    /// State of the source.
    pub node: &'w mut NodeState,
    pub slot: &'w PartSlot,
    pub poller: Poller<'w>,
    /// Passes before the last one. They went from end to end.
    pub whole: &'w mut u64,
    /// Counts of a sink that takes turns with those of other workers.
    pub partial: Option<&'w mut PartialCounts>,
    pub direct: &'w mut DirectCounts,
}

/// Passes without a step of one end.
///
/// A sink that takes turns with those of other workers is not stepped while chunks of the same turn are queued before the chain: all
/// of them go through first, and then into its turn together.
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
    /// Nowhere: there was no chunk.
    Nowhere,
    /// Through this many operators inside. The next one failed.
    Failed(usize, Error),
    /// Through all operators inside, and no further.
    Through,
    /// To the sink's step, which ended in this way.
    ToSink(Result<Step, Error>),
}

/// How many passes may follow the first one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    /// Passes without polling what the worker is notified of.
    pub unpolled: u32,
    /// Passes in all, with polls between them. Only direct hand-over has these.
    pub polled: u32,
}

impl Batch {
    pub const NONE: Batch = Batch { unpolled: 0, polled: 0 };
}

/// Chunks that were handed over directly, without being queued.
#[derive(Debug, Default)]
pub(crate) struct DirectCounts {
    pub from_source: u64,
    pub to_sink: u64,
    /// Whether all of [`PassState::whole`], which are not counted here yet, and the current pass are direct at both ends.
    pub all: bool,
}

impl DirectCounts {
    /// Counts the passes of a batch that has ended. The last pass came from the source, and reached the sink, or not.
    pub fn count(&mut self, whole: u64, from_source: bool, to_sink: bool) {
        if std::mem::take(&mut self.all) {
            self.from_source += whole + u64::from(from_source);
            self.to_sink += whole + u64::from(to_sink);
        }
    }
}
