//! Passes of chunks through a chain: from its source, if it has one, to its sink.
//!
//! The ends are stepped as elsewhere. Their chunks go over the edges, or by direct hand-over if both ends can
//! do that (see [`Inline::fill`]). A pass saves everything that the loop does between two steps. Unusual
//! results of an end are handled as elsewhere; then the end is stepped on its own, and passes have one end
//! less.

use super::Executor;
use super::poll::ChainPoller;
use super::state::{PassBatch, PassOutcome, PassState};
use crate::engine::worker::{Failure, Meter, Worker};
use crate::operator::Step;
use crate::operator::context::{Context, DONE, Hold, NONE, flag};
use crate::operator::inline::Inline;
use crate::operator::message::NO_DUE;
use crate::plan::CHAIN_MOST;
use std::ops::Range;

/// Most passes in a batch with polls; its passes are counted only afterwards. (Measured: to begin a batch
/// takes 60 ns and some cache lines.)
const POLLED_PASSES: u32 = 1023;

impl Worker {
    /// Makes a step of the chain of this operator, if possible. False if the operator must be stepped on its
    /// own.
    #[inline]
    pub(in crate::engine::worker) fn step_chain(
        &mut self,
        cx: &mut Context,
        operator: u32,
    ) -> Result<bool, Failure> {
        let Some(chain) = &mut self.chains[operator as usize] else {
            return self.step_member(cx, operator);
        };
        let (first, last) = (chain.first, chain.last);
        let (unmet, flags) = combined(cx, first, last);
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
        if !self.equip_chain(cx, first) {
            return Ok(false);
        }
        self.go_through(cx, first, false).map(|()| true)
    }

    /// Gets a spare chunk if operators inside write other chunks. False if there is none: then they are
    /// stepped one by one, and each waits for a chunk.
    #[inline]
    pub(super) fn equip_chain(&mut self, cx: &Context, first: u32) -> bool {
        let Some(chain) = &mut self.chains[first as usize] else { return false };
        let is_equipped = chain.rewriting == 0 || chain.executor.equip(cx);
        chain.is_loose |= !is_equipped;
        is_equipped
    }

    /// [`step_chain`](Self::step_chain) if something was, or is, unusual.
    #[cold]
    fn step_loose(&mut self, cx: &mut Context, first: u32, flags: u32) -> Result<bool, Failure> {
        let is_tight = flags & !flag::RECORDED == flag::CHAINED
            && self.chains[first as usize].as_ref().is_some_and(|chain| self.is_tight(cx, chain));
        if let Some(chain) = &mut self.chains[first as usize] {
            chain.is_loose = !is_tight;
        }
        if is_tight { self.step_chain(cx, first) } else { Ok(false) }
    }

    /// [`step_chain`](Self::step_chain) if the source has its turn, or an operator inside other than the
    /// first is ready. If no message is queued before that operator, it is ready because a condition of the
    /// whole chain holds again.
    fn step_member(&mut self, cx: &mut Context, operator: u32) -> Result<bool, Failure> {
        let first = self.nodes[operator as usize].chain;
        let Some(chain) = first.and_then(|first| self.chains[first as usize].as_mut()) else {
            return Ok(false);
        };
        if operator < chain.first {
            return self.step_source(cx, operator);
        }
        let has_message = self.nodes[operator as usize]
            .inputs
            .iter()
            .any(|&edge| self.edges[edge as usize].probe.len(&cx.owner) > 0);
        if cx.hot[operator as usize].flags & !flag::RECORDED != flag::CHAINED || has_message {
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

    /// Takes the next message of the source, which has its turn, through the chain, if possible.
    fn step_source(&mut self, cx: &mut Context, source: u32) -> Result<bool, Failure> {
        let Some(chain) = self.chain_of(source) else { return Ok(false) };
        let (first, last) = (chain.first, chain.last);
        let (unmet, flags) = combined(cx, source, last);
        if flags & !flag::RECORDED != flag::CHAINED | flag::SOURCE || unmet != 0 || chain.is_loose {
            return Ok(false);
        }
        if !self.equip_chain(cx, first) {
            return Ok(false);
        }
        cx.hot[source as usize].left = 1;
        self.go_through(cx, first, true).map(|()| true)
    }

    /// Takes chunks through the chain that begins with `first`: one, or a batch until the next poll if no
    /// other operator waits.
    #[inline]
    pub(super) fn go_through(
        &mut self,
        cx: &mut Context,
        first: u32,
        from_source: bool,
    ) -> Result<(), Failure> {
        let Some(chain) = &mut self.chains[first as usize] else { return Ok(()) };
        let source = chain.source;
        chain.left -= 1;
        if chain.left == 0 {
            return self.pass_timed(cx, first, from_source);
        }
        if from_source && chain.policy.is_some() && self.wants_wave(cx, first) {
            return self.open_wave(cx, first);
        }
        let Some(chain) = &mut self.chains[first as usize] else { return Ok(()) };
        let left = chain.left - 1;
        let may_go_on = !from_source || cx.turn.is_only(source) && cx.ready.is_empty();
        let batch = if may_go_on && !(self.pool.is_some() && self.turns.is_heavy) {
            let unpolled = if from_source { self.turns.unpolled } else { left };
            let picks = if self.pool.is_some() { self.turns.picks_left } else { left };
            // Full and watched edges are polled elsewhere.
            let may_poll = from_source && self.waiting.watched.is_empty() && cx.waiting.full.is_empty();
            let until_wave = chain
                .policy
                .as_ref()
                .map_or(POLLED_PASSES, |policy| policy.passes_alone().min(POLLED_PASSES));
            PassBatch {
                unpolled: left.min(unpolled).min(picks),
                polled: if may_poll { left.min(until_wave) } else { 0 },
            }
        } else {
            PassBatch::NONE
        };
        let (outcome, further) = self.pass(cx, first, from_source, batch, None);
        // Each further pass is a turn.
        if let Some(chain) = &mut self.chains[first as usize] {
            chain.left = (chain.left - further).max(1);
            if let Some(policy) = &mut chain.policy {
                policy.count_alone(further);
            }
        }
        if from_source {
            self.turns.unpolled = self.turns.unpolled.saturating_sub(further);
        }
        self.turns.picks_left -= further.min(self.turns.picks_left.saturating_sub(1));
        if from_source && !matches!(outcome, PassOutcome::FromSource(_)) {
            self.turns.on_turn = NONE;
        }
        let outcome = self.follow_up(cx, first, outcome, None)?;
        self.track_sink(cx, first, &outcome);
        Ok(())
    }

    /// Makes one pass, and as many more as `batch` allows: see [`Executor::pass`]. Also returns the number of
    /// further passes.
    #[inline]
    fn pass(
        &mut self,
        cx: &mut Context,
        first: u32,
        from_source: bool,
        batch: PassBatch,
        times_ns: Option<&mut [u64]>,
    ) -> (PassOutcome, u32) {
        let mut inlined = [const { None }; CHAIN_MOST];
        let Some((mut state, executor)) = self.pass_state(cx, first, from_source, &mut inlined) else {
            return (PassOutcome::Nowhere, 0);
        };
        let outcome = executor.pass(cx, &mut state, batch, times_ns);
        let to_sink = matches!(outcome, PassOutcome::ToSink(_));
        let mut whole = 0;
        if let Some(chain) = &mut self.chains[first as usize] {
            let (before, is_queued) =
                chain.count_batch(to_sink || matches!(outcome, PassOutcome::Through), to_sink);
            whole = before;
            if is_queued && !to_sink && chain.sink != cx.next {
                cx.ready.set(chain.sink);
            }
        }
        (outcome, whole as u32)
    }

    /// Borrows what a pass works on, and the executor of the chain.
    #[inline(always)]
    fn pass_state<'w>(
        &'w mut self,
        cx: &Context,
        first: u32,
        from_source: bool,
        inlined: &'w mut [Option<&'w mut dyn Inline>; CHAIN_MOST],
    ) -> Option<(PassState<'w>, &'w mut Executor)> {
        let alarm_ns = self.alarm_ns();
        // A pass ends in time for a look.
        let look_ns = self.seat.descriptors.next_look_ns().and_then(|look_ns| cx.clock.of_real(look_ns));
        let alarm_ns = [alarm_ns, look_ns].into_iter().flatten().min();
        let chain = self.chains[first as usize].as_mut()?;
        let (before, rest) = self.operators.split_at_mut(first as usize);
        let (inside, after) = rest.split_at_mut((chain.last - first) as usize + 1);
        let hot = &cx.hot[chain.sink as usize];
        let to_sink = chain.sink > chain.last && hot.unmet == 0 && hot.flags & flag::SLOW == 0;
        chain.in_pass = Some((from_source, to_sink));
        let has_turns = to_sink && self.nodes[chain.sink as usize].has_turns;
        let inlined = &mut inlined[..inside.len()];
        for (inline, operator) in inlined.iter_mut().zip(inside) {
            *inline = operator.inline();
        }
        let state = PassState {
            source: before.last_mut().filter(|_| from_source),
            inside: inlined,
            sink: after.first_mut().filter(|_| to_sink),
            numbers: [chain.source, first, chain.sink],
            rewriting: chain.rewriting,
            node: &mut self.nodes[chain.source as usize],
            slot: &self.slot,
            poller: ChainPoller::new(
                (&self.seat, self.pool.as_deref(), &self.control),
                alarm_ns,
                (self.stop.is_stopping, self.turns.long_steps != 0),
                &mut chain.poll_rate,
            ),
            whole: &mut chain.whole,
            partial: has_turns.then_some(&mut chain.partial),
            direct: &mut chain.direct,
        };
        Some((state, &mut chain.executor))
    }

    /// Acts on the outcome of a pass, and returns how far it came in the end. If the source returned anything
    /// but `Again`, that is handled first; then its message continues.
    #[inline]
    fn follow_up(
        &mut self,
        cx: &mut Context,
        first: u32,
        outcome: PassOutcome,
        times_ns: Option<&mut [u64]>,
    ) -> Result<PassOutcome, Failure> {
        match outcome {
            PassOutcome::ToSink(Ok(Step::Wait)) if cx.next == NONE => Ok(outcome),
            PassOutcome::Through | PassOutcome::Nowhere => Ok(outcome),
            outcome => self.follow_up_unusual(cx, first, outcome, times_ns),
        }
    }

    #[inline(never)]
    fn follow_up_unusual(
        &mut self,
        cx: &mut Context,
        first: u32,
        outcome: PassOutcome,
        times_ns: Option<&mut [u64]>,
    ) -> Result<PassOutcome, Failure> {
        let Some(chain) = &mut self.chains[first as usize] else { return Ok(outcome) };
        let (source, sink) = (chain.source, chain.sink);
        match outcome {
            PassOutcome::FromSource(outcome) => {
                let is_done = matches!(outcome, Ok(Step::Done));
                self.after_step(cx, source, outcome)?;
                let flags = cx.hot[first as usize].flags;
                if is_done || cx.next != first || flags & !flag::RECORDED != flag::CHAINED {
                    return Ok(PassOutcome::FromSource(Ok(Step::Wait)));
                }
                if !self.equip_chain(cx, first) {
                    return Ok(PassOutcome::FromSource(Ok(Step::Wait)));
                }
                let (outcome, _) = self.pass(cx, first, false, PassBatch::NONE, times_ns);
                self.follow_up(cx, first, outcome, None)
            }
            PassOutcome::Failed(through, error) => Err(self.fail_chain(cx, first, through, error)),
            PassOutcome::ToSink(outcome) => {
                self.after_step(cx, sink, outcome)?;
                Ok(PassOutcome::ToSink(Ok(Step::Wait)))
            }
            outcome => Ok(outcome),
        }
    }

    /// Notes the end of a path with the sink, if a pass reached it.
    #[inline(always)]
    fn track_sink(&mut self, cx: &mut Context, first: u32, outcome: &PassOutcome) {
        if (cx.stamp.due_ns != NO_DUE || !cx.joining.earlier.is_empty())
            && matches!(outcome, PassOutcome::ToSink(_))
        {
            let Some(sink) = self.chains[first as usize].as_ref().map(|chain| chain.sink) else { return };
            if cx.hot[sink as usize].flags & flag::END != 0 {
                self.track(cx, sink);
            }
        }
    }

    /// Makes a pass that reads the clock between any two steps.
    #[inline(never)]
    fn pass_timed(&mut self, cx: &mut Context, first: u32, from_source: bool) -> Result<(), Failure> {
        let begin_ns = self.step_begin_ns(cx);
        let Some(chain) = &mut self.chains[first as usize] else { return Ok(()) };
        chain.left = 1;
        let (source, last, sink) = (chain.source, chain.last, chain.sink);
        let mut times_ns = [0; CHAIN_MOST];
        let (begin, inside) = if from_source { (source, 1) } else { (first, 0) };
        if from_source {
            self.begin_turn(cx, source);
            self.sample_source(cx, source, begin_ns);
        }
        let (outcome, _) = self.pass(cx, first, from_source, PassBatch::NONE, Some(&mut times_ns[inside..]));
        if from_source && !matches!(outcome, PassOutcome::FromSource(_)) {
            self.turns.on_turn = NONE;
        }
        let mut end_ns = cx.now_ns();
        let source_end_ns = end_ns;
        let was_from_source = matches!(outcome, PassOutcome::FromSource(_));
        let outcome = self.follow_up(cx, first, outcome, Some(&mut times_ns[inside..]))?;
        if was_from_source {
            end_ns = cx.now_ns();
        }
        let (reached, end_ns) = match outcome {
            PassOutcome::Nowhere => return Ok(()),
            PassOutcome::FromSource(_) => (source, source_end_ns),
            PassOutcome::Failed(..) | PassOutcome::Through => (last, end_ns),
            PassOutcome::ToSink(_) => (sink, end_ns),
        };
        self.count_passes(first);
        // The first operator is charged for everything before it, the last one for everything after it.
        times_ns[0] = begin_ns;
        let begins_ns = &times_ns[..(reached - begin + 1) as usize];
        let is_exact = self.is_exact(cx, begin, reached, (begin_ns, end_ns));
        for (operator, at) in (begin..).zip(spans(begins_ns, end_ns)) {
            self.note_timed_step(cx, operator, at, is_exact);
        }
        let left = if is_exact { 1 } else { self.passes_until_timed(begin, reached) };
        if let Some(chain) = &mut self.chains[first as usize] {
            chain.left = left;
        }
        self.poll_after_timed_step(cx, end_ns);
        self.track_sink(cx, first, &outcome);
        Ok(())
    }

    /// Passes until the next timed one, so that timing costs less than 1 % of their time.
    fn passes_until_timed(&mut self, begin: u32, reached: u32) -> u32 {
        let meters = &mut self.meters[begin as usize..=reached as usize];
        let sum = |of: fn(&Meter) -> u64| meters.iter().map(of).sum();
        let (cost_ns, mean_ns) = (sum(Meter::cost_ns), sum(Meter::mean_ns));
        meters[0].passes(cost_ns, mean_ns)
    }
}

/// Begin and end of several steps in a row, given their begins and the end of the last one.
fn spans(begins_ns: &[u64], end_ns: u64) -> impl Iterator<Item = Range<u64>> {
    let ends_ns = begins_ns.iter().skip(1).copied().chain([end_ns]);
    begins_ns.iter().zip(ends_ns).map(|(&begin_ns, end_ns)| begin_ns..end_ns.max(begin_ns))
}

/// Unmet conditions and flags of several operators, combined by OR.
#[inline]
fn combined(cx: &Context, first: u32, last: u32) -> (u32, u32) {
    let all = &cx.hot[first as usize..=last as usize];
    all.iter().fold((0, 0), |(unmet, flags), hot| (unmet | hot.unmet, flags | hot.flags))
}

/// Holds a chain of which an operator may not be stepped. When that operator may be stepped again, the chain
/// continues.
#[cold]
fn hold_chain(cx: &mut Context, first: u32, last: u32) {
    for operator in first..=last {
        let unmet = cx.hot[operator as usize].unmet;
        if unmet != 0 && unmet < DONE && cx.held[operator as usize] == Hold::No {
            cx.held[operator as usize] = Hold::Ready;
        }
    }
}
