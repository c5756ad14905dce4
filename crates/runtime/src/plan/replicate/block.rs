//! How many messages a turn of a source that goes from worker to worker has.
//!
//! From worker to worker go some cache lines, one after the other, and nobody else has a turn meanwhile: a light chain waits for that more
//! than for anything else. So where messages follow each other quickly a turn has several. Where they do not, it has one: who has the next
//! turn would wait for those of this one, and be late with what comes.

use crate::operator::context::Context;
use crate::operator::link::Probe;
use std::sync::Arc;

/// Most messages of a turn.
const MOST: u32 = 8;

/// Most bytes of chunks that are made in one turn, and of two: who changes them next finds them in the caches near the core. (Measured on a
/// machine with 48 KiB and 2 MiB: 3 chunks of 16 KiB in a turn give 2 to 5 % more than 4, and 3 to 8 % more than 2, but 2 of 32 KiB up to 10 %
/// more than one.)
const BYTES: u32 = 48 << 10;
const BYTES_OF_TWO: u32 = 64 << 10;

/// Turns of all workers from one look at the clock to the next: it costs as much as the rest of a turn.
const TURNS: u32 = 32;

/// Most time that a turn of several takes one worker.
const TURN_NS: u64 = 8_000;

/// From one message of a worker to its next, at most, for each message of a turn of several. Measured with chunks of 16 and 32 KiB, of which
/// four or two are a turn.
const HALF_NS: u64 = 500;

/// Where the messages of a source go, on one worker.
pub(crate) struct Way {
    pub probe: Arc<dyn Probe>,
    /// Messages in it at which the source waits; `u32::MAX` where it never does.
    pub waits_at: u32,
    /// Bytes of a chunk on it; `u32::MAX` for other messages.
    pub quantum: u32,
    /// Somebody wants to know when each message is due, or how many are under way.
    pub has_limits: bool,
}

/// How the messages of a source follow each other. It goes from worker to worker with the source: a worker by itself would take its messages
/// to come seldom where the others have turns of several and it has not.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Messages that follow each other quickly.
    is_brisk: bool,
    /// Turns until it is looked at the clock again, and when that was last, after how many messages.
    left: u32,
    looked: Option<(u64, u64)>,
}

impl Pace {
    /// The source does not send as fast as it can any more.
    pub fn calm(&mut self) {
        *self = Pace { left: TURNS, ..Pace::default() };
    }
}

/// One worker's turns.
pub(super) struct Block {
    way: Option<Way>,
    /// How many have turns.
    workers: u64,
    /// Most messages of a turn.
    most: u32,
}

impl Block {
    /// One message in each turn.
    pub const ONE: Block = Block { way: None, workers: 1, most: 1 };

    pub fn new(way: Way, workers: usize) -> Self {
        let bytes = if way.quantum == u32::MAX { 1 } else { way.quantum.max(1) };
        let most = (BYTES / bytes).max((BYTES_OF_TWO / bytes).min(2)).min(MOST).min(way.waits_at).max(1);
        let most = if way.has_limits || way.waits_at == u32::MAX { 1 } else { most };
        Block { way: Some(way), workers: workers as u64, most }
    }

    /// Messages of the turn that begins now, after so many others.
    pub fn begin(&self, cx: &Context, pace: &mut Pace, count: u64) -> u32 {
        if self.most == 1 {
            return 1;
        }
        if pace.left == 0 {
            // By virtual time, which stands still while there is work, messages always follow each other quickly.
            let now_ns = cx.now_ns();
            // Turns of two gain less than those of four, and cost as much: one of the two workers waits for a turn of the other.
            let brisk_ns = (TURN_NS / u64::from(self.most)).min(HALF_NS * u64::from(self.most));
            // Each worker has its share of them.
            pace.is_brisk = pace.looked.is_some_and(|(then_ns, before)| {
                now_ns.saturating_sub(then_ns) * self.workers < brisk_ns * (count - before)
            });
            (pace.left, pace.looked) = (TURNS, Some((now_ns, count)));
        }
        pace.left -= 1;
        if pace.is_brisk { self.most } else { 1 }
    }

    /// Messages that were ever sent there; `None` where nobody counts.
    #[inline]
    pub fn sent(&self, cx: &Context) -> Option<u64> {
        self.way.as_ref().filter(|_| self.most > 1).map(|way| way.probe.sent(&cx.owner))
    }

    /// Whether there is room for one more.
    #[inline]
    pub fn has_room(&self, cx: &Context) -> bool {
        self.way.as_ref().is_some_and(|way| way.probe.len(&cx.owner) < way.waits_at as usize)
    }
}
