//! What is done when a message is late, beside noting it: `--on-miss`.

use crate::arguments::actions::Action;
use crate::commands::noise::actions::elsewhere;
use crate::documents::flight;
use crate::failure::Failure;
use crate::output;
use onbeat::trace::record::Record;
use onbeat::trace::replace::replace;
use onbeat::trace::{KernelEvent, Span};
use onbeat::{FileUse, LateMessage, Plan, RunHandle};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The thread's name.
pub const THREAD_NAME: &str = "onbeat-on-miss";

/// Steps and events of the kernel that are kept for a trace, each.
const KEPT: usize = 1 << 15;

/// How long a trace waits until all around a message is known.
const PATIENCE: Duration = Duration::from_millis(400);

/// What was asked for cannot happen.
pub fn no_limit() -> Failure {
    Failure::new("--on-miss: nothing of this pipeline can be late").help(
        "give an operator a `deadline` or a path a `max_latency`, a clock that is real, and do not switch `explain` off",
    )
}

/// Where steps around a late message are written to, if that is asked for: it must be possible, and take no other file's place.
pub fn uses(actions: &[Action], name: &str) -> Result<Vec<FileUse>, Failure> {
    let one = |action: &Action| {
        let Action::Trace(file) = action else { return None };
        let file = file.clone().unwrap_or_else(|| usual(name));
        let used = output::can_be_replaced(&file).map_err(|error| cannot(&file, &error));
        let replacing = |()| {
            FileUse::replacing(&file, "--on-miss trace").map_err(|error| Failure::new(error.to_string()))
        };
        Some(used.and_then(replacing))
    };
    actions.iter().filter_map(one).collect()
}

fn usual(name: &str) -> PathBuf {
    PathBuf::from(format!("{name}_trace.txt"))
}

fn cannot(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("--on-miss trace,file={}: cannot be written: {error}", file.display()))
        .help("name a file in a folder of yours: trace,file=FILE")
}

/// The thread that does it, if there is anything to do.
pub struct Actions {
    thread: Option<(Sender<Option<LateMessage>>, JoinHandle<Outcome>)>,
}

/// What it did.
struct Outcome {
    /// The message that ended the run.
    ended_by: Option<String>,
    failed: Option<Failure>,
}

/// The last steps and events.
#[derive(Default)]
struct Flight {
    spans: VecDeque<Span>,
    events: VecDeque<KernelEvent>,
}

impl Flight {
    fn keep(&mut self, spans: &[Span], events: &[KernelEvent]) {
        self.spans.extend(spans);
        self.events.extend(events.iter().cloned());
        self.spans.drain(..self.spans.len().saturating_sub(KEPT));
        self.events.drain(..self.events.len().saturating_sub(KEPT));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Actions {
    pub fn start(actions: &[Action], name: &str, plan: &Plan, handle: &RunHandle) -> Self {
        if actions.is_empty() {
            return Actions { thread: None };
        }
        let flight = Arc::new(Mutex::new(Flight::default()));
        if actions.iter().any(|action| matches!(action, Action::Trace(_))) {
            let kept = Arc::clone(&flight);
            handle.on_flight(move |spans, events| lock(&kept).keep(spans, events));
        }
        let (tell, hear) = mpsc::channel();
        let told = tell.clone();
        handle.on_late(move |late| drop(told.send(Some(late.clone()))));
        let at_work = AtWork {
            actions: actions.to_vec(),
            usual: usual(name),
            plan: plan.clone(),
            handle: handle.clone(),
            flight,
        };
        let thread = onbeat_os::thread::spawn(THREAD_NAME, move || at_work.listen(&hear));
        Actions { thread: thread.ok().map(|thread| (tell, thread)) }
    }

    /// The run is over. Says in the record if it ended for this.
    pub fn end(self, record: &mut Record) -> Result<(), Failure> {
        let Some((tell, thread)) = self.thread else { return Ok(()) };
        // It may be gone.
        let _ = tell.send(None);
        let Ok(outcome) = thread.join() else { return Ok(()) };
        if let Some(sentence) = outcome.ended_by {
            let result = &mut record.result;
            result.reason = format!("{sentence}, which ended the run (--on-miss); {}", result.reason);
            if result.exit_status == 0 {
                result.exit_status = 2;
            }
        }
        outcome.failed.map_or(Ok(()), Err)
    }
}

/// The thread, from inside.
struct AtWork {
    actions: Vec<Action>,
    /// The usual file of a trace.
    usual: PathBuf,
    plan: Plan,
    handle: RunHandle,
    flight: Arc<Mutex<Flight>>,
}

impl AtWork {
    fn listen(self, hear: &Receiver<Option<LateMessage>>) -> Outcome {
        let mut outcome = Outcome { ended_by: None, failed: None };
        let goes_on = self.actions.contains(&Action::Continue);
        while let Ok(Some(late)) = hear.recv() {
            let failed = self.act(&late);
            outcome.failed = outcome.failed.or(failed);
            if !goes_on {
                self.handle.stop();
                outcome.ended_by = Some(late.verdict.sentence);
                break;
            }
            // What was late meanwhile is done with: actions are not queued up.
            loop {
                match hear.try_recv() {
                    Ok(Some(_)) => {}
                    Ok(None) => return outcome,
                    Err(_) => break,
                }
            }
        }
        outcome
    }

    /// All are tried; the first that fails is told.
    fn act(&self, late: &LateMessage) -> Option<Failure> {
        let mut failed = None;
        for action in &self.actions {
            let done = match action {
                Action::Trace(file) => self.trace(late, file.as_ref().unwrap_or(&self.usual)),
                other => elsewhere(other),
            };
            failed = failed.or(done.err());
        }
        failed
    }

    fn trace(&self, late: &LateMessage, file: &Path) -> Result<(), Failure> {
        // Events of the kernel are known when they are over.
        std::thread::sleep(PATIENCE);
        let start_ns = self.handle.start_ns().unwrap_or(0);
        let text = {
            let Flight { spans, events } = &mut *lock(&self.flight);
            flight::lines(late, &self.plan, start_ns, spans.make_contiguous(), events.make_contiguous())
        };
        // The error names the file.
        replace(file, text.as_bytes()).map_err(|error| {
            Failure::new(format!("--on-miss trace: {error}"))
                .help("name a file in a folder of yours: trace,file=FILE")
        })
    }
}
