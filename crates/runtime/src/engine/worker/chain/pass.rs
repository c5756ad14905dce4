//! Chunks go through a run: from the source that makes them, where that is run along, to the sink that takes them.
//!
//! The ends are stepped as they are elsewhere, and what they send and take goes over the edges that are there, or from hand to hand where
//! they can do that (see [`Operator::fill`](crate::Operator::fill)). What is saved is all that lies between two steps. What is out of the
//! ordinary about an end is followed up as everywhere; then it is stepped by itself, and a pass has one end less.

use super::Executor;
use super::poll::Poller;
use super::state::{Batch, PassOutcome, PassState};
use crate::engine::worker::{Failure, Meter, Worker};
use crate::operator::Step;
use crate::operator::context::{Context, NONE, flag};
use crate::operator::inline::Inline;
use crate::operator::message::NO_DUE;
use crate::plan::CHAIN_MOST;
use std::ops::Range;

/// Most passes in a row with looks at what is told from outside: so long what went through is not counted yet. (Measured: to begin anew
/// takes 60 ns and some lines of cache.)
const SEEING: u32 = 1023;

impl Worker {
    /// Lets chunks through the run that begins with `first`: one, or several where nobody else waits for a turn, until it is time to look
    /// around.
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
            return self.lend(cx, first);
        }
        let Some(chain) = &mut self.chains[first as usize] else { return Ok(()) };
        let left = chain.left - 1;
        let may_go_on = !from_source || cx.turn.is_only(source) && cx.ready.is_empty();
        let more = if may_go_on && !(self.pool.is_some() && self.heavy) {
            let blind = if from_source { self.blind } else { left };
            let turns = if self.pool.is_some() { self.turns } else { left };
            // What others write on edges to and from here is looked at elsewhere.
            let sees_all = from_source && self.watched.is_empty() && cx.waiting.full.is_empty();
            let until_asked =
                chain.policy.as_ref().map_or(SEEING, |policy| policy.passes_alone().min(SEEING));
            Batch {
                unpolled: left.min(blind).min(turns),
                polled: if sees_all { left.min(until_asked) } else { 0 },
            }
        } else {
            Batch::NONE
        };
        let (came, more) = self.pass(cx, first, from_source, more, None);
        // Each of them is a turn.
        if let Some(chain) = &mut self.chains[first as usize] {
            chain.left = (chain.left - more).max(1);
            if let Some(policy) = &mut chain.policy {
                policy.went(more);
            }
        }
        if from_source {
            self.blind = self.blind.saturating_sub(more);
        }
        self.turns -= more.min(self.turns.saturating_sub(1));
        if from_source && !matches!(came, PassOutcome::FromSource(_)) {
            self.on_turn = NONE;
        }
        let came = self.follow_up(cx, first, came, None)?;
        self.track_end(cx, first, &came);
        Ok(())
    }

    /// One pass, and so many more as `more` says: see [`Carry::pass`](crate::engine::carry::Carry::pass). Says also how many more these were.
    #[inline]
    fn pass(
        &mut self,
        cx: &mut Context,
        first: u32,
        from_source: bool,
        more: Batch,
        times_ns: Option<&mut [u64]>,
    ) -> (PassOutcome, u32) {
        let mut inlined = [const { None }; CHAIN_MOST];
        let Some((mut state, executor)) = self.pass_state(cx, first, from_source, &mut inlined) else {
            return (PassOutcome::Nowhere, 0);
        };
        let came = executor.pass(cx, &mut state, more, times_ns);
        let to_sink = matches!(came, PassOutcome::ToSink(_));
        let mut whole = 0;
        if let Some(chain) = &mut self.chains[first as usize] {
            let (before, waits) = chain.pass_ended(to_sink || matches!(came, PassOutcome::Through), to_sink);
            whole = before;
            if waits && !to_sink && chain.sink != cx.next {
                cx.ready.set(chain.sink);
            }
        }
        (came, whole as u32)
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
        let chain = self.chains[first as usize].as_mut()?;
        let (before, rest) = self.operators.split_at_mut(first as usize);
        let (inside, behind) = rest.split_at_mut((chain.last - first) as usize + 1);
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
            sink: behind.first_mut().filter(|_| to_sink),
            numbers: [chain.source, first, chain.sink],
            rewriting: chain.rewriting,
            node: &mut self.nodes[chain.source as usize],
            slot: &self.slot,
            poller: Poller::new(
                (&self.seat, self.pool.as_deref(), &self.control),
                alarm_ns,
                (self.stopping, self.long != 0),
                &mut chain.poll_rate,
            ),
            whole: &mut chain.whole,
            partial: has_turns.then_some(&mut chain.partial),
            direct: &mut chain.direct,
        };
        Some((state, &mut chain.executor))
    }

    /// What follows the last step of a pass, and how far that came in the end: a message of a source that wants something else than
    /// another turn goes on after that was done.
    #[inline]
    fn follow_up(
        &mut self,
        cx: &mut Context,
        first: u32,
        came: PassOutcome,
        times_ns: Option<&mut [u64]>,
    ) -> Result<PassOutcome, Failure> {
        match came {
            PassOutcome::ToSink(Ok(Step::Wait)) if cx.next == NONE => Ok(came),
            PassOutcome::Through | PassOutcome::Nowhere => Ok(came),
            came => self.follow_up_other(cx, first, came, times_ns),
        }
    }

    #[inline(never)]
    fn follow_up_other(
        &mut self,
        cx: &mut Context,
        first: u32,
        came: PassOutcome,
        times_ns: Option<&mut [u64]>,
    ) -> Result<PassOutcome, Failure> {
        let Some(chain) = &mut self.chains[first as usize] else { return Ok(came) };
        let (source, sink) = (chain.source, chain.sink);
        match came {
            PassOutcome::FromSource(outcome) => {
                let is_done = matches!(outcome, Ok(Step::Done));
                self.after(cx, source, outcome)?;
                let flags = cx.hot[first as usize].flags;
                if is_done || cx.next != first || flags & !flag::RECORDED != flag::CHAINED {
                    return Ok(PassOutcome::FromSource(Ok(Step::Wait)));
                }
                if !self.is_equipped(cx, first) {
                    return Ok(PassOutcome::FromSource(Ok(Step::Wait)));
                }
                let (came, _) = self.pass(cx, first, false, Batch::NONE, times_ns);
                self.follow_up(cx, first, came, None)
            }
            PassOutcome::Failed(through, error) => Err(self.fail_chain(cx, first, through, error)),
            PassOutcome::ToSink(outcome) => {
                self.after(cx, sink, outcome)?;
                Ok(PassOutcome::ToSink(Ok(Step::Wait)))
            }
            came => Ok(came),
        }
    }

    /// Where a path ends with the sink, and a pass came to it.
    #[inline(always)]
    fn track_end(&mut self, cx: &mut Context, first: u32, came: &PassOutcome) {
        if (cx.stamp.due_ns != NO_DUE || !cx.joining.earlier.is_empty())
            && matches!(came, PassOutcome::ToSink(_))
        {
            let Some(sink) = self.chains[first as usize].as_ref().map(|chain| chain.sink) else { return };
            if cx.hot[sink as usize].flags & flag::END != 0 {
                self.track(cx, sink);
            }
        }
    }

    /// A pass with a look at the clock between any two steps.
    #[inline(never)]
    fn pass_timed(&mut self, cx: &mut Context, first: u32, from_source: bool) -> Result<(), Failure> {
        let begin_ns = self.step_begins(cx);
        let Some(chain) = &mut self.chains[first as usize] else { return Ok(()) };
        chain.left = 1;
        let (source, last, sink) = (chain.source, chain.last, chain.sink);
        let mut times_ns = [0; CHAIN_MOST];
        let (begin, inside) = if from_source { (source, 1) } else { (first, 0) };
        if from_source {
            self.begin_turn(cx, source);
            self.follow(cx, source, begin_ns);
        }
        let (came, _) = self.pass(cx, first, from_source, Batch::NONE, Some(&mut times_ns[inside..]));
        if from_source && !matches!(came, PassOutcome::FromSource(_)) {
            self.on_turn = NONE;
        }
        let mut end_ns = cx.now_ns();
        let source_end_ns = end_ns;
        let was_from_source = matches!(came, PassOutcome::FromSource(_));
        let came = self.follow_up(cx, first, came, Some(&mut times_ns[inside..]))?;
        if was_from_source {
            end_ns = cx.now_ns();
        }
        let (reached, end_ns) = match came {
            PassOutcome::Nowhere => return Ok(()),
            PassOutcome::FromSource(_) => (source, source_end_ns),
            PassOutcome::Failed(..) | PassOutcome::Through => (last, end_ns),
            PassOutcome::ToSink(_) => (sink, end_ns),
        };
        self.bring_up(first);
        // What comes before the first of them is its own, and what comes after the last one's too.
        times_ns[0] = begin_ns;
        let begins_ns = &times_ns[..(reached - begin + 1) as usize];
        let is_exact = self.is_exact(cx, begin, reached, (begin_ns, end_ns));
        for (operator, at) in (begin..).zip(each(begins_ns, end_ns)) {
            self.note_step_of(cx, operator, at, is_exact);
        }
        let left = if is_exact { 1 } else { self.passes_until_timed(begin, reached) };
        if let Some(chain) = &mut self.chains[first as usize] {
            chain.left = left;
        }
        self.look_around(cx, end_ns);
        self.track_end(cx, first, &came);
        Ok(())
    }

    /// Passes through these until one is timed, so that this costs less than 1 % of what they take.
    fn passes_until_timed(&mut self, begin: u32, reached: u32) -> u32 {
        let meters = &mut self.meters[begin as usize..=reached as usize];
        let sum = |of: fn(&Meter) -> u64| meters.iter().map(of).sum();
        let (cost_ns, mean_ns) = (sum(Meter::cost_ns), sum(Meter::mean_ns));
        meters[0].passes(cost_ns, mean_ns)
    }
}

/// From when to when each of several had its turn, given when they began and when the last one ended.
fn each(begins_ns: &[u64], end_ns: u64) -> impl Iterator<Item = Range<u64>> {
    let ends_ns = begins_ns.iter().skip(1).copied().chain([end_ns]);
    begins_ns.iter().zip(ends_ns).map(|(&begin_ns, end_ns)| begin_ns..end_ns.max(begin_ns))
}
