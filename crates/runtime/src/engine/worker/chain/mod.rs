//! Operators that are run as one step: see [`carry`](crate::engine::carry).
//!
//! A run is a shortcut and nothing else. Its operators are there as any others are, with their edges, and are stepped one by one
//! as soon as anything is out of the ordinary: an end, a failure, a message between two of them. Then the run is *loose*, until all
//! edges in it are empty again. How chunks go through, from the source before a run and to the sink behind it: see
//! [`pass`](super::pass).

mod direct;
mod executor;
mod pass;
mod poll;
mod state;
pub(crate) mod wave;

use super::{Failure, Worker};
use crate::Error;
use crate::base::slot::within;
use crate::operator::context::{Context, DONE, Hold, NONE, flag};
pub(crate) use executor::Executor;
use poll::PollRate;
use state::{DirectCounts, PartialCounts};
use std::ops::RangeInclusive;
use wave::{WaveOutcome, WavePolicy};

/// Neighbours on one worker, by rising number.
pub(crate) struct Chain {
    /// Those that change chunks.
    pub first: u32,
    pub last: u32,
    /// The operator before them, where that is a source that is run along; else the first of them.
    pub source: u32,
    /// The operator behind them, where that is a sink that is run along; else the last of them.
    pub sink: u32,
    pub executor: Executor,
    /// Those that write other chunks, by bit, the first of them lowest.
    pub rewriting: u64,
    /// Steps that were made in passes since the counters were brought up to date: of those that change chunks, of the source, and
    /// of the sink.
    passes: u64,
    pub begun: u64,
    ended: u64,
    /// Passes that are not among these yet.
    pub whole: u64,
    /// Chunks that went through, by edge from one to the next.
    carried: Box<[u64]>,
    pub direct: DirectCounts,
    pub poll_rate: PollRate,
    pub partial: PartialCounts,
    /// Passes until one is timed.
    pub left: u32,
    /// Where others may carry chunks, too: whether they are to.
    pub policy: Option<Box<WavePolicy>>,
    /// Something may lie between two of them.
    pub is_loose: bool,
    /// A chunk is on its way: from the source or not, and to the sink or not.
    pub in_pass: Option<(bool, bool)>,
}

impl Chain {
    /// Of those that change chunks, and of all with their ends.
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
            carried: vec![0; (last - first) as usize].into(),
            direct: DirectCounts::default(),
            poll_rate: PollRate::default(),
            partial: PartialCounts::default(),
            left: 1,
            policy: None,
            is_loose: false,
            in_pass: None,
        }
    }

    /// Messages went along with others; none is under way any more.
    pub fn wave_ended(&mut self, outcome: &WaveOutcome) {
        self.in_pass = None;
        self.begun += outcome.begun;
        self.passes += outcome.whole + outcome.through;
        self.ended += outcome.whole;
        self.direct.from_source += outcome.whole + outcome.through;
        self.direct.to_sink += outcome.whole;
    }

    /// The pass that was under way ended: through all those that change chunks or not, and in a step of the sink or not. Says how many
    /// there were before it, and whether messages of these lie before the sink.
    pub fn pass_ended(&mut self, through: bool, ended: bool) -> (u64, bool) {
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
    /// One step of a run, if that is what is to be done for this operator of it. False when it is to be stepped by itself.
    #[inline]
    pub(super) fn step_chain(&mut self, cx: &mut Context, operator: u32) -> Result<bool, Failure> {
        let Some(chain) = &mut self.chains[operator as usize] else {
            return self.step_member(cx, operator);
        };
        let (first, last) = (chain.first, chain.last);
        let (unmet, flags) = all(cx, first, last);
        if flags & !flag::RECORDED != flag::CHAINED || chain.is_loose {
            return self.step_loose(cx, operator, flags);
        }
        cx.hot[first as usize].left = 1;
        (cx.next, cx.popped) = (NONE, 0);
        if unmet != 0 {
            hold_chain(cx, first, last);
            self.note_hold_of_chain(cx, first, last);
            return Ok(true);
        }
        if !self.is_equipped(cx, first) {
            return Ok(false);
        }
        self.go_through(cx, first, false).map(|()| true)
    }

    /// Whether those that write other chunks have one to write to. Where they have not, they are stepped one by one, and each waits for
    /// one.
    #[inline]
    pub(super) fn is_equipped(&mut self, cx: &Context, first: u32) -> bool {
        let Some(chain) = &mut self.chains[first as usize] else { return false };
        let is_equipped = chain.rewriting == 0 || chain.executor.equip(cx);
        chain.is_loose |= !is_equipped;
        is_equipped
    }

    /// Something was, or is, out of the ordinary.
    #[cold]
    fn step_loose(&mut self, cx: &mut Context, first: u32, flags: u32) -> Result<bool, Failure> {
        let is_tight = flags & !flag::RECORDED == flag::CHAINED
            && self.chains[first as usize].as_ref().is_some_and(|chain| self.is_tight(cx, chain));
        if let Some(chain) = &mut self.chains[first as usize] {
            chain.is_loose = !is_tight;
        }
        if is_tight { self.step_chain(cx, first) } else { Ok(false) }
    }

    /// The source before a run has its turn, or an operator of it other than the first is ready. Where nothing lies before that one,
    /// its turn has come because something lets the whole run go on.
    fn step_member(&mut self, cx: &mut Context, operator: u32) -> Result<bool, Failure> {
        let first = self.nodes[operator as usize].chain;
        let Some(chain) = first.and_then(|first| self.chains[first as usize].as_mut()) else {
            return Ok(false);
        };
        if operator < chain.first {
            return self.step_source(cx, operator);
        }
        let waits = self.nodes[operator as usize]
            .inputs
            .iter()
            .any(|&edge| self.edges[edge as usize].probe.len(&cx.owner) > 0);
        if cx.hot[operator as usize].flags & !flag::RECORDED != flag::CHAINED || waits {
            chain.is_loose = true;
            return Ok(false);
        }
        cx.hot[operator as usize].left = 1;
        (cx.next, cx.popped) = (NONE, 0);
        if chain.executor.has_input(cx) {
            cx.ready.set(chain.first);
        }
        Ok(true)
    }

    /// The source before a run has its turn: what it sends goes through at once, if nothing hinders that.
    fn step_source(&mut self, cx: &mut Context, source: u32) -> Result<bool, Failure> {
        let Some(chain) = self.chain_of(source) else { return Ok(false) };
        let (first, last) = (chain.first, chain.last);
        let (unmet, flags) = all(cx, source, last);
        if flags & !flag::RECORDED != flag::CHAINED | flag::SOURCE || unmet != 0 || chain.is_loose {
            return Ok(false);
        }
        if !self.is_equipped(cx, first) {
            return Ok(false);
        }
        cx.hot[source as usize].left = 1;
        self.go_through(cx, first, true).map(|()| true)
    }

    /// The run that an operator is in, or at an end of.
    fn chain_of(&self, operator: u32) -> Option<&Chain> {
        self.nodes.get(operator as usize)?.chain.and_then(|first| self.chains[first as usize].as_ref())
    }

    /// Lets the run of an operator go on that was started anew.
    pub(super) fn poke_chain(&mut self, cx: &mut Context, operator: u32) {
        if let Some(chain) = self.chain_of(operator).filter(|chain| chain.executor.has_input(cx)) {
            cx.ready.set(chain.first);
        }
    }

    /// Whether all edges from one to the next are empty, and none of them has anything to do for itself.
    fn is_tight(&self, cx: &Context, chain: &Chain) -> bool {
        (chain.first + 1..=chain.last).all(|operator| {
            let inputs = &self.nodes[operator as usize].inputs;
            inputs.iter().all(|&edge| self.edges[edge as usize].probe.len(&cx.owner) == 0)
        })
    }

    /// One of them failed: those up to it were stepped.
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

    pub(super) fn count_failed(&mut self, first: u32, failed: u32) {
        self.bring_up(first);
        let Some(chain) = &mut self.chains[first as usize] else { return };
        chain.left = 1;
        if failed < chain.first || failed > chain.last {
            // The steps of the ends are counted with the pass.
            return;
        }
        chain.carried.iter_mut().take((failed - first) as usize).for_each(|carried| *carried += 1);
        for operator in first..=failed {
            self.meters[operator as usize].add(1);
        }
    }

    /// The operator whose code is under way, or was when it panicked. While chunks are changed in a pass the slot alone says that.
    pub fn in_code(&self, cx: &Context) -> u32 {
        let shown = self.slot.within() & within::OPERATOR;
        let chain = self.chains.iter().flatten().find(|chain| chain.in_pass.is_some());
        match chain.is_some_and(|chain| (chain.source..=chain.sink).contains(&shown)) {
            true => shown,
            false => cx.current,
        }
    }

    /// An operator has panicked, in a run or not.
    #[cold]
    pub(super) fn note_panic(&mut self, operator: u32) {
        let Some(first) = self.nodes.get(operator as usize).and_then(|node| node.chain) else { return };
        if let Some(chain) = self.chains[first as usize].as_mut().filter(|chain| chain.in_pass.is_some()) {
            let behind = operator > chain.last;
            chain.direct.count(chain.whole, operator >= chain.first, behind);
            chain.pass_ended(behind, behind);
            self.count_failed(first, operator);
        }
    }

    /// Counts what went through for each of them.
    pub(super) fn bring_up(&mut self, first: u32) {
        let Some(chain) = &mut self.chains[first as usize] else { return };
        let passes = std::mem::take(&mut chain.passes);
        for (end, steps) in [(chain.source, &mut chain.begun), (chain.sink, &mut chain.ended)] {
            self.meters[end as usize].add(std::mem::take(steps));
        }
        if passes > 0 {
            for operator in chain.first..=chain.last {
                self.meters[operator as usize].add(passes);
            }
            chain.carried.iter_mut().for_each(|carried| *carried += passes);
        }
    }

    /// Steps of an operator that it made in a run and that are not counted yet.
    pub fn passes(&self, operator: u32) -> u64 {
        self.chain_of(operator).map_or(0, |chain| match operator {
            _ if operator < chain.first => chain.begun,
            _ if operator > chain.last => chain.ended,
            _ => chain.passes,
        })
    }

    /// Messages that went from one operator of a run to the next without lying in the queue between them, by number of the latter.
    pub fn carried(&self, to: u32) -> u64 {
        self.chain_of(to).map_or(0, |chain| match to {
            _ if to < chain.first => 0,
            _ if to == chain.first => chain.direct.from_source,
            _ if to > chain.last => chain.direct.to_sink,
            _ => chain.passes + chain.carried[(to - chain.first - 1) as usize],
        })
    }
}

/// What is not met, and what is flagged, for any of several.
#[inline]
fn all(cx: &Context, first: u32, last: u32) -> (u32, u32) {
    let all = &cx.hot[first as usize..=last as usize];
    all.iter().fold((0, 0), |(unmet, flags), hot| (unmet | hot.unmet, flags | hot.flags))
}

/// One of them may not be stepped, so none is: the one that is let go on lets the first one do so.
#[cold]
fn hold_chain(cx: &mut Context, first: u32, last: u32) {
    for operator in first..=last {
        let unmet = cx.hot[operator as usize].unmet;
        if unmet != 0 && unmet < DONE && cx.held[operator as usize] == Hold::No {
            cx.held[operator as usize] = Hold::Ready;
        }
    }
}
