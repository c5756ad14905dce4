//! A run goes in waves where others of the pool have time: see [`wave`](crate::engine::wave).

use super::{Failure, Meter, Worker};
use crate::engine::wave::{Failed, Ride, Todo};
use crate::operator::context::{Context, NONE, flag};
use onbeat_os::clock::monotonic_ns;
use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::Arc;

impl Worker {
    /// It has nothing to do, or somebody else gets its thread: that is no part of what a run takes by itself.
    pub fn breaks(&mut self) {
        let tides = self.runs.iter_mut().flatten().filter_map(|run| run.tide.as_mut());
        tides.for_each(|tide| tide.breaks());
    }

    /// Whether the run, whose source has its turn, is to go in a wave now.
    #[inline]
    pub(super) fn is_high_tide(&mut self, cx: &Context, first: u32) -> bool {
        let Some(run) = &mut self.runs[first as usize] else { return false };
        if run.tide.as_mut().is_none_or(|tide| tide.is_low()) {
            return false;
        }
        let (source, sink) = (run.source, &cx.hot[run.sink as usize]);
        // Nobody else waits for a turn here, and the sink takes what comes.
        cx.turn.is_only(source) && cx.ready.is_empty() && sink.unmet == 0 && sink.flags & flag::SLOW == 0
    }

    /// The source has its turn: what there is to do now is asked, and done.
    #[inline(never)]
    pub(super) fn ride(&mut self, cx: &mut Context, first: u32) -> Result<(), Failure> {
        let Some(run) = &mut self.runs[first as usize] else { return Ok(()) };
        let source = run.source;
        let begin_ns = cx.clock.real_ns();
        let begun = self.meters[source as usize].steps_so_far() + run.begun;
        let Some(tide) = &mut run.tide else { return Ok(()) };
        let costs = self.meters[source as usize..=run.sink as usize].iter().map(Meter::mean_ns);
        let todo = tide.todo(begin_ns, begun);
        let Todo::Ride { most, calls, between } = todo else {
            // As it would have been without the question.
            run.left += 1;
            return self.go_through(cx, first, true);
        };
        tide.cut(costs);
        let Some(pool) = self.seat.pool.clone() else { return Ok(()) };
        // Out of the way while the worker lends what is in its hands.
        let Some(mut tide) = run.tide.take() else { return Ok(()) };
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
        let ride = Ride {
            legs: tide.legs(),
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
        let rode =
            self.way(cx, first, true).and_then(|(mut way, carrier)| carrier.0.ride(cx, &mut way, &ride));
        if pool.others_wait() || pool.has_due(monotonic_ns) {
            self.turns = 1;
        }
        let end_ns = cx.clock.real_ns();
        let Some(run) = &mut self.runs[first as usize] else { return Ok(()) };
        run.in_pass = None;
        (self.on_turn, self.blind) = (NONE, 0);
        if let Some(rode) = &rode {
            tide.rode(begin_ns, end_ns, rode.whole, rode.by_others);
        }
        if rode.as_ref().is_none_or(|rode| !rode.is_usual) {
            tide.ebbs();
        }
        run.tide = Some(tide);
        let Some(rode) = rode else { return Ok(()) };
        run.rode(&rode);
        let took = u32::try_from(rode.begun).unwrap_or(u32::MAX);
        run.left = run.left.saturating_sub(took).max(1);
        match rode.failed {
            None => Ok(()),
            Some(Failed::Error(operator, error)) if operator < run.first || operator > run.last => {
                cx.current = operator;
                Err(Failure::Operator(operator, error))
            }
            Some(Failed::Error(operator, error)) => {
                let through = (operator - first) as usize;
                Err(self.fail_run(cx, first, through, error))
            }
            Some(Failed::Panic(operator, panic)) => {
                self.count_failed(first, operator);
                cx.current = operator;
                self.slot.enter(operator);
                resume_unwind(panic)
            }
        }
    }
}
