//! Watchdog: a thread that looks for operators whose code does not return, and reports each one with its
//! stack.

use crate::base::helper::Helper;
use crate::base::options::OnHang;
use crate::base::slot::within;
use crate::engine::control::hangs::{Call, Hang, lock};
use crate::engine::control::{Control, RunFault};
use crate::engine::worker::WorkerPool;
use crate::plan::Plan;
use onbeat_os::stack::{self, StackFrame};
use onbeat_queue::sync::atomic::Ordering;
use onbeat_trace::record::{FaultAction, FaultKind, FaultRecord, ThreadRecord};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Name of the thread.
const NAME: &str = "onbeat-watch";

/// Longest time to wait until a thread shows its stack.
const PATIENCE: Duration = Duration::from_secs(2);

/// Largest number of calls shown of a stack.
const CALLS: usize = 24;

/// Polls within the time after which an operator counts as hanging.
const POLLS: u32 = 4;

/// Handle of the watchdog's thread.
#[derive(Debug)]
pub(super) struct Watch {
    /// Dropped to end it.
    end: Sender<()>,
    thread: JoinHandle<ThreadRecord>,
}

impl Watch {
    /// Starts the thread; `None` if [`Options::watchdog_ns`](crate::Options::watchdog_ns) is not set.
    pub fn start(
        plan: &Arc<Plan>,
        control: &Arc<Control>,
        pools: Vec<Option<Arc<WorkerPool>>>,
    ) -> io::Result<Option<Self>> {
        let Some(limit_ns) = plan.options.watchdog_ns else { return Ok(None) };
        let (end, ended) = mpsc::channel();
        let (plan, control) = (Arc::clone(plan), Arc::clone(control));
        let house_keeping = plan.house_keeping();
        let helper = Helper { name: NAME, purpose: "looks for steps that do not return", house_keeping };
        let thread = helper.start(move || {
            let limit = Duration::from_nanos(limit_ns);
            let suspects = vec![None; plan.parts.len()];
            HangFinder { plan: &plan, control: &control, pools, limit, suspects }.run(&ended);
        })?;
        Ok(Some(Watch { end, thread }))
    }

    /// Ends the thread.
    pub fn end(self) -> Option<ThreadRecord> {
        drop(self.end);
        self.thread.join().ok()
    }
}

/// State of the watchdog's thread.
struct HangFinder<'w> {
    plan: &'w Plan,
    control: &'w Control,
    /// By worker: its pool, if it shares parts with other workers.
    pools: Vec<Option<Arc<WorkerPool>>>,
    limit: Duration,
    /// By part.
    suspects: Vec<Option<Suspect>>,
}

/// A part that was inside an operator's code at a poll.
#[derive(Clone, Copy)]
struct Suspect {
    within: u32,
    /// Worker whose thread is in the code.
    worker: usize,
    /// Time of the first poll that found it there.
    since: Instant,
    /// Snapshot requested from the part at that poll. The part answers between two steps.
    snapshot: u64,
    /// Whether the hang was reported.
    is_reported: bool,
}

impl HangFinder<'_> {
    fn run(&mut self, ended: &Receiver<()>) {
        while ended.recv_timeout(self.limit / POLLS) == Err(RecvTimeoutError::Timeout) {
            (0..self.suspects.len()).for_each(|part| self.check(part));
        }
    }

    fn check(&mut self, part: usize) {
        let board = &self.control.board;
        let within = board.parts[part].within();
        let worker = board.parts[part].worker();
        let is_step = within & (within::START | within::STOP) == 0;
        let before = self.suspects[part];
        let same = before.filter(|suspect| {
            (suspect.within, suspect.worker) == (within, worker)
                && !(is_step && board.has_answered(part, suspect.snapshot))
        });
        if let Some(suspect) = before.filter(|suspect| suspect.is_reported && same.is_none()) {
            self.control.hangs.note_return(self.operator(part, suspect.within));
        }
        if within == within::NONE {
            self.suspects[part] = None;
            return;
        }
        let Some(mut suspect) = same else {
            let snapshot = if is_step { board.request_one(part) } else { u64::MAX };
            if is_step {
                self.control.team.wake(part);
            }
            self.suspects[part] =
                Some(Suspect { within, worker, since: Instant::now(), snapshot, is_reported: false });
            return;
        };
        if suspect.since.elapsed() < self.limit {
            return;
        }
        let gives_up = self.plan.options.on_hang == OnHang::Stop || self.control.is_stop_requested();
        if !suspect.is_reported {
            suspect.is_reported = true;
            self.suspects[part] = Some(suspect);
            self.report(part, &suspect, gives_up);
        } else if gives_up {
            let operator = self.operator(part, within);
            let hang = self.control.hangs.current().into_iter().rfind(|(number, _)| *number == operator);
            if let Some((_, hang)) = hang {
                self.give_up(part, suspect.worker, operator, &hang);
            }
        }
    }

    /// Number of the operator in the plan.
    fn operator(&self, part: usize, within: u32) -> usize {
        let mut of_part =
            self.plan.operators.iter().enumerate().filter(|(_, operator)| operator.part == part);
        of_part.nth((within & within::OPERATOR) as usize).map_or(0, |(number, _)| number)
    }

    fn report(&self, part: usize, suspect: &Suspect, gives_up: bool) {
        let operator = self.operator(part, suspect.within);
        let worker = suspect.worker;
        let tid = self.control.threads[worker].load(Ordering::Relaxed).cast_signed();
        let stack = match stack::of(tid, PATIENCE) {
            Ok(frames) => own_calls(&frames),
            Err(error) => vec![format!("an unknown place: {error}")],
        };
        let hang = Hang {
            operator: self.plan.operators[operator].name.clone(),
            call: match suspect.within & (within::START | within::STOP) {
                within::START => Call::Start,
                within::STOP => Call::Stop,
                _ => Call::Step,
            },
            worker: self.plan.workers[worker].name.clone(),
            tid,
            waited_ns: suspect.since.elapsed().as_nanos() as u64,
            activity: stack::activity(tid),
            stack,
        };
        self.control.hangs.note(operator, hang.clone());
        if gives_up {
            self.give_up(part, worker, operator, &hang);
            return;
        }
        lock(&self.control.hangs.faults).push(FaultRecord {
            time_ns: self.time_ns(),
            operator: Some(hang.operator.clone()),
            what: FaultKind::Hang,
            text: hang.text(),
            then: FaultAction::Waited,
            delay_ns: None,
            stack: hang.stack,
        });
    }

    fn time_ns(&self) -> u64 {
        let start_ns = self.control.start_ns.get().copied();
        start_ns.map_or(0, |start_ns| onbeat_os::clock::monotonic_ns().saturating_sub(start_ns))
    }

    /// Ends the run without the thread that hangs.
    fn give_up(&self, part: usize, worker: usize, operator: usize, hang: &Hang) {
        self.control.fail(RunFault {
            operator: Some(operator),
            what: FaultKind::Hang,
            text: hang.text(),
            time_ns: self.time_ns(),
            stack: hang.stack.clone(),
        });
        // If the thread comes back at just this moment, it ends like the others.
        if self.control.barrier.give_up(worker) {
            self.control.board.close(part);
            if let Some(pool) = &self.pools[worker] {
                pool.give_up();
            }
        }
    }
}

/// Calls of a worker's stack between the signal handler and the engine: those of the operator.
fn own_calls(frames: &[StackFrame]) -> Vec<String> {
    // Names have no path if the program has line tables only. Then files next to this one show the engine.
    let engine = file!().trim_end_matches("run/hang.rs");
    let is_of = |frame: &StackFrame, name: &str, file: &str| {
        let place = frame.place.as_ref().map(|(file, _)| file.to_string_lossy()).unwrap_or_default();
        frame.name.contains(name) || place.contains(file)
    };
    let is_engine = |frame: &StackFrame| {
        let is_in = |room| is_of(frame, &format!("onbeat_runtime::{room}::"), &format!("{engine}{room}/"));
        let is_file = |path: &str| {
            let module = path.replace('/', "::");
            is_of(frame, &format!("onbeat_runtime::{module}::"), &format!("{engine}{path}.rs"))
        };
        ["engine", "run"].into_iter().any(is_in)
            || ["operator/stream", "operator/in_place"].into_iter().any(is_file)
    };
    // The handler's own calls come first, then the address to which it returns, which may have no name.
    let is_signal = |frame: &StackFrame| {
        frame.name.contains("__restore_rt") || is_of(frame, "signal_hook", "signal-hook")
    };
    let begin = frames.iter().rposition(is_signal).map_or(0, |last| last + 1);
    let begin = begin + usize::from(frames.get(begin).is_some_and(|frame| frame.name.starts_with("0x")));
    let calls = frames[begin..].iter().take_while(|frame| !is_engine(frame));
    calls.take(CALLS).map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operator's own calls are between the handler's and the engine's, by names with paths as by files.
    #[test]
    fn the_calls_of_the_operator_are_found() {
        let engine = file!().trim_end_matches("run/hang.rs");
        let frame =
            |name: &str, file: String| StackFrame { name: name.to_string(), place: Some((file.into(), 7)) };
        let with_lines_only = [
            frame("walk", "/build/crates/os/src/stack.rs".to_string()),
            frame("handler", "/registry/signal-hook-registry-1.4.8/src/lib.rs".to_string()),
            StackFrame { name: "0x7f647f150050".to_string(), place: None },
            frame("inner", "/home/radio/src/run/own.rs".to_string()),
            frame("step", "/home/radio/src/worker/mine.rs".to_string()),
            frame("step", format!("/build/{engine}engine/worker/mod.rs")),
            frame("live", format!("/build/{engine}run/life.rs")),
        ];
        let with_paths = [
            "onbeat_os::stack::walk",
            "signal_hook_registry::handler",
            "__restore_rt",
            "radio::inner",
            "<radio::Load as onbeat_runtime::operator::Operator>::step",
            "onbeat_runtime::engine::worker::Worker::step",
            "onbeat_runtime::run::life::live",
        ]
        .map(|name| StackFrame { name: name.to_string(), place: None });
        let expected = ["inner (/home/radio/src/run/own.rs:7)", "step (/home/radio/src/worker/mine.rs:7)"];
        assert_eq!(own_calls(&with_lines_only), expected);
        assert_eq!(
            own_calls(&with_paths),
            with_paths[3..5].iter().map(ToString::to_string).collect::<Vec<_>>()
        );
    }
}
