//! What a worker knows of each operator and edge beside its queues.

use crate::operator::message::Keys;
use std::collections::VecDeque;
use std::sync::Arc;

/// Added to the unmet conditions of an operator that is done: it is never ready again.
pub(crate) const DONE: u32 = 1 << 31;

/// Something is to be done for this operator around its next step, beyond the step itself.
pub(crate) mod flag {
    /// A closed input may have run empty.
    pub const CLOSING: u32 = 1;
    /// A path with or without a limit ends here, or the operator has a deadline, and it has outputs.
    pub const TRACKED: u32 = 2;
    /// Its last step was not finished with its message: the stamp is put back before the next one.
    pub const RESUME: u32 = 4;
    /// Every step is timed.
    pub const EXACT: u32 = 8;
    /// A chunk store had nothing to give in this step.
    pub const STARVED: u32 = 16;
    /// It waits for no input. (One that has inputs all the same is [`MULTI`] too.)
    pub const SOURCE: u32 = 32;
    /// Several edges lead to it: one pop does not tell whether there is more.
    pub const MULTI: u32 = 64;
    /// As [`TRACKED`], for an operator without outputs: it is looked at where a chain of steps ends anyway.
    pub const END: u32 = 128;

    /// It has conditions of its own.
    pub const WHEN: u32 = 256;
    /// It and its neighbours are run as one step.
    pub const CHAINED: u32 = 512;

    /// Steps that are timed are noted, and every one is timed as long as that costs little.
    pub const RECORDED: u32 = 1024;

    /// Flags with which every step takes the slow way.
    pub const SLOW: u32 = !(SOURCE | END | RECORDED);
}

/// What the hot loop reads and writes for one operator at each step: one quarter of a cache line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hot {
    /// Steps until one that takes the slow way: to be timed, or because of its flags.
    pub left: u32,
    /// What `left` was when it was last set.
    pub every: u32,
    /// Conditions that do not hold: full edges that wait, empty edges that are waited for; [`DONE`].
    pub unmet: u32,
    /// See [`flag`]. While there are any of [`flag::SLOW`], `left` is 1.
    pub flags: u32,
}

impl Hot {
    /// Sets flags, so that the next step takes the slow way. The steps made so far (`every - left`) stay the
    /// same.
    pub fn flag(&mut self, flags: u32) {
        self.flags |= flags;
        // In the middle of a slow step it is 0, and set anew at its end.
        if self.left > 1 && flags & flag::SLOW != 0 {
            self.every -= self.left - 1;
            self.left = 1;
        }
    }
}

/// Whether an operator that could not be stepped is to be stepped when its conditions hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    No,
    /// It goes back to the ready ones.
    Ready,
    /// It goes back to the sources that take turns.
    Turn,
}

/// What the engine knows of an edge beside its queue.
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
    /// To another worker, and full: its producer waits until the consumer says that there is room.
    pub waiting: bool,
    /// Messages dropped because the edge was full and chose so.
    pub dropped: u64,
    /// Those of them that never were in the queue.
    pub refused: u64,
    /// Messages that the consumer did not want any more.
    pub unread: u64,
    /// Those of them that were in the queue.
    pub cleared: u64,
    /// User keys of messages in the queue, by the number of the message.
    pub keys: VecDeque<(u64, Arc<Keys>)>,
}
