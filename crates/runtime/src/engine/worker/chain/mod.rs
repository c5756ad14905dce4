//! Chains: neighbours on one worker that have one step together.
//!
//! A chain is only a shortcut. Its operators exist like all others, with their edges, and are stepped one by
//! one as soon as anything is unusual: an end, a failure, a message queued between two of them. The chain is
//! *loose* then, until all edges inside are empty again. [`pass`] takes chunks from the source before a chain
//! to the sink after it.

mod direct;
mod executor;
mod pass;
mod poll;
mod state;
pub(crate) mod wave;

use super::{Failure, Worker};
use crate::Error;
use crate::base::slot::within;
use crate::operator::context::Context;
pub(crate) use executor::Executor;
use poll::PollRate;
use state::{DirectCounts, PartialCounts};
use std::ops::RangeInclusive;
use wave::{WaveOutcome, WavePolicy};

/// Neighbours on one worker, with rising numbers, that have one step together.
pub(crate) struct Chain {
    /// First operator inside.
    pub first: u32,
    /// Last operator inside.
    pub last: u32,
    /// The source, if one belongs to the chain; otherwise `first`.
    pub source: u32,
    /// The sink, if one belongs to the chain; otherwise `last`.
    pub sink: u32,
    pub executor: Executor,
    /// One bit per operator inside, lowest first: whether the operator writes other chunks.
    pub rewriting: u64,
    /// Steps of each operator inside that the meters do not count yet.
    passes: u64,
    /// Steps of the source that its meter does not count yet.
    pub begun: u64,
    /// Steps of the sink that its meter does not count yet.
    ended: u64,
    /// Passes of the present batch, which these three do not count yet.
    pub whole: u64,
    /// By edge between two operators inside: chunks that went over without being queued.
    unqueued: Box<[u64]>,
    pub direct: DirectCounts,
    pub poll_rate: PollRate,
    pub partial: PartialCounts,
    /// Passes until the next timed one.
    pub left: u32,
    /// Policy of waves, if other threads can carry chunks, too.
    pub policy: Option<Box<WavePolicy>>,
    /// Whether a chunk may be queued inside, so that operators are stepped one by one.
    pub is_loose: bool,
    /// During a pass: whether it comes from the source, and whether it goes to the sink.
    pub in_pass: Option<(bool, bool)>,
}

impl Chain {
    /// A chain of the operators inside; `all` includes the ends.
    pub fn new(inside: RangeInclusive<u32>, all: RangeInclusive<u32>, executor: Executor) -> Self {
        let ((first, last), (source, sink)) = (inside.into_inner(), all.into_inner());
        Chain {
            first,
            last,
            source,
            sink,
            executor,
            rewriting: 0,
            passes: 0,
            begun: 0,
            ended: 0,
            whole: 0,
            unqueued: vec![0; (last - first) as usize].into(),
            direct: DirectCounts::default(),
            poll_rate: PollRate::default(),
            partial: PartialCounts::default(),
            left: 1,
            policy: None,
            is_loose: false,
            in_pass: None,
        }
    }

    /// Counts the messages of a wave that has ended.
    pub fn count_wave(&mut self, outcome: &WaveOutcome) {
        self.in_pass = None;
        self.begun += outcome.begun;
        self.passes += outcome.whole + outcome.through;
        self.ended += outcome.whole;
        self.direct.from_source += outcome.whole + outcome.through;
        self.direct.to_sink += outcome.whole;
    }

    /// Counts a batch of passes, given whether the last one came through all operators inside, and to a step
    /// of the sink. Returns the number of passes before the last one, and whether their messages are queued
    /// before the sink.
    pub fn count_batch(&mut self, through: bool, ended: bool) -> (u64, bool) {
        let Some((from_source, to_sink)) = self.in_pass.take() else { return (0, false) };
        let whole = std::mem::take(&mut self.whole);
        let PartialCounts { without_source, without_sink } = std::mem::take(&mut self.partial);
        self.begun += if from_source { whole + 1 - without_source } else { 0 };
        self.passes += whole + u64::from(through);
        self.ended += if to_sink { whole - without_sink } else { 0 } + u64::from(ended);
        (whole, without_sink > 0)
    }
}

impl Worker {
    /// Chain to which an operator belongs, ends included.
    fn chain_of(&self, operator: u32) -> Option<&Chain> {
        self.nodes.get(operator as usize)?.chain.and_then(|first| self.chains[first as usize].as_ref())
    }

    /// Makes the chain of an operator ready that was restarted.
    pub(super) fn resume_chain(&mut self, cx: &mut Context, operator: u32) {
        if let Some(chain) = self.chain_of(operator).filter(|chain| chain.executor.has_input(cx)) {
            cx.ready.set(chain.first);
        }
    }

    /// Whether all edges inside are empty.
    fn is_tight(&self, cx: &Context, chain: &Chain) -> bool {
        (chain.first + 1..=chain.last).all(|operator| {
            let inputs = &self.nodes[operator as usize].inputs;
            inputs.iter().all(|&edge| self.edges[edge as usize].probe.len(&cx.owner) == 0)
        })
    }

    /// Handles the failure of an operator inside, after a number of operators (`through`) were stepped.
    #[cold]
    pub(super) fn fail_chain(
        &mut self,
        cx: &mut Context,
        first: u32,
        through: usize,
        error: Error,
    ) -> Failure {
        let last = self.chains[first as usize].as_ref().map_or(first, |chain| chain.last);
        let failed = (first + through as u32).min(last);
        self.count_failed(first, failed);
        cx.current = failed;
        Failure::Operator(failed, error)
    }

    /// Counts the steps of a pass up to the operator that failed.
    pub(super) fn count_failed(&mut self, first: u32, failed: u32) {
        self.count_passes(first);
        let Some(chain) = &mut self.chains[first as usize] else { return };
        chain.left = 1;
        if failed < chain.first || failed > chain.last {
            // The steps of the ends are counted with the pass.
            return;
        }
        chain.unqueued.iter_mut().take((failed - first) as usize).for_each(|count| *count += 1);
        for operator in first..=failed {
            self.meters[operator as usize].add(1);
        }
    }

    /// Operator whose code is running, or has panicked. During a pass, only the slot has it.
    pub fn in_code(&self, cx: &Context) -> u32 {
        let shown = self.slot.within() & within::OPERATOR;
        let chain = self.chains.iter().flatten().find(|chain| chain.in_pass.is_some());
        match chain.is_some_and(|chain| (chain.source..=chain.sink).contains(&shown)) {
            true => shown,
            false => cx.current,
        }
    }

    /// Counts the steps of a pass in which an operator has panicked.
    #[cold]
    pub(super) fn note_panic(&mut self, operator: u32) {
        let Some(first) = self.nodes.get(operator as usize).and_then(|node| node.chain) else { return };
        if let Some(chain) = self.chains[first as usize].as_mut().filter(|chain| chain.in_pass.is_some()) {
            let in_sink = operator > chain.last;
            chain.direct.count(chain.whole, operator >= chain.first, in_sink);
            chain.count_batch(in_sink, in_sink);
            self.count_failed(first, operator);
        }
    }

    /// Adds the passes so far to the meters of all operators of a chain.
    pub(super) fn count_passes(&mut self, first: u32) {
        let Some(chain) = &mut self.chains[first as usize] else { return };
        let passes = std::mem::take(&mut chain.passes);
        for (end, steps) in [(chain.source, &mut chain.begun), (chain.sink, &mut chain.ended)] {
            self.meters[end as usize].add(std::mem::take(steps));
        }
        if passes > 0 {
            for operator in chain.first..=chain.last {
                self.meters[operator as usize].add(passes);
            }
            chain.unqueued.iter_mut().for_each(|count| *count += passes);
        }
    }

    /// Steps of an operator in passes that its meter does not count yet.
    pub fn passes(&self, operator: u32) -> u64 {
        self.chain_of(operator).map_or(0, |chain| match operator {
            _ if operator < chain.first => chain.begun,
            _ if operator > chain.last => chain.ended,
            _ => chain.passes,
        })
    }

    /// Messages that went to an operator of a chain without being queued.
    pub fn unqueued(&self, to: u32) -> u64 {
        self.chain_of(to).map_or(0, |chain| match to {
            _ if to < chain.first => 0,
            _ if to == chain.first => chain.direct.from_source,
            _ if to > chain.last => chain.direct.to_sink,
            _ => chain.passes + chain.unqueued[(to - chain.first - 1) as usize],
        })
    }
}
