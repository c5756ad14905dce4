//! The life of a worker's thread: it starts its operators, steps them, stops them, and reports. Between these it waits for
//! the other workers, so that no operator is stepped before all have started, and none is stopped before it is known how the
//! run has ended.

use super::bind::Part;
use super::{Control, Fault, set_up::set_up};
use crate::Error;
use crate::chunk::Info;
use crate::context::{Context, NONE, STARVED};
use crate::link::Initial;
use crate::operator::Ending;
use crate::plan::Plan;
use crate::record::{WorkerReport, report};
use crate::worker::{Failure, Worker};
use onbeat_os::CoreSet;
use onbeat_queue::Seed;
use onbeat_queue::sync::atomic::Ordering;
use onbeat_trace::record::Obtained;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

/// All of it.
pub(super) fn live(part: Part, seeds: Vec<Seed<Info>>, plan: &Plan, control: &Arc<Control>) -> WorkerReport {
    let obtained = take_cores(part.seat.worker, plan, control);
    let (mut worker, mut cx, initial) = set_up(part, seeds, plan, control);
    let mut started = 0;
    if !control.has_failed() {
        started = start(&mut worker, &mut cx, control);
    }
    control.gate.wait();
    if !control.has_failed() {
        begin(&worker, &mut cx, control);
        worker.end_ns = end_ns(&worker, &cx, plan);
        run(&mut worker, &mut cx, initial, control);
    }
    let end_ns = cx.now_ns();
    control.publish(end_ns, cx.stamp.time_ns);
    control.gate.wait();
    let ending = ending(control);
    for turn in 0..plan.workers.len() {
        if turn == worker.seat.worker {
            stop(&mut worker, &mut cx, started, ending, control);
        }
        control.gate.wait();
    }
    report(plan, &worker, &cx, started, end_ns, obtained)
}

/// Goes to the core that the plan has for this worker.
fn take_cores(worker: usize, plan: &Plan, control: &Control) -> Vec<Obtained> {
    let plan_worker = &plan.workers[worker];
    let house_keeping = &plan.options.house_keeping;
    let wanted = match plan_worker.core {
        Some(core) => CoreSet::from_cores([core]),
        // The thread that started this one may be bound to the house-keeping cores.
        None if !house_keeping.is_empty() => {
            let online: Vec<usize> = CoreSet::online().map_or(Vec::new(), |online| online.iter().collect());
            CoreSet::from_cores(online.into_iter().filter(|core| !house_keeping.contains(core)))
        }
        None => return Vec::new(),
    };
    let set = wanted.map_err(|error| error.to_string());
    let asked = set.as_ref().map_or(String::new(), ToString::to_string);
    let taken = set.and_then(|set| {
        onbeat_os::thread::set_cores(&set).map_err(|error| error.to_string())?;
        onbeat_os::thread::cores().map_err(|error| error.to_string())
    });
    let (obtained, reason) = match taken {
        Ok(cores) => (cores.to_string(), None),
        Err(error) => ("any core".to_string(), Some(error)),
    };
    let setting = Obtained { what: format!("cores of {}", plan_worker.name), asked, obtained, reason };
    if plan.options.strict && setting.asked != setting.obtained {
        let Obtained { what, asked, obtained, reason } = &setting;
        let reason = reason.as_deref().unwrap_or("not available");
        let text = format!("strict: {what}: {asked} was asked for, {obtained} obtained: {reason}");
        control.fail(Fault { operator: None, text });
    }
    vec![setting]
}

/// Starts the worker's operators, and says how many did.
fn start(worker: &mut Worker, cx: &mut Context, control: &Control) -> usize {
    for operator in 0..worker.operators.len() {
        cx.current = operator as u32;
        if let Err(error) = guarded(|| worker.operators[operator].start(cx)) {
            fail(worker, control, operator, format!("cannot start: {error}"));
            return operator;
        }
    }
    worker.operators.len()
}

/// The first step is about to come. The clock begins at the same time for all workers.
fn begin(worker: &Worker, cx: &mut Context, control: &Control) {
    cx.start_ns = *control.start_ns.get_or_init(|| cx.now_ns());
    worker.control.now_ns.fetch_max(cx.start_ns, Ordering::Relaxed);
    control.length_ns.fetch_max(cx.length_ns.unwrap_or(0), Ordering::Relaxed);
}

/// When the sources of this worker end, where the run has a duration.
fn end_ns(worker: &Worker, cx: &Context, plan: &Plan) -> Option<u64> {
    let begins = worker.nodes.iter().any(|node| node.source || node.circular);
    let duration_ns = plan.options.duration_ns.filter(|_| begins)?;
    Some(cx.start_ns.saturating_add(duration_ns))
}

/// Steps until nothing is left to do, here or anywhere.
fn run(worker: &mut Worker, cx: &mut Context, initial: Vec<(u32, Initial)>, control: &Control) {
    let steps = catch_unwind(AssertUnwindSafe(|| {
        fill(worker, cx, initial)?;
        worker.run(cx)
    }));
    match steps {
        Ok(Ok(())) => worker.seat.retire(),
        Ok(Err(Failure::Stuck(stuck))) => {
            // It sleeps for good: it is not counted any more.
            control.stuck.lock().unwrap_or_else(PoisonError::into_inner).push(stuck);
        }
        Ok(Err(Failure::Operator(operator, error))) => {
            fail(worker, control, operator as usize, error.to_string());
            worker.seat.retire();
        }
        Err(panic) => {
            fail(worker, control, cx.current as usize, format!("panicked: {}", panic_text(&*panic)));
            worker.seat.retire();
        }
    }
}

/// Puts the messages into edges that these have from the start.
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

/// Stops those that were started.
fn stop(worker: &mut Worker, cx: &mut Context, started: usize, ending: Ending, control: &Control) {
    for operator in 0..started {
        cx.current = operator as u32;
        // After one has failed to finish its work, the others are told so.
        let ending = if control.has_failed() { Ending::Failed } else { ending };
        if let Err(error) = guarded(|| worker.operators[operator].stop(cx, ending)) {
            fail(worker, control, operator, format!("cannot finish: {error}"));
        }
    }
}

fn fail(worker: &Worker, control: &Control, operator: usize, text: String) {
    let operator = worker.nodes.get(operator).map(|node| node.plan);
    control.fail(Fault { operator, text });
}

/// Runs user code; a panic becomes an error.
fn guarded(code: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    catch_unwind(AssertUnwindSafe(code))
        .unwrap_or_else(|panic| Err(Error::new(format!("panicked: {}", panic_text(&*panic)))))
}

pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "no message",
    }
}
