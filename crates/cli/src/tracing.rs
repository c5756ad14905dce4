//! `--trace`: a trace of a run, in a file for Perfetto.

use crate::error::CommandError;
use crate::output;
use crate::stderr::to_stderr;
use onbeat::{ClockKind, Explain, Plan, RunHandle};
use onbeat_report::pftrace::{Trace, TraceNames};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Largest size of a trace. A step takes some hundred bytes.
const LIMIT_BYTES: u64 = 1 << 30;
const BUFFER_BYTES: usize = 1 << 20;

/// Checks that the run can be traced, and makes it record all operators.
pub fn check(path: &Path, plan: &mut Plan) -> Result<(), CommandError> {
    let wrong =
        |what: &dyn std::fmt::Display| CommandError::new(format!("--trace {}: {what}", path.display()));
    if plan.options.explain == Explain::Off {
        return Err(wrong(&"steps are not recorded when `explain` is off")
            .help("remove --explain=off, or `explain` from the file"));
    }
    if plan.options.clock != ClockKind::Real || plan.options.scale != 1.0 {
        return Err(
            wrong(&"a trace needs the real clock, and this run uses another one").help("use --clock real")
        );
    }
    if path == Path::new("-") {
        return Err(
            wrong(&"a trace must be written to a file").help("name a file; ./- for a file with the name `-`")
        );
    }
    plan.options.explain = Explain::On;
    Ok(())
}

/// Checks that the file can be written, after the output folder was created.
pub fn check_place(path: &Path) -> Result<(), CommandError> {
    output::can_be_replaced(path)
        .map_err(|error| cannot(path, &error).help("name a file in a writable folder: --trace FILE"))
}

/// Trace file of a running run.
#[derive(Clone)]
pub struct Tracing {
    path: PathBuf,
    trace: Arc<Mutex<Option<Trace<BufWriter<File>>>>>,
}

fn cannot(path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(format!("--trace {}: cannot be written: {error}", path.display()))
}

fn names(plan: &Plan) -> TraceNames {
    let place = |end: &str| {
        let operator = end.rsplit_once('.').map_or(end, |(operator, _)| operator);
        plan.operators.iter().position(|one| one.name == operator).map_or(u32::MAX, |place| place as u32)
    };
    // With copies of the same name, the edge of a message would be ambiguous.
    let mut seen = std::collections::HashSet::new();
    let has_copies = plan.operators.iter().any(|operator| !seen.insert(&operator.name));
    TraceNames {
        run: plan.name.clone(),
        workers: plan.workers.iter().map(|worker| worker.name.clone()).collect(),
        operators: plan.operators.iter().map(|operator| operator.name.clone()).collect(),
        edges: plan
            .edges
            .iter()
            .filter(|_| !has_copies)
            .map(|edge| (format!("{} → {}", edge.from, edge.to), place(&edge.from), place(&edge.to)))
            .collect(),
    }
}

impl Tracing {
    /// Creates the file.
    pub fn begin(path: &Path, plan: &Plan) -> Result<Self, CommandError> {
        let file = File::create(path).and_then(|file| {
            Trace::new(BufWriter::with_capacity(BUFFER_BYTES, file), names(plan), LIMIT_BYTES)
        });
        let trace = file.map_err(|error| cannot(path, &error))?;
        Ok(Tracing { path: path.to_path_buf(), trace: Arc::new(Mutex::new(Some(trace))) })
    }

    /// Writes everything that is recorded from now on.
    pub fn follow(&self, handle: &RunHandle) {
        let (flight, late, run) = (self.clone(), self.clone(), handle.clone());
        handle.on_flight(move |spans, events| {
            let mut spans = spans.to_vec();
            spans.sort_by_key(|span| span.end_ns);
            flight.on(|trace| {
                trace.spans(&spans);
                trace.kernel(events);
            });
        });
        handle.on_late(move |message| {
            if let Some(start_ns) = run.started_ns() {
                let end_ns = start_ns + message.time_ns;
                late.on(|trace| trace.miss(end_ns, &message.name, &message.verdict.sentence));
            }
        });
    }

    fn on(&self, tell: impl FnOnce(&mut Trace<BufWriter<File>>)) {
        if let Some(trace) = self.trace.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            tell(trace);
        }
    }

    /// Finishes the file, and reports its size and lost events.
    pub fn end(self, quiet: bool) -> Result<(), CommandError> {
        let trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(trace) = trace else { return Ok(()) };
        let path = self.path.display();
        let written = trace
            .end()
            .map_err(|error| cannot(&self.path, &error).help("the events written so far can be read"))?;
        if written.dropped > 0 {
            let (all, limit) = (written.dropped + written.events, LIMIT_BYTES >> 20);
            to_stderr(&format!(
                "not traced: {} of {all} events: {path} reached its limit of {limit} MiB\n",
                written.dropped
            ));
        }
        if !quiet {
            to_stderr(&format!("{} events written to {path}: open it at ui.perfetto.dev\n", written.events));
        }
        Ok(())
    }
}
