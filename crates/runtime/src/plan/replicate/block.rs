//! Number of messages in a turn of a source that goes from worker to worker.
//!
//! Passing the turn moves some cache lines between cores, one after the other. No other worker has a turn
//! meanwhile, and a light chain spends most of its time waiting for this. So a turn has several messages if
//! they follow each other quickly. Otherwise it has one: the next worker would wait for the rest of the turn,
//! and its own message would be late.

use crate::operator::context::Context;
use crate::operator::link::Probe;
use std::sync::Arc;

/// Most messages in a turn.
const MOST: u32 = 8;

/// Most bytes of chunks in one turn: the next operators find them in the caches near the core. (Measured on a
/// machine with caches of 48 KiB and 2 MiB: 3 chunks of 16 KiB in a turn give 2 to 5 % more than 4, and 3 to
/// 8 % more than 2, but 2 of 32 KiB up to 10 % more than one.)
const BYTES: u32 = 48 << 10;
/// Most bytes of chunks in a turn of two messages.
const BYTES_OF_TWO: u32 = 64 << 10;

/// Turns of the source between two clock readings: one reading costs as much as the rest of a turn.
const TURNS: u32 = 32;

/// Longest time of a turn of several messages on one worker, in nanoseconds.
const TURN_NS: u64 = 8_000;

/// Longest time between messages of a worker, in nanoseconds, per message of a turn of several.
/// Measured with chunks of 16 and 32 KiB, of which four or two are a turn.
const HALF_NS: u64 = 500;

/// Outgoing edge of a source, on one worker.
pub(crate) struct Way {
    pub probe: Arc<dyn Probe>,
    /// Messages on the edge at which the source waits; `u32::MAX` if it never does.
    pub waits_at: u32,
    /// Bytes of a chunk on the edge; `u32::MAX` for other messages.
    pub quantum: u32,
    /// Whether a limit needs the due time of each message, or the number of messages in flight.
    pub has_limits: bool,
}

/// Rate of a source's messages. It goes from worker to worker with the source: a worker on its own would
/// measure a low rate if the others have turns of several messages and it has not.
#[derive(Debug, Default)]
pub(super) struct TurnPace {
    /// Whether messages follow each other quickly.
    is_dense: bool,
    /// Turns until the next clock reading.
    left: u32,
    /// Time of the last clock reading, and the number of messages before it.
    measured: Option<(u64, u64)>,
}

impl TurnPace {
    /// Resets the rate: the source no longer sends as fast as it can.
    pub fn calm(&mut self) {
        *self = TurnPace { left: TURNS, ..TurnPace::default() };
    }
}

/// One worker's turns.
pub(super) struct TurnBlock {
    way: Option<Way>,
    /// Number of workers that take turns.
    workers: u64,
    /// Most messages in a turn.
    most: u32,
}

impl TurnBlock {
    /// One message in each turn.
    pub const ONE: TurnBlock = TurnBlock { way: None, workers: 1, most: 1 };

    pub fn new(way: Way, workers: usize) -> Self {
        let bytes = if way.quantum == u32::MAX { 1 } else { way.quantum.max(1) };
        let most = (BYTES / bytes).max((BYTES_OF_TWO / bytes).min(2)).min(MOST).min(way.waits_at).max(1);
        let most = if way.has_limits || way.waits_at == u32::MAX { 1 } else { most };
        TurnBlock { way: Some(way), workers: workers as u64, most }
    }

    /// Number of messages in the turn that begins now. `count` is the number of messages before it.
    pub fn begin(&self, cx: &Context, pace: &mut TurnPace, count: u64) -> u32 {
        if self.most == 1 {
            return 1;
        }
        if pace.left == 0 {
            // Virtual time stands still while there is work, so messages always follow each other quickly.
            let now_ns = cx.now_ns();
            // Turns of two gain less than turns of four, and cost as much: one worker waits for the turn of
            // another.
            let dense_ns = (TURN_NS / u64::from(self.most)).min(HALF_NS * u64::from(self.most));
            // The messages are shared by all workers.
            pace.is_dense = pace.measured.is_some_and(|(then_ns, before)| {
                now_ns.saturating_sub(then_ns) * self.workers < dense_ns * (count - before)
            });
            (pace.left, pace.measured) = (TURNS, Some((now_ns, count)));
        }
        pace.left -= 1;
        if pace.is_dense { self.most } else { 1 }
    }

    /// Number of messages ever sent on the edge; `None` if turns have one message.
    #[inline]
    pub fn sent(&self, cx: &Context) -> Option<u64> {
        self.way.as_ref().filter(|_| self.most > 1).map(|way| way.probe.sent(&cx.owner))
    }

    /// Whether the edge has room for one more message.
    #[inline]
    pub fn has_room(&self, cx: &Context) -> bool {
        self.way.as_ref().is_some_and(|way| way.probe.len(&cx.owner) < way.waits_at as usize)
    }
}
