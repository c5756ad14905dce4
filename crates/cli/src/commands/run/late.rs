//! `--on-miss`: actions when a message is late.

use crate::arguments::actions::Action;
use crate::commands::noise::actions::elsewhere;
use crate::documents::flight;
use crate::error::CommandError;
use crate::{output, threads};
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

/// Number of steps, and of kernel events, that are kept for a trace.
const KEPT: usize = 1 << 15;

/// Delay before a trace is written, until all events around the message are known.
const PATIENCE: Duration = Duration::from_millis(400);

/// Returns the error for a pipeline without limits.
pub fn no_limit() -> CommandError {
    CommandError::new("--on-miss: no message of this pipeline can be late").help(
        "set a `deadline` for an operator or a `max_latency` for a path, use the real clock, and do not set `explain` to off",
    )
}

/// Registers the files of `trace` actions. They must be writable, and not be used otherwise.
pub fn uses(actions: &[Action], name: &str) -> Result<Vec<FileUse>, CommandError> {
    let one = |action: &Action| {
        let Action::Trace(file) = action else { return None };
        let file = file.clone().unwrap_or_else(|| usual(name));
        let used = output::can_be_replaced(&file).map_err(|error| cannot(&file, &error));
        let replacing = |()| {
            FileUse::replacing(&file, "--on-miss trace").map_err(|error| CommandError::new(error.to_string()))
        };
        Some(used.and_then(replacing))
    };
    actions.iter().filter_map(one).collect()
}

fn usual(name: &str) -> PathBuf {
    PathBuf::from(format!("{name}_trace.txt"))
}

fn cannot(file: &Path, error: &dyn std::fmt::Display) -> CommandError {
    CommandError::new(format!("--on-miss trace,file={}: cannot be written: {error}", file.display()))
        .help("name a file in a writable folder: trace,file=FILE")
}

/// Thread that runs the actions, if there are any.
pub struct Actions {
    thread: Option<(Sender<Option<LateMessage>>, JoinHandle<ActionsResult>)>,
}

/// Result of the actions.
struct ActionsResult {
    /// Sentence about the late message that ended the run.
    ended_by: Option<String>,
    failed: Option<CommandError>,
}

/// Latest steps and kernel events.
#[derive(Default)]
struct LatestEvents {
    spans: VecDeque<Span>,
    events: VecDeque<KernelEvent>,
}

impl LatestEvents {
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
        let flight = Arc::new(Mutex::new(LatestEvents::default()));
        if actions.iter().any(|action| matches!(action, Action::Trace(_))) {
            let kept = Arc::clone(&flight);
            handle.on_flight(move |spans, events| lock(&kept).keep(spans, events));
        }
        let (tell, hear) = mpsc::channel();
        let told = tell.clone();
        handle.on_late(move |late| drop(told.send(Some(late.clone()))));
        let thread_state = ActionThread {
            actions: actions.to_vec(),
            usual: usual(name),
            plan: plan.clone(),
            handle: handle.clone(),
            flight,
        };
        let thread = onbeat_os::thread::spawn(threads::ON_MISS, move || thread_state.listen(&hear));
        Actions { thread: thread.ok().map(|thread| (tell, thread)) }
    }

    /// Ends the thread. Notes in the record if a late message ended the run.
    pub fn end(self, record: &mut Record) -> Result<(), CommandError> {
        let Some((tell, thread)) = self.thread else { return Ok(()) };
        // Fails if the thread has ended.
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

/// State of the thread.
struct ActionThread {
    actions: Vec<Action>,
    /// Default file of a trace.
    usual: PathBuf,
    plan: Plan,
    handle: RunHandle,
    flight: Arc<Mutex<LatestEvents>>,
}

impl ActionThread {
    fn listen(self, hear: &Receiver<Option<LateMessage>>) -> ActionsResult {
        let mut outcome = ActionsResult { ended_by: None, failed: None };
        let goes_on = self.actions.contains(&Action::Continue);
        while let Ok(Some(late)) = hear.recv() {
            let failed = self.act(&late);
            outcome.failed = outcome.failed.or(failed);
            if !goes_on {
                self.handle.stop();
                outcome.ended_by = Some(late.verdict.sentence);
                break;
            }
            // Messages that were late in the meantime are skipped: actions do not queue up.
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

    /// Runs all actions. Returns the first error.
    fn act(&self, late: &LateMessage) -> Option<CommandError> {
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

    fn trace(&self, late: &LateMessage, file: &Path) -> Result<(), CommandError> {
        // Kernel events are known after they have ended.
        std::thread::sleep(PATIENCE);
        let start_ns = self.handle.start_ns().unwrap_or(0);
        let text = {
            let LatestEvents { spans, events } = &mut *lock(&self.flight);
            flight::lines(late, &self.plan, start_ns, spans.make_contiguous(), events.make_contiguous())
        };
        // The error names the file.
        replace(file, text.as_bytes()).map_err(|error| {
            CommandError::new(format!("--on-miss trace: {error}"))
                .help("name a file in a writable folder: trace,file=FILE")
        })
    }
}
