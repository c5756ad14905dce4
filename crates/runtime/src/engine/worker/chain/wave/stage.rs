//! One stage of a wave: some operators of a chain at a station, and a thread's work there.

use super::super::direct::did_more_than_fill;
use super::MessageGroup;
use crate::Error;
use crate::base::slot::PartSlot;
use crate::engine::worker::begin_turn;
use crate::operator::Operator;
use crate::operator::chunk::Chunk;
use crate::operator::context::{Context, NONE};
use crate::operator::message::{Keys, NO_DUE, Stamp};
use onbeat_queue::{Meta, fetch_to_write};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A message in a wave: its chunk, stamp and keys.
pub(super) struct WaveItem {
    pub chunk: Chunk<u8>,
    pub stamp: Stamp,
    pub keys: Option<Arc<Keys>>,
    /// Next operator.
    pub next: u32,
}

/// Failure of an operator in a wave.
pub(crate) enum StageFailure {
    Error(u32, Error),
    Panic(u32, Box<dyn Any + Send>),
}

impl StageFailure {
    pub fn operator(&self) -> u32 {
        match self {
            StageFailure::Error(operator, _) | StageFailure::Panic(operator, _) => *operator,
        }
    }
}

/// State of a station. The operators are here while the wave is open.
pub(super) struct WaveStage {
    /// Some operators of the chain, ends included, in order.
    pub operators: Vec<Box<dyn Operator>>,
    /// Number of the first of these.
    pub first: u32,
    /// At the first station: whether threads may begin.
    pub is_open: bool,
    /// At the first station: number of the source.
    pub source_number: u64,
    pub counts: StageCounts,
    /// At the last station: messages that did not go all the way, in order.
    pub left: Vec<WaveItem>,
    /// Whether messages stay as they are, because a message before them did not come through as usual.
    is_halted: bool,
    pub failed: Option<StageFailure>,
}

/// Counts that are written with each message, and nothing else is: on a cache line of their own.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct StageCounts {
    /// At the first station: number of messages that the source has sent.
    pub sequence: u64,
    /// At the last station: number of messages that went all the way.
    pub whole: u64,
}

/// Numbers of the ends of a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainEnds {
    pub source: u32,
    pub sink: u32,
}

impl WaveStage {
    /// An empty stage with room for this number of operators and messages.
    pub fn new(operators: usize, messages: usize) -> Self {
        WaveStage {
            operators: Vec::with_capacity(operators),
            first: NONE,
            is_open: false,
            source_number: 0,
            counts: StageCounts::default(),
            left: Vec::with_capacity(messages),
            is_halted: false,
            failed: None,
        }
    }

    /// Prepares for operators from number `first` on.
    pub fn open(&mut self, first: u32) {
        (self.first, self.counts.whole, self.is_halted) = (first, 0, false);
    }

    /// Takes a thread's messages through the operators here. False if something was unusual: the wave must be
    /// closed then.
    pub fn work(
        &mut self,
        cx: &mut Context,
        group: &mut MessageGroup,
        ends: ChainEnds,
        slot: &PartSlot,
    ) -> bool {
        if !self.is_halted && !self.operators.is_empty() {
            self.prefetch(ends);
            // After a panic only the operators are used again, as everywhere else.
            let carry = || self.carry(cx, group, ends, slot);
            let is_halted = match catch_unwind(AssertUnwindSafe(carry)) {
                Ok(Ok(is_usual)) => !is_usual,
                Ok(Err((operator, error))) => {
                    self.failed = Some(StageFailure::Error(operator, error));
                    true
                }
                Err(panic) => {
                    self.failed = Some(StageFailure::Panic(slot.within(), panic));
                    true
                }
            };
            // Written only then: otherwise the line stays shared by all readers.
            if is_halted {
                self.is_halted = true;
            }
            // No operator runs while the thread waits for the next station.
            slot.exit();
        }
        if self.is_last(ends) {
            self.counts.whole += group.gone as u64;
            if group.filled > group.gone {
                self.left.extend(group.items.drain(group.gone..group.filled));
            }
        }
        !self.is_halted
    }

    /// Prefetches all lines that will be written here, as they are in another core's cache.
    #[inline(always)]
    fn prefetch(&mut self, ends: ChainEnds) {
        let is_first = self.first == ends.source;
        if is_first || self.is_last(ends) {
            fetch_to_write(&self.counts);
            let end = if is_first { self.operators.first() } else { self.operators.last() };
            end.into_iter().for_each(|operator| fetch_to_write(&**operator));
        }
        for operator in &mut self.operators {
            operator.inline().into_iter().for_each(|inline| inline.prefetch());
        }
    }

    fn is_last(&self, ends: ChainEnds) -> bool {
        !self.operators.is_empty() && self.first + self.operators.len() as u32 == ends.sink + 1
    }

    /// Takes messages through all operators here, chunk by chunk, while each chunk is in the cache next to
    /// the core. Returns whether all was as usual.
    #[inline(always)]
    fn carry(
        &mut self,
        cx: &mut Context,
        group: &mut MessageGroup,
        ends: ChainEnds,
        slot: &PartSlot,
    ) -> Result<bool, (u32, Error)> {
        let is_last = self.is_last(ends);
        let (source, inside) = match self.operators.split_first_mut() {
            Some((source, inside)) if self.first == ends.source => (Some(source), inside),
            _ => (None, &mut self.operators[..]),
        };
        let first = self.first + u32::from(source.is_some());
        let (inside, sink) = match inside.split_last_mut() {
            Some((sink, inside)) if is_last => (inside, Some(sink)),
            _ => (inside, None),
        };
        let mut source = source.and_then(|source| source.inline());
        let mut sink = sink.and_then(|sink| sink.inline());
        let most = if source.is_some() { group.items.len() } else { group.filled };
        for item in &mut group.items[..most] {
            let (samples, info) = item.chunk.parts().expect("the chunk has one owner");
            if let Some(source) = &mut source {
                info.reset();
                begin_turn(cx, self.source_number, self.counts.sequence);
                (cx.current, cx.next) = (ends.source, NONE);
                slot.enter(ends.source);
                let is_filled = source.fill(cx, samples, info);
                if cx.next != NONE {
                    return Err((ends.source, did_more_than_fill()));
                }
                if !is_filled {
                    return Ok(false);
                }
                self.counts.sequence += 1;
                (item.stamp, item.keys, item.next) = (cx.stamp, cx.keys.take(), first);
                group.filled += 1;
                if item.stamp.due_ns != NO_DUE {
                    // The arrival of the message must be recorded.
                    return Ok(false);
                }
            } else if item.next != first || item.stamp.due_ns != NO_DUE {
                // The message stopped at an earlier station.
                return Ok(false);
            }
            for inline in inside.iter_mut().filter_map(|operator| operator.inline()) {
                slot.enter(item.next);
                inline.edit_migrated(samples, info).map_err(|error| (item.next, error))?;
                item.next += 1;
            }
            if let Some(sink) = &mut sink {
                (cx.current, cx.next, cx.popped) = (ends.sink, NONE, 1);
                (cx.stamp, cx.keys) = (item.stamp, item.keys.take());
                slot.enter(ends.sink);
                if !sink.drain(cx, samples, info) {
                    item.keys = cx.keys.take();
                    return Ok(false);
                }
                group.gone += 1;
            }
        }
        Ok(true)
    }
}
