//! One station of a wave: some operators of a run, and what a thread does with its chunks there.

use super::super::direct::did_more_than_fill;
use super::Block;
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

/// A chunk on its way, with what else there is to the message.
pub(super) struct Item {
    pub chunk: Chunk<u8>,
    pub stamp: Stamp,
    pub keys: Option<Arc<Keys>>,
    /// The operator that is next.
    pub next: u32,
}

/// How an operator failed, and which.
pub(crate) enum Failed {
    Error(u32, Error),
    Panic(u32, Box<dyn Any + Send>),
}

impl Failed {
    pub fn operator(&self) -> u32 {
        match self {
            Failed::Error(operator, _) | Failed::Panic(operator, _) => *operator,
        }
    }
}

/// What lies at a station while the wave is open.
pub(super) struct Stage {
    /// Some of the run and its ends, in order.
    pub operators: Vec<Box<dyn Operator>>,
    /// The number of the first of them.
    pub first: u32,
    /// At the first station: whether runners may begin; the source's place among those of the plan.
    pub is_open: bool,
    pub source_number: u64,
    pub counts: Counts,
    /// At the last station: messages that did not go all the way, in order.
    pub left: Vec<Item>,
    /// What came here stays as it is: a message before it did not come through as usual.
    is_halted: bool,
    pub failed: Option<Failed>,
}

/// What is written with each message, and nothing else is: on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Counts {
    /// At the first station: messages that the source has sent so far.
    pub sequence: u64,
    /// At the last station: messages that went all the way.
    pub whole: u64,
}

/// The numbers of the ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainEnds {
    pub source: u32,
    pub sink: u32,
}

impl Stage {
    /// With room for so many operators and messages.
    pub fn new(operators: usize, messages: usize) -> Self {
        Stage {
            operators: Vec::with_capacity(operators),
            first: NONE,
            is_open: false,
            source_number: 0,
            counts: Counts::default(),
            left: Vec::with_capacity(messages),
            is_halted: false,
            failed: None,
        }
    }

    /// Some of the operators come here.
    pub fn open(&mut self, first: u32) {
        (self.first, self.counts.whole, self.is_halted) = (first, 0, false);
    }

    /// What a runner does here. False where something is not as usual: then the wave is to be closed.
    pub fn work(&mut self, cx: &mut Context, block: &mut Block, ends: ChainEnds, slot: &PartSlot) -> bool {
        if !self.is_halted && !self.operators.is_empty() {
            self.prefetch(ends);
            // Nothing of this is used after a panic but the operators, as it is everywhere else.
            let carry = || self.carry(cx, block, ends, slot);
            let is_halted = match catch_unwind(AssertUnwindSafe(carry)) {
                Ok(Ok(is_usual)) => !is_usual,
                Ok(Err((operator, error))) => {
                    self.failed = Some(Failed::Error(operator, error));
                    true
                }
                Err(panic) => {
                    self.failed = Some(Failed::Panic(slot.within(), panic));
                    true
                }
            };
            // Only then: else this line stays with all who read it.
            if is_halted {
                self.is_halted = true;
            }
            // While it waits for the next station it is in none.
            slot.exit();
        }
        if self.is_last(ends) {
            self.counts.whole += block.gone as u64;
            if block.filled > block.gone {
                self.left.extend(block.items.drain(block.gone..block.filled));
            }
        }
        !self.is_halted
    }

    /// What is written here comes from the core of the one before, all of it at once.
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

    /// Chunk by chunk: through all operators here while it is in the cache next to the core.
    #[inline(always)]
    fn carry(
        &mut self,
        cx: &mut Context,
        block: &mut Block,
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
        let most = if source.is_some() { block.items.len() } else { block.filled };
        for item in &mut block.items[..most] {
            let (samples, info) = item.chunk.parts().expect("nobody else has it");
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
                block.filled += 1;
                if item.stamp.due_ns != NO_DUE {
                    // Somebody is to know when it arrives.
                    return Ok(false);
                }
            } else if item.next != first || item.stamp.due_ns != NO_DUE {
                // It was left lying at a station before.
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
                block.gone += 1;
            }
        }
        Ok(true)
    }
}
