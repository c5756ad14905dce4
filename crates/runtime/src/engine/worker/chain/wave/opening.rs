//! Opens a wave of a chain whose worker belongs to a pool, and handles its outcome.

use super::{StageFailure, WaveChoice, WaveOutcome, WaveRequest, WaveState};
use crate::base::slot::PartSlot;
use crate::engine::control::Control;
use crate::engine::worker::chain::Chain;
use crate::engine::worker::{Failure, Meter, Worker, WorkerPool};
use crate::operator::context::{Context, NONE, flag};
use onbeat_os::clock::monotonic_ns;
use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::Arc;

/// How long a wave lasts, as its policy and the run say.
#[derive(Clone, Copy)]
struct WaveLimits {
    /// Most messages that this thread carries.
    most: u64,
    /// Messages from one reading of the clock to the next.
    between: u64,
    /// End of the run's sources on the real clock, if they have one.
    end_ns: Option<u64>,
}

impl Worker {
    /// Starts the measurements of all waves again. Called when the worker has nothing to do, or another part
    /// gets its thread: that time does not belong to the chains.
    pub fn reset_waves(&mut self) {
        let policies = self.chains.iter_mut().flatten().filter_map(|chain| chain.policy.as_mut());
        policies.for_each(|policy| policy.reset());
    }

    /// Whether the policy of the chain, whose source has its turn, should choose between a wave and a pass
    /// now.
    #[inline]
    pub(in crate::engine::worker) fn wants_wave(&mut self, cx: &Context, first: u32) -> bool {
        let Some(chain) = &mut self.chains[first as usize] else { return false };
        if chain.policy.as_mut().is_none_or(|policy| policy.goes_alone()) {
            return false;
        }
        let (source, sink) = (chain.source, &cx.hot[chain.sink as usize]);
        // No other operator waits for a step here, and the sink takes all messages.
        cx.turn.is_only(source) && cx.ready.is_empty() && sink.unmet == 0 && sink.flags & flag::SLOW == 0
    }

    /// Lets the policy of a chain choose, and opens a wave or makes a pass. The source has its turn.
    #[inline(never)]
    pub(in crate::engine::worker) fn open_wave(
        &mut self,
        cx: &mut Context,
        first: u32,
    ) -> Result<(), Failure> {
        let Some(chain) = &mut self.chains[first as usize] else { return Ok(()) };
        let source = chain.source;
        let begin_ns = cx.clock.real_ns();
        let begun = self.meters[source as usize].steps_so_far() + chain.begun;
        let Some(policy) = &mut chain.policy else { return Ok(()) };
        let costs = self.meters[source as usize..=chain.sink as usize].iter().map(Meter::mean_ns);
        let WaveChoice::Wave { most, calls, between } = policy.choose(begin_ns, begun) else {
            // This pass was counted down already.
            chain.left += 1;
            return self.go_through(cx, first, true);
        };
        policy.cut(costs);
        let Some(pool) = self.pool.clone() else { return Ok(()) };
        // Taken out, as the wave borrows both the worker and the policy's stages.
        let Some(mut policy) = chain.policy.take() else { return Ok(()) };
        if calls {
            pool.call_others(pool.place());
        }
        let end_ns =
            self.stop.end_ns.filter(|_| !self.stop.is_stopping).map(|end_ns| cx.clock.to_real(end_ns));
        let outcome = self.lend(cx, first, policy.stages(), &pool, WaveLimits { most, between, end_ns });
        if pool.others_wait() || pool.has_due(monotonic_ns) {
            self.turns.picks_left = 1;
        }
        let end_ns = cx.clock.real_ns();
        let Some(chain) = &mut self.chains[first as usize] else { return Ok(()) };
        chain.in_pass = None;
        (self.turns.on_turn, self.turns.unpolled) = (NONE, 0);
        if let Some(outcome) = &outcome {
            policy.wave_ended(begin_ns, end_ns, outcome.whole, outcome.by_others);
        }
        if outcome.as_ref().is_none_or(|outcome| !outcome.is_usual) {
            policy.back_off();
        }
        chain.policy = Some(policy);
        let Some(outcome) = outcome else { return Ok(()) };
        chain.count_wave(&outcome);
        let passes = u32::try_from(outcome.begun).unwrap_or(u32::MAX);
        chain.left = chain.left.saturating_sub(passes).max(1);
        match outcome.failed {
            None => Ok(()),
            Some(failure) => self.fail_wave(cx, first, failure),
        }
    }

    /// Lends the operators of the chain to a wave, until it has closed.
    fn lend(
        &mut self,
        cx: &mut Context,
        first: u32,
        stages: &[usize],
        pool: &WorkerPool,
        limits: WaveLimits,
    ) -> Option<WaveOutcome> {
        let (control, inbox, slot) =
            (Arc::clone(&self.control), Arc::clone(self.seat.inbox()), Arc::clone(&self.slot));
        let is_stopping = self.stop.is_stopping;
        let own = slot.worker();
        let WaveLimits { most, between, end_ns } = limits;
        // The end of the run is checked, but not between any two messages.
        let checks_at = Cell::new(between);
        let request = WaveRequest {
            stages,
            place: pool.place(),
            most,
            at_once: usize::try_from(between).unwrap_or(usize::MAX).max(1),
            leaves: &|messages| {
                if messages >= checks_at.get() {
                    checks_at.set(messages + between);
                    if end_ns.is_some_and(|end_ns| monotonic_ns() >= end_ns) {
                        return true;
                    }
                }
                let has_news = !inbox.is_empty() || control.is_stop_requested() && !is_stopping;
                has_news || pool.others_wait() || pool.has_due(monotonic_ns)
            },
            waits: &|at| show_awaited(&slot, own, at, pool, &control),
        };
        let chain = self.chains[first as usize].as_mut()?;
        let (before, rest) = self.operators.split_at_mut(first as usize);
        let (inside, after) = rest.split_at_mut((chain.last - first) as usize + 1);
        chain.in_pass = Some((true, true));
        let mut state = WaveState {
            source: before.last_mut()?,
            inside,
            sink: after.first_mut()?,
            numbers: [chain.source, first],
            node: &mut self.nodes[chain.source as usize],
            slot: &self.slot,
        };
        chain.executor.run_wave(cx, &mut state, &request)
    }

    /// Handles the failure of an operator in a wave, like a failure in a pass.
    fn fail_wave(&mut self, cx: &mut Context, first: u32, failure: StageFailure) -> Result<(), Failure> {
        match failure {
            StageFailure::Error(operator, error) if !self.is_inside(first, operator) => {
                cx.current = operator;
                Err(Failure::Operator(operator, error))
            }
            StageFailure::Error(operator, error) => {
                let through = (operator - first) as usize;
                Err(self.fail_chain(cx, first, through, error))
            }
            StageFailure::Panic(operator, panic) => {
                self.count_failed(first, operator);
                cx.current = operator;
                self.slot.enter(operator);
                resume_unwind(panic)
            }
        }
    }

    /// Whether an operator is inside the chain that begins with `first`, not at its ends.
    fn is_inside(&self, first: u32, operator: u32) -> bool {
        let is_inside = |chain: &Chain| (chain.first..=chain.last).contains(&operator);
        self.chains[first as usize].as_ref().is_some_and(is_inside)
    }
}

/// Shows in this part's slot for which thread it waits and in which operator that is, so that a hang is
/// reported there; restores the slot after the wait (`None`). Returns whether that thread does not return.
fn show_awaited(
    slot: &PartSlot,
    own: usize,
    at: Option<(usize, u32)>,
    pool: &WorkerPool,
    control: &Control,
) -> bool {
    let Some((other, operator)) = at else {
        slot.exit();
        slot.set_worker(own);
        return false;
    };
    slot.set_worker(pool.workers[other]);
    slot.enter(operator);
    control.barrier.is_given_up(pool.workers[other])
}
