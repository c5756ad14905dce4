//! Life of a worker's thread: it starts its operators, steps them, stops them, and reports.
//!
//! Between these phases the thread waits for the other workers. So no operator is stepped before all have
//! started, and none is stopped before the outcome of the run is known.

use super::bind::BoundPart;
use super::{pooled, set_up::set_up};
use crate::Error;
use crate::base::idle::Idle;
use crate::base::on_error::Trouble;
use crate::base::panic::panic_text;
use crate::base::slot::within;
use crate::engine::control::{Control, RunFault};
use crate::engine::team::{ParkOutcome, WaitPlace};
use crate::engine::worker::WorkerPool;
use crate::engine::worker::{Failure, Pause, Worker};
use crate::operator::Ending;
use crate::operator::chunk::Info;
use crate::operator::context::{Context, NONE, STARVED};
use crate::operator::link::Initial;
use crate::plan::Plan;
use crate::run::record::{ThreadReport, ThreadTime, report};
use onbeat_os::Parker;
use onbeat_queue::Seed;
use onbeat_queue::sync::atomic::Ordering;
use onbeat_trace::record::FaultKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

/// Arguments of a worker's thread.
pub(super) struct ThreadStart {
    /// Number of the worker.
    pub worker: usize,
    pub parker: Parker,
    /// Pool and place in it, if the thread shares parts with others.
    pub pool: Option<(Arc<WorkerPool>, usize)>,
    /// Whether any thread of the run shares its parts.
    pub any_shares: bool,
    /// Parts that this thread starts.
    pub parts: Vec<(BoundPart, Vec<Seed<Info>>)>,
}

/// A part that is set up, and whose operators have started unless one of them failed.
pub(super) struct StartedPart {
    pub worker: Worker,
    pub cx: Context,
    /// Number of operators that have started.
    pub started: usize,
    initial: Vec<(u32, Initial)>,
}

/// Main function of a worker's thread, after its settings are applied.
pub(super) fn live(start: ThreadStart, plan: &Plan, control: &Arc<Control>) -> ThreadReport {
    control.threads[start.worker].store(onbeat_os::thread::current_id().cast_unsigned(), Ordering::Relaxed);
    // Under `strict` no operator starts before every thread has obtained its settings.
    if plan.options.strict && !control.barrier.wait(start.worker) {
        return ThreadReport::default();
    }
    let ThreadStart { worker, parker, any_shares, .. } = start;
    let thread = WorkerThread { plan, control, worker, parker, any_shares };
    match start.pool {
        Some((pool, place)) => pooled::live(&thread, &pool, place, start.parts),
        None => thread.live_alone(start.parts),
    }
}

/// Thread that steps operators.
pub(super) struct WorkerThread<'r> {
    pub plan: &'r Plan,
    pub control: &'r Arc<Control>,
    pub worker: usize,
    pub parker: Parker,
    pub any_shares: bool,
}

impl WorkerThread<'_> {
    /// Way of waiting of the thread's pool.
    pub fn idle(&self) -> Idle {
        self.plan.pools[self.plan.workers[self.worker].pool].idle
    }

    /// Life of a worker that shares no parts: it has one part.
    fn live_alone(&self, parts: Vec<(BoundPart, Vec<Seed<Info>>)>) -> ThreadReport {
        let WorkerThread { plan, control, .. } = *self;
        let mut parts: Vec<StartedPart> =
            parts.into_iter().map(|(part, seeds)| start(part, seeds, plan, control, self.worker)).collect();
        // A second barrier if other threads share parts: they put them into their pool between the two.
        if !(control.barrier.wait(self.worker) && (!self.any_shares || control.barrier.wait(self.worker))) {
            return ThreadReport::default();
        }
        let mut time = parts.first().map_or(ThreadTime::default(), |part| ThreadTime::begin(&part.cx.clock));
        if !control.has_failed() {
            for part in &mut parts {
                begin(part, plan, control);
                let StartedPart { worker, cx, .. } = part;
                let run = |worker: &mut Worker, cx: &mut Context| self.run_alone(worker, cx, &mut time);
                if guarded_run(control, worker, cx, run).is_some() {
                    worker.seat.retire();
                }
                time.end(&cx.clock);
            }
        }
        let end_ns: Vec<u64> = parts.iter().map(|part| note_end(&part.worker, &part.cx, control)).collect();
        let is_there = self.stop_in_turn(|_, ending| {
            for StartedPart { worker, cx, started, .. } in &mut parts {
                stop(worker, cx, *started, ending, control);
            }
        });
        if !is_there {
            return ThreadReport::default();
        }
        let report =
            |(part, end_ns): (&StartedPart, u64)| report(plan, &part.worker, &part.cx, part.started, end_ns);
        let parts = parts.iter().zip(end_ns).map(report).collect();
        ThreadReport::new(plan, self.worker, parts, time)
    }

    fn run_alone(&self, worker: &mut Worker, cx: &mut Context, time: &mut ThreadTime) -> Result<(), Failure> {
        worker.watch(cx, self.idle().polls_ns() > 0 && cx.clock.is_real());
        loop {
            let alarm_ns = match worker.run(cx)? {
                Pause::Over => return Ok(()),
                Pause::Yield => continue,
                Pause::Rest(alarm_ns) => alarm_ns,
            };
            let alarm_ns = alarm_ns.map(|alarm_ns| cx.clock.to_real(alarm_ns));
            let begin_ns = cx.clock.real_ns();
            let until_ns = alarm_ns.unwrap_or(u64::MAX).min(begin_ns + self.idle().polls_ns());
            let is_notified = until_ns > begin_ns && cx.clock.is_real() && worker.spin(cx, until_ns);
            let lying = if is_notified { None } else { worker.park(cx, alarm_ns) };
            let Context { owner, clock, .. } = cx;
            let rested = match lying {
                None => ParkOutcome::Woken,
                Some(lying) => {
                    let up = || worker.seat.is_called(owner, lying);
                    let at = WaitPlace { parker: &self.parker, descriptors: Some(&*worker.seat.descriptors) };
                    self.idle().after(until_ns.saturating_sub(begin_ns)).wait(
                        &at,
                        lying.alarm_ns,
                        up,
                        || clock.real_ns(),
                    );
                    worker.seat.unpark(owner, lying)
                }
            };
            let end_ns = cx.clock.real_ns();
            time.waited(begin_ns, end_ns, alarm_ns.unwrap_or(u64::MAX));
            worker.wake_up(cx, rested, end_ns)?;
        }
    }

    /// Waits until all threads are done with their steps. Then each thread stops its own operators, in the
    /// order of the plan, and those of a thread of its pool that does not come back. False if this thread
    /// itself was given up.
    pub fn stop_in_turn(&self, mut stop: impl FnMut(usize, Ending)) -> bool {
        let Control { barrier, .. } = &**self.control;
        if !barrier.wait(self.worker) {
            return false;
        }
        let ending = ending(self.control);
        for turn in 0..self.plan.workers.len() {
            if turn == self.worker || self.stands_in_for(turn) {
                stop(turn, ending);
            }
            if !barrier.wait(self.worker) {
                return false;
            }
        }
        true
    }

    /// Whether this is the first thread left in the pool of `other`, which does not come back.
    fn stands_in_for(&self, other: usize) -> bool {
        let given_up = |&worker: &usize| self.control.barrier.is_given_up(worker);
        let pool = self.plan.pools.iter().find(|pool| pool.workers.contains(&other));
        given_up(&other)
            && pool.and_then(|pool| pool.workers.iter().find(|worker| !given_up(worker)))
                == Some(&self.worker)
    }
}

/// Records the end of a part. Returns its time on the part's clock.
pub(super) fn note_end(worker: &Worker, cx: &Context, control: &Control) -> u64 {
    let end_ns = cx.now_ns();
    worker.publish_snapshot(cx);
    control.board.close(worker.seat.part);
    control.publish(end_ns, cx.stamp.time_ns);
    end_ns
}

/// Sets up a part and starts its operators.
pub(super) fn start(
    part: BoundPart,
    seeds: Vec<Seed<Info>>,
    plan: &Plan,
    control: &Arc<Control>,
    thread: usize,
) -> StartedPart {
    let (mut worker, mut cx, initial) = set_up(part, seeds, plan, control);
    worker.slot.set_worker(thread);
    let started = if control.has_failed() { 0 } else { start_operators(&mut worker, &mut cx, control) };
    StartedPart { worker, cx, started, initial }
}

/// Starts the operators in their order. Returns how many have started.
fn start_operators(worker: &mut Worker, cx: &mut Context, control: &Control) -> usize {
    for operator in 0..worker.operators.len() {
        cx.current = operator as u32;
        worker.forget_alarm(cx);
        worker.slot.enter(cx.current | within::START);
        if let Err((what, text)) = guarded(|| worker.operators[operator].start(cx)) {
            fail(worker, cx, control, operator, what, format!("cannot start: {text}"));
            worker.slot.exit();
            return operator;
        }
        worker.set_first_alarm(cx, operator as u32);
    }
    worker.slot.exit();
    worker.operators.len()
}

/// Prepares the first step: sets the start time, which is the same for all parts, and fills edges with their
/// initial messages.
pub(super) fn begin(part: &mut StartedPart, plan: &Plan, control: &Control) {
    let StartedPart { worker, cx, initial, .. } = part;
    cx.start_ns = *control.start_ns.get_or_init(|| cx.now_ns());
    control.now_ns.fetch_max(cx.start_ns, Ordering::Relaxed);
    control.length_ns.fetch_max(cx.length_ns.unwrap_or(0), Ordering::Relaxed);
    worker.stop.end_ns = end_ns(worker, cx, plan);
    let initial = std::mem::take(initial);
    if let Err(Failure::Operator(operator, error)) = fill(worker, cx, initial) {
        fail(worker, cx, control, operator as usize, FaultKind::Error, error.to_string());
    }
}

/// Time at which the sources of this worker end, if the run has a duration.
fn end_ns(worker: &Worker, cx: &Context, plan: &Plan) -> Option<u64> {
    let begins = worker.nodes.iter().any(|node| node.source || node.circular);
    let duration_ns = plan.options.duration_ns.filter(|_| begins)?;
    Some(cx.start_ns.saturating_add(duration_ns))
}

/// Runs operators and treats failures as the plan says. `None` if a failure or a deadlock has ended the part:
/// it is recorded, and the part counts as inactive.
pub(super) fn guarded_run<T>(
    control: &Control,
    worker: &mut Worker,
    cx: &mut Context,
    mut run: impl FnMut(&mut Worker, &mut Context) -> Result<T, Failure>,
) -> Option<T> {
    loop {
        let outcome = catch_unwind(AssertUnwindSafe(|| run(worker, cx)));
        worker.release_turns();
        let (operator, what, text) = match outcome {
            Ok(Ok(result)) => return Some(result),
            Ok(Err(Failure::Stuck(stuck))) => {
                // The part stays parked. Quiescence does not count it any more.
                control.stuck.lock().unwrap_or_else(PoisonError::into_inner).push(stuck);
                return None;
            }
            Ok(Err(Failure::Operator(operator, error))) => (operator, FaultKind::Error, error.to_string()),
            Err(panic) => (worker.in_code(cx), FaultKind::Panic, panicked(&*panic)),
        };
        if worker.recover(cx, operator, what, &text).is_none() {
            fail(worker, cx, control, operator as usize, what, text);
            worker.slot.exit();
            worker.seat.retire();
            return None;
        }
    }
}

/// Puts the initial messages into their edges.
fn fill(worker: &Worker, cx: &mut Context, initial: Vec<(u32, Initial)>) -> Result<(), Failure> {
    for (edge, message) in initial {
        let ends = &worker.edges[edge as usize];
        cx.current = ends.from;
        cx.next = NONE;
        let probe = Arc::clone(&ends.probe);
        probe.begin_with(cx, message).map_err(|error| Failure::Operator(ends.from, error))?;
        if cx.next < STARVED {
            cx.ready.set(cx.next);
        }
    }
    Ok(())
}

fn ending(control: &Control) -> Ending {
    let stuck = control.stuck.lock().unwrap_or_else(PoisonError::into_inner);
    match (control.has_failed() || stuck.iter().any(|stuck| stuck.serious), control.was_stopped()) {
        (true, _) => Ending::Failed,
        (false, true) => Ending::Stopped,
        (false, false) => Ending::Ended,
    }
}

/// Stops the operators that have started.
pub(super) fn stop(worker: &mut Worker, cx: &mut Context, started: usize, ending: Ending, control: &Control) {
    for operator in 0..started {
        cx.current = operator as u32;
        worker.slot.enter(cx.current | within::STOP);
        // After a failure, the following operators are stopped with `Failed`.
        let Trouble { isolated, restarting, .. } = worker.nodes[operator].trouble;
        let has_failed = isolated || restarting || control.has_failed();
        let ending = if has_failed { Ending::Failed } else { ending };
        if let Err((what, text)) = guarded(|| worker.operators[operator].stop(cx, ending)) {
            fail(worker, cx, control, operator, what, format!("cannot finish: {text}"));
        }
    }
    worker.slot.exit();
}

fn fail(worker: &Worker, cx: &Context, control: &Control, operator: usize, what: FaultKind, text: String) {
    let operator = worker.nodes.get(operator).map(|node| node.plan);
    let time_ns = control.start_ns.get().map_or(0, |start_ns| cx.now_ns().saturating_sub(*start_ns));
    control.fail(RunFault { operator, what, text, time_ns, stack: Vec::new() });
}

/// Runs user code, and turns a panic into an error.
fn guarded(code: impl FnOnce() -> Result<(), Error>) -> Result<(), (FaultKind, String)> {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(result) => result.map_err(|error| (FaultKind::Error, error.to_string())),
        Err(panic) => Err((FaultKind::Panic, panicked(&*panic))),
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    format!("panicked: {}", panic_text(panic))
}
