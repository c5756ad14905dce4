//! Life of a pool's thread, which shares parts with the other threads: as in `life`, but for any part that
//! has work.

use super::bind::BoundPart;
use super::life::{StartedPart, WorkerThread, begin, guarded_run, note_end, start, stop};
use crate::engine::control::Control;
use crate::engine::team::{ParkOutcome, ParkState};
use crate::engine::worker::{Failure, Pause, Worker};
use crate::engine::worker::{PooledPart, WorkerPool};
use crate::operator::chunk::Info;
use crate::operator::context::{Context, RunClock};
use crate::run::record::{PartReport, ThreadReport, ThreadTime, report};
use onbeat_queue::{Identity, Seed, TaskLease};
use std::sync::Arc;

/// Main function of the thread, from the start of its parts to its report. `place` is the thread's number in
/// the pool.
pub(super) fn live(
    thread: &WorkerThread<'_>,
    pool: &Arc<WorkerPool>,
    place: usize,
    parts: Vec<(BoundPart, Vec<Seed<Info>>)>,
) -> ThreadReport {
    let WorkerThread { plan, control, .. } = *thread;
    let clock = RunClock::new(&plan.options, control.origin_ns);
    pool.join(place);
    let numbers: Vec<u32> = parts.iter().map(|(part, _)| part.place).collect();
    let started = start_parts(thread, parts);
    if !control.barrier.wait(thread.worker) {
        return ThreadReport::default();
    }
    let failed = control.has_failed();
    enter_parts(thread, pool, &numbers, started, failed);
    // The thread that stands in for this one reads the numbers after a barrier.
    let _ = pool.started[place].set(numbers.clone());
    // Every part is in the pool before a thread takes one that another thread has started.
    if !control.barrier.wait(thread.worker) {
        return ThreadReport::default();
    }
    let mut time = ThreadTime::begin(&clock);
    if failed {
        for &number in &numbers {
            end_part(pool, number, control);
        }
    } else {
        work(thread, pool, place, &clock, &mut time);
    }
    time.end(&clock);
    let counts = pool.leave();
    match stop_parts(thread, pool) {
        Some(reports) => ThreadReport::new(plan, thread.worker, reports, time).with_counts(counts),
        None => ThreadReport::default(),
    }
}

/// Starts the operators of each part, under the part's identity.
fn start_parts(
    thread: &WorkerThread<'_>,
    parts: Vec<(BoundPart, Vec<Seed<Info>>)>,
) -> Vec<(Identity, StartedPart)> {
    let WorkerThread { plan, control, .. } = *thread;
    parts
        .into_iter()
        .map(|(part, seeds)| {
            let mut identity = Identity::new();
            let started = identity.wear(|| start(part, seeds, plan, control, thread.worker));
            (identity, started)
        })
        .collect()
}

/// Puts the parts that this thread has started into the pool. Begins them first unless the run has failed.
fn enter_parts(
    thread: &WorkerThread<'_>,
    pool: &WorkerPool,
    numbers: &[u32],
    mut parts: Vec<(Identity, StartedPart)>,
    failed: bool,
) {
    for (identity, part) in parts.iter_mut().filter(|_| !failed) {
        identity.wear(|| begin(part, thread.plan, thread.control));
    }
    for (&number, (identity, part)) in numbers.iter().zip(parts) {
        let StartedPart { worker, cx, started, .. } = part;
        if worker.has_limits {
            pool.keep_time();
        }
        pool.enter(number, PooledPart { worker, cx, identity, started, parked: None, end_ns: 0 });
    }
}

/// Marks a part as finished that no thread will run any more. Does nothing if another thread has it.
fn end_part(pool: &WorkerPool, number: u32, control: &Control) {
    if let Some(mut part) = pool.tasks.take(number) {
        part.end_ns = note_end(&part.worker, &part.cx, control);
        part.finish();
    }
}

/// Stops the operators of the parts that this thread has started, in turn with the other threads, and those
/// of a thread that does not come back. `None` if this thread itself was given up.
fn stop_parts(thread: &WorkerThread<'_>, pool: &WorkerPool) -> Option<Vec<PartReport>> {
    let WorkerThread { plan, control, .. } = *thread;
    let mut reports = Vec::new();
    let workers =
        plan.pools.iter().map(|pool| &pool.workers).find(|workers| workers.contains(&thread.worker));
    let in_pool = |worker: usize| workers.and_then(|all| all.iter().position(|&other| other == worker));
    let is_there = thread.stop_in_turn(|turn, ending| {
        let numbers = in_pool(turn).and_then(|place| pool.started[place].get());
        for &number in numbers.into_iter().flatten() {
            // It is unfinished if it was with a thread that does not come back.
            end_part(pool, number, control);
            let Some(mut part) = pool.tasks.leave(number) else { continue };
            let PooledPart { worker, cx, identity, started, end_ns, .. } = &mut part;
            worker.slot.set_worker(thread.worker);
            identity.wear(|| {
                stop(worker, cx, *started, ending, control);
                reports.push(report(plan, worker, cx, *started, *end_ns));
            });
            let PooledPart { worker, cx, mut identity, .. } = part;
            // Chunks that the operators hold return to stores that still exist.
            identity.wear(|| drop((worker, cx)));
        }
    });
    is_there.then_some(reports)
}

/// Runs parts that have work, until all parts of the pool are over.
fn work(thread: &WorkerThread<'_>, pool: &WorkerPool, place: usize, clock: &RunClock, time: &mut ThreadTime) {
    let now_ns = || clock.real_ns();
    let mut round = 0u32;
    while !pool.is_over() {
        round = round.wrapping_add(1);
        pool.fire_alarms(now_ns);
        pool.look_at_descriptors(now_ns);
        let Some((number, part)) = pool.next(place, round) else {
            if pool.help(place, now_ns, |worker| thread.control.barrier.is_given_up(worker)) {
                continue;
            }
            let begin_ns = now_ns();
            // Next alarm of the whole pool: a thread that rests wakes up for the earliest one.
            let alarm_ns = pool.tasks.next_alarm_ns();
            pool.rest(place, thread.idle(), &thread.parker, now_ns);
            time.waited(begin_ns, now_ns(), alarm_ns);
            continue;
        };
        if part.worker.turns.is_heavy {
            pool.leave_watch_to_others(place);
        }
        run_part(thread, pool, number, part);
    }
}

/// Runs one part until it rests, is over, or yields to other parts.
fn run_part(thread: &WorkerThread<'_>, pool: &WorkerPool, number: u32, mut part: TaskLease<'_, PooledPart>) {
    let mut is_awake = false;
    part.worker.slot.set_worker(thread.worker);
    loop {
        let PooledPart { worker, cx, identity, parked, .. } = &mut *part;
        let paused = identity.wear(|| {
            guarded_run(thread.control, worker, cx, |worker, cx| {
                resume(pool, number, worker, cx, parked, is_awake)
            })
        });
        pool.weights.note_steps(number, worker.turns.step_ns);
        match paused {
            None | Some(RunOutcome::Paused(Pause::Over)) => {
                if paused.is_some() {
                    worker.seat.retire();
                }
                part.end_ns = note_end(&part.worker, &part.cx, thread.control);
                part.finish();
                return pool.close_one();
            }
            Some(RunOutcome::Paused(Pause::Yield)) => {
                if pool.others_wait() {
                    worker.reset_waves();
                }
                return pool.put_back(number, part);
            }
            Some(RunOutcome::Paused(Pause::Rest(alarm_ns))) => {
                worker.reset_waves();
                // The end of the run has no timer, so it does not count here.
                if !worker.timers.is_empty() {
                    pool.keep_time();
                }
                let alarm_ns = alarm_ns.map(|alarm_ns| cx.clock.to_real(alarm_ns));
                // Needs the identity of the part: it arms the notifications of the chunk stores.
                *parked = identity.wear(|| worker.park(cx, alarm_ns));
                if let Some(parked) = parked {
                    pool.tasks.set_alarm(number, parked.alarm_ns);
                }
                is_awake = parked.is_none();
                if is_awake {
                    continue;
                }
            }
            Some(RunOutcome::StillParked) => {}
        }
        match part.rest() {
            Ok(()) => return,
            Err(woken) => part = woken,
        }
    }
}

/// Outcome of [`resume`].
#[derive(Clone, Copy)]
enum RunOutcome {
    Paused(Pause),
    /// The part was woken without a reason and stays parked.
    StillParked,
}

/// Continues a part: unparks it if it was parked. `is_awake` says that something came before it could park.
fn resume(
    pool: &WorkerPool,
    number: u32,
    worker: &mut Worker,
    cx: &mut Context,
    parked: &mut Option<ParkState>,
    is_awake: bool,
) -> Result<RunOutcome, Failure> {
    if let Some(how) = *parked {
        let due = || how.alarm_ns != u64::MAX && cx.clock.real_ns() >= how.alarm_ns;
        if !worker.seat.is_called(&cx.owner, how) && !due() {
            // Another thread took its alarm as due. The part's own clock may be some nanoseconds behind.
            pool.tasks.set_alarm(number, how.alarm_ns);
            return Ok(RunOutcome::StillParked);
        }
        *parked = None;
        pool.tasks.set_alarm(number, u64::MAX);
        let rested = worker.seat.unpark(&mut cx.owner, how);
        worker.wake_up(cx, rested, cx.clock.real_ns())?;
    } else if is_awake {
        worker.wake_up(cx, ParkOutcome::Woken, cx.clock.real_ns())?;
    }
    worker.run(cx).map(RunOutcome::Paused)
}
