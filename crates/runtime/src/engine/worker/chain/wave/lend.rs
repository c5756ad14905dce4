//! A run goes in waves where others of the pool have time: see [`wave`](crate::engine::wave).

use super::{Failed, WaveChoice, WaveOutcome, WaveRequest, WaveState};
use crate::engine::worker::{Failure, Meter, Worker};
use crate::operator::context::{Context, NONE, flag};
use onbeat_os::clock::monotonic_ns;
use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::Arc;

impl Worker {
    /// It has nothing to do, or somebody else gets its thread: that is no part of what a run takes by itself.
    pub fn reset_waves(&mut self) {
        let policies = self.chains.iter_mut().flatten().filter_map(|chain| chain.policy.as_mut());
        policies.for_each(|policy| policy.reset());
    }

    /// Whether the run, whose source has its turn, is to go in a wave now.
    #[inline]
    pub(in crate::engine::worker) fn wants_wave(&mut self, cx: &Context, first: u32) -> bool {
        let Some(chain) = &mut self.chains[first as usize] else { return false };
        if chain.policy.as_mut().is_none_or(|policy| policy.is_low()) {
            return false;
        }
        let (source, sink) = (chain.source, &cx.hot[chain.sink as usize]);
        // Nobody else waits for a turn here, and the sink takes what comes.
        cx.turn.is_only(source) && cx.ready.is_empty() && sink.unmet == 0 && sink.flags & flag::SLOW == 0
    }

    /// The source has its turn: what there is to do now is asked, and done.
    #[inline(never)]
    pub(in crate::engine::worker) fn lend(&mut self, cx: &mut Context, first: u32) -> Result<(), Failure> {
        let Some(chain) = &mut self.chains[first as usize] else { return Ok(()) };
        let source = chain.source;
        let begin_ns = cx.clock.real_ns();
        let begun = self.meters[source as usize].steps_so_far() + chain.begun;
        let Some(policy) = &mut chain.policy else { return Ok(()) };
        let costs = self.meters[source as usize..=chain.sink as usize].iter().map(Meter::mean_ns);
        let todo = policy.todo(begin_ns, begun);
        let WaveChoice::Wave { most, calls, between } = todo else {
            // As it would have been without the question.
            chain.left += 1;
            return self.go_through(cx, first, true);
        };
        policy.cut(costs);
        let Some(pool) = self.pool.clone() else { return Ok(()) };
        // Out of the way while the worker lends what is in its hands.
        let Some(mut policy) = chain.policy.take() else { return Ok(()) };
        let place = pool.place();
        if calls {
            pool.call_others(place);
        }
        let (control, inbox, slot) =
            (Arc::clone(&self.control), Arc::clone(self.seat.inbox()), Arc::clone(&self.slot));
        let is_stopping = self.stopping;
        let own = slot.worker();
        // Where the run has an end it is looked for, but not between any two messages.
        let end_ns = self.end_ns.filter(|_| !is_stopping).map(|end_ns| cx.clock.to_real(end_ns));
        let looks_at = Cell::new(between);
        let request = WaveRequest {
            stages: policy.stages(),
            place,
            most,
            at_once: usize::try_from(between).unwrap_or(usize::MAX).max(1),
            leaves: &|messages| {
                if messages >= looks_at.get() {
                    looks_at.set(messages + between);
                    if end_ns.is_some_and(|end_ns| monotonic_ns() >= end_ns) {
                        return true;
                    }
                }
                let is_told = !inbox.is_empty() || control.stop_asked() && !is_stopping;
                is_told || pool.others_wait() || pool.has_due(monotonic_ns)
            },
            waits: &|at| {
                let Some((other, operator)) = at else {
                    slot.exit();
                    slot.set_worker(own);
                    return false;
                };
                // Who looks whether a step does not return sees that one.
                slot.set_worker(pool.workers[other]);
                slot.enter(operator);
                control.barrier.is_given_up(pool.workers[other])
            },
        };
        let outcome = self.run_wave(cx, first, &request);
        if pool.others_wait() || pool.has_due(monotonic_ns) {
            self.turns = 1;
        }
        let end_ns = cx.clock.real_ns();
        let Some(chain) = &mut self.chains[first as usize] else { return Ok(()) };
        chain.in_pass = None;
        (self.on_turn, self.blind) = (NONE, 0);
        if let Some(outcome) = &outcome {
            policy.ended(begin_ns, end_ns, outcome.whole, outcome.by_others);
        }
        if outcome.as_ref().is_none_or(|outcome| !outcome.is_usual) {
            policy.back_off();
        }
        chain.policy = Some(policy);
        let Some(outcome) = outcome else { return Ok(()) };
        chain.wave_ended(&outcome);
        let took = u32::try_from(outcome.begun).unwrap_or(u32::MAX);
        chain.left = chain.left.saturating_sub(took).max(1);
        match outcome.failed {
            None => Ok(()),
            Some(Failed::Error(operator, error)) if operator < chain.first || operator > chain.last => {
                cx.current = operator;
                Err(Failure::Operator(operator, error))
            }
            Some(Failed::Error(operator, error)) => {
                let through = (operator - first) as usize;
                Err(self.fail_chain(cx, first, through, error))
            }
            Some(Failed::Panic(operator, panic)) => {
                self.count_failed(first, operator);
                cx.current = operator;
                self.slot.enter(operator);
                resume_unwind(panic)
            }
        }
    }

    /// Lends the operators of the chain to a wave.
    fn run_wave(&mut self, cx: &mut Context, first: u32, request: &WaveRequest<'_>) -> Option<WaveOutcome> {
        let chain = self.chains[first as usize].as_mut()?;
        let (before, rest) = self.operators.split_at_mut(first as usize);
        let (inside, behind) = rest.split_at_mut((chain.last - first) as usize + 1);
        chain.in_pass = Some((true, true));
        let mut state = WaveState {
            source: before.last_mut()?,
            inside,
            sink: behind.first_mut()?,
            numbers: [chain.source, first],
            node: &mut self.nodes[chain.source as usize],
            slot: &self.slot,
        };
        chain.executor.lend(cx, &mut state, request)
    }
}
