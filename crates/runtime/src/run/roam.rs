//! The life of a thread that shares its parts with others: what `life` does, for whichever part has something to do.

use super::bind::Part;
use super::life::{Started, Thread, begin, guarded_run, note_end, start, stop};
use crate::engine::team::{ParkOutcome, ParkState};
use crate::engine::worker::{Failure, Pause, Worker};
use crate::engine::worker::{PooledPart, WorkerPool};
use crate::operator::chunk::Info;
use crate::operator::context::{Context, RunClock};
use crate::run::record::{ThreadReport, Time, report};
use onbeat_queue::{Identity, Seed, TaskLease};
use std::sync::Arc;

/// All of it. `place` is the thread's in the pool.
pub(super) fn live(
    thread: &Thread<'_>,
    pool: &Arc<WorkerPool>,
    place: usize,
    parts: Vec<(Part, Vec<Seed<Info>>)>,
) -> ThreadReport {
    let Thread { plan, control, .. } = *thread;
    let clock = RunClock::new(&plan.options, control.origin_ns);
    pool.join(place);
    let numbers: Vec<u32> = parts.iter().map(|(part, _)| part.place).collect();
    let mut started: Vec<(Identity, Started)> = parts
        .into_iter()
        .map(|(part, seeds)| {
            let mut identity = Identity::new();
            let started = identity.wear(|| start(part, seeds, plan, control, thread.worker));
            (identity, started)
        })
        .collect();
    if !control.barrier.wait(thread.worker) {
        return ThreadReport::default();
    }
    let failed = control.has_failed();
    for (_, part) in started.iter_mut().filter(|_| !failed) {
        begin(part, plan, control);
    }
    for (&number, (identity, started)) in numbers.iter().zip(started) {
        let Started { worker, cx, started, .. } = started;
        if worker.has_limits {
            pool.keep_time();
        }
        pool.enter(number, PooledPart { worker, cx, identity, started, parked: None, end_ns: 0 });
    }
    // Read by whoever stands in for this thread, behind a barrier.
    let _ = pool.started[place].set(numbers.clone());
    // All have entered before anyone takes one that another thread has started.
    if !control.barrier.wait(thread.worker) {
        return ThreadReport::default();
    }
    let mut time = Time::begin(&clock);
    if failed {
        for &number in &numbers {
            if let Some(mut part) = pool.tasks.take(number) {
                part.end_ns = note_end(&part.worker, &part.cx, control);
                part.finish();
            }
        }
    } else {
        work(thread, pool, place, &clock, &mut time);
    }
    time.end(&clock);
    let counts = pool.leave();
    let mut reports = Vec::new();
    let workers =
        plan.pools.iter().map(|pool| &pool.workers).find(|workers| workers.contains(&thread.worker));
    let in_pool = |worker: usize| workers.and_then(|all| all.iter().position(|&other| other == worker));
    let is_there = thread.stop_in_turn(|turn, ending| {
        let numbers = in_pool(turn).and_then(|place| pool.started[place].get());
        for &number in numbers.into_iter().flatten() {
            if let Some(mut part) = pool.tasks.take(number) {
                // It lay with a thread that does not come back.
                part.end_ns = note_end(&part.worker, &part.cx, control);
                part.finish();
            }
            let Some(mut part) = pool.tasks.leave(number) else { continue };
            let PooledPart { worker, cx, identity, started, end_ns, .. } = &mut part;
            worker.slot.set_worker(thread.worker);
            identity.wear(|| {
                stop(worker, cx, *started, ending, control);
                reports.push(report(plan, worker, cx, *started, *end_ns));
            });
            let PooledPart { worker, cx, mut identity, .. } = part;
            // What they hold goes home to stores that are there still.
            identity.wear(|| drop((worker, cx)));
        }
    });
    if !is_there {
        return ThreadReport::default();
    }
    ThreadReport::new(plan, thread.worker, reports, time).with_counts(counts)
}

/// Runs parts, whichever have something to do, until all are over.
fn work(thread: &Thread<'_>, pool: &WorkerPool, place: usize, clock: &RunClock, time: &mut Time) {
    let now_ns = || clock.real_ns();
    let mut round = 0u32;
    while !pool.is_over() {
        round = round.wrapping_add(1);
        pool.fire_alarms(now_ns);
        let Some((number, part)) = pool.next(place, round) else {
            if pool.help(place, now_ns, |worker| thread.control.barrier.is_given_up(worker)) {
                continue;
            }
            let begin_ns = now_ns();
            // Without a look at the alarms of others: who rests wakes up for the earliest.
            let alarm_ns = pool.tasks.next_alarm_ns();
            pool.rest(place, thread.idle(), &thread.parker, now_ns);
            time.waited(begin_ns, now_ns(), alarm_ns);
            continue;
        };
        if part.worker.turns.is_heavy {
            pool.leave_alarms_to_others(place);
        }
        run(thread, pool, number, part);
    }
}

/// Runs one part until it rests, is over, or others are to have their turn.
fn run(thread: &Thread<'_>, pool: &WorkerPool, number: u32, mut part: TaskLease<'_, PooledPart>) {
    let mut up = false;
    part.worker.slot.set_worker(thread.worker);
    loop {
        let PooledPart { worker, cx, identity, parked: lying, .. } = &mut *part;
        let paused = identity.wear(|| {
            guarded_run(thread.control, worker, cx, |worker, cx| go(pool, number, worker, cx, lying, up))
        });
        pool.note_weight(number, worker.turns.is_heavy);
        match paused {
            None | Some(Went::Paused(Pause::Over)) => {
                if paused.is_some() {
                    worker.seat.retire();
                }
                part.end_ns = note_end(&part.worker, &part.cx, thread.control);
                part.finish();
                return pool.close_one();
            }
            Some(Went::Paused(Pause::Yield)) => {
                if pool.others_wait() {
                    worker.reset_waves();
                }
                return pool.put_back(number, part);
            }
            Some(Went::Paused(Pause::Rest(alarm_ns))) => {
                worker.reset_waves();
                // The end of the run is no such time.
                if !worker.timers.is_empty() {
                    pool.keep_time();
                }
                let alarm_ns = alarm_ns.map(|alarm_ns| cx.clock.to_real(alarm_ns));
                // Chunk stores are asked for a notification.
                *lying = identity.wear(|| worker.park(cx, alarm_ns));
                if let Some(lying) = lying {
                    pool.tasks.set_alarm(number, lying.alarm_ns);
                }
                up = lying.is_none();
                if up {
                    continue;
                }
            }
            Some(Went::Nowhere) => {}
        }
        match part.rest() {
            Ok(()) => return,
            Err(woken) => part = woken,
        }
    }
}

/// How far a part came.
#[derive(Clone, Copy)]
enum Went {
    Paused(Pause),
    /// It was woken for nothing, and lies as it lay.
    Nowhere,
}

/// Goes on where the part was: it gets up if it lies, and listens if it is `up` because something came.
fn go(
    pool: &WorkerPool,
    number: u32,
    worker: &mut Worker,
    cx: &mut Context,
    lying: &mut Option<ParkState>,
    up: bool,
) -> Result<Went, Failure> {
    if let Some(how) = *lying {
        let due = || how.alarm_ns != u64::MAX && cx.clock.real_ns() >= how.alarm_ns;
        if !worker.seat.is_called(&cx.owner, how) && !due() {
            // Its alarm may have been taken and not be due on its own clock, which is another thread's by some nanoseconds.
            pool.tasks.set_alarm(number, how.alarm_ns);
            return Ok(Went::Nowhere);
        }
        *lying = None;
        pool.tasks.set_alarm(number, u64::MAX);
        let rested = worker.seat.unpark(&mut cx.owner, how);
        worker.wake_up(cx, rested, cx.clock.real_ns())?;
    } else if up {
        worker.wake_up(cx, ParkOutcome::Woken, cx.clock.real_ns())?;
    }
    worker.run(cx).map(Went::Paused)
}
