//! State of each operator and edge on its worker, besides the queues.

use crate::operator::message::Keys;
use std::collections::VecDeque;
use std::sync::Arc;

/// Added to the unmet conditions of an operator that is done: it is never ready again.
pub(crate) const DONE: u32 = 1 << 31;

/// Flags of an operator: work around its next step, beyond the step itself.
pub(crate) mod flag {
    /// A closed input may have run empty.
    pub const CLOSING: u32 = 1;
    /// A path with or without a limit ends here, or the operator has a deadline, and it has outputs.
    pub const TRACKED: u32 = 2;
    /// The operator's last step was not finished with its message: the stamp is restored before the next one.
    pub const RESUME: u32 = 4;
    /// Every step is timed.
    pub const EXACT: u32 = 8;
    /// This step found a chunk store empty.
    pub const STARVED: u32 = 16;
    /// The operator does not wait for an input. If it has inputs nevertheless, it is also [`MULTI`].
    pub const SOURCE: u32 = 32;
    /// Several edges lead to the operator: one pop does not tell whether there is more.
    pub const MULTI: u32 = 64;
    /// As [`TRACKED`], for an operator without outputs: checked only where a chain of steps ends.
    pub const END: u32 = 128;

    /// The operator has conditions beyond messages and room.
    pub const WHEN: u32 = 256;
    /// The operator and its neighbours have one step together.
    pub const CHAINED: u32 = 512;

    /// Steps that are timed are noted, and every one is timed as long as that costs little.
    pub const RECORDED: u32 = 1024;

    /// Flags with which every step takes the slow path.
    pub const SLOW: u32 = !(SOURCE | END | RECORDED);
}

/// What the hot loop reads and writes for one operator at each step: one quarter of a cache line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hot {
    /// Steps until one that takes the slow path: to be timed, or because of its flags.
    pub left: u32,
    /// What `left` was when it was last set.
    pub every: u32,
    /// Conditions that do not hold: full edges that wait, empty edges that are waited for; [`DONE`].
    pub unmet: u32,
    /// See [`flag`]. While there are any of [`flag::SLOW`], `left` is 1.
    pub flags: u32,
}

impl Hot {
    /// Sets flags, so that the next step takes the slow path. The number of steps made so far (`every -
    /// left`) stays the same.
    pub fn flag(&mut self, flags: u32) {
        self.flags |= flags;
        // In the middle of a slow step `left` is 0; the end of the step sets it again.
        if self.left > 1 && flags & flag::SLOW != 0 {
            self.every -= self.left - 1;
            self.left = 1;
        }
    }
}

/// List to which a held operator returns when its conditions hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    No,
    /// The ready list.
    Ready,
    /// The turn list of the sources.
    Turn,
}

/// State of an edge besides its queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct EdgeState {
    /// The producer is done.
    pub closed: bool,
    /// Its consumer does not wait for it until its next step.
    pub kept: bool,
    /// Closed, and seen empty.
    pub ended: bool,
    /// The consumer is done.
    pub gone: bool,
    /// Whether the edge leads to another worker and is full. Its producer waits until the consumer reports
    /// room.
    pub waiting: bool,
    /// Messages dropped because the edge was full and chose so.
    pub dropped: u64,
    /// Those of them that never were in the queue.
    pub refused: u64,
    /// Messages that the consumer did not take before it was done.
    pub unread: u64,
    /// Those of them that were in the queue.
    pub cleared: u64,
    /// User keys of messages in the queue, by the number of the message.
    pub keys: VecDeque<(u64, Arc<Keys>)>,
}
