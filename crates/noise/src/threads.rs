//! Measuring threads: one per core, with its policy, asleep until all are ready.

use crate::error::NoiseError;
use crate::source::{Backend, Chosen, CoreCounters, RingShape, Tracepoints};
use onbeat_os::policy::PolicyFlags;
use onbeat_os::rights::{Rights, explain};
use onbeat_os::{CoreSet, Policy, clock, thread};
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// Signals that all measuring threads poll.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    /// Begin.
    pub go: Arc<AtomicBool>,
    /// End.
    pub stop: Arc<AtomicBool>,
    /// Number of threads that have not said that they are done.
    busy: Arc<AtomicU64>,
}

impl Signals {
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that has not begun polls `go` first.
        self.go.store(true, Ordering::Release);
    }

    /// A thread is done; the last one ends the measurement.
    pub fn done(&self) {
        // Relaxed: only the count matters, and results are read after the thread was joined.
        if self.busy.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.end();
        }
    }
}

/// A measuring thread.
#[derive(Debug)]
pub(crate) struct MeasuringThread {
    pub cpu: usize,
    pub pid: i32,
    /// What it asked of the scheduler and did not get.
    pub note: Option<String>,
    /// The kernel's counts of its core when the measurement began.
    before: CoreCounters,
    signals: Signals,
    thread: Option<JoinHandle<()>>,
}

impl MeasuringThread {
    /// Starts a thread on core `cpu` that calls `body` after the signal to begin.
    pub fn start(
        cpu: usize,
        name: &str,
        policy: Option<Policy>,
        signals: &Signals,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<Self, NoiseError> {
        let (sender, receiver) = mpsc::channel();
        let go = Arc::clone(&signals.go);
        // Relaxed: no thread is done before all have been started.
        signals.busy.fetch_add(1, Ordering::Relaxed);
        let run = move || {
            let core = CoreSet::from_cores([cpu]).expect("it is online");
            let placed = thread::set_cores(&core);
            let is_placed = placed.is_ok();
            let set = policy.map_or(Ok(()), |policy| policy.set(PolicyFlags::default()));
            if sender.send((thread::current_id(), placed, set)).is_err() || !is_placed {
                return;
            }
            // Asleep, so that a real-time thread leaves the core to the threads that set up the rest.
            while !go.load(Ordering::Acquire) {
                clock::sleep_until(clock::monotonic_ns() + 1_000_000);
            }
            body();
        };
        let thread =
            thread::spawn(&format!("{name}/{cpu}"), run).map_err(NoiseError::os("a measuring thread"))?;
        let (pid, placed, set) = receiver.recv().expect("the thread reports before it does anything else");
        let note = set.err().map(|error| {
            let policy = policy.unwrap_or(Policy::Other(0));
            let why = explain(&policy, error.raw_os_error().unwrap_or(0), &Rights::read());
            format!("policy {policy} was asked for and not obtained: {why}")
        });
        let before = CoreCounters::default();
        let thread =
            MeasuringThread { cpu, pid, note, before, signals: signals.clone(), thread: Some(thread) };
        placed.map_err(NoiseError::os(format!("CPU {cpu}")))?;
        Ok(thread)
    }

    /// The counts of its core begin at zero now.
    pub fn count_from_now(&mut self) {
        self.before = CoreCounters::read(self.cpu);
    }

    /// What the kernel has counted on its core since then.
    pub fn counted(&self) -> CoreCounters {
        CoreCounters::read(self.cpu).since(&self.before)
    }

    /// Waits for the end of the thread.
    pub fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a measuring thread does not panic");
        }
    }
}

impl Drop for MeasuringThread {
    /// Leaves no thread running, whatever went wrong.
    fn drop(&mut self) {
        self.signals.end();
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// Opens the source that was asked for, or the best one available.
pub(crate) fn choose(
    backend: Backend,
    shape: RingShape,
    cpus: &[usize],
) -> Result<(Option<Tracepoints>, Chosen), NoiseError> {
    let asked = "it was asked for";
    let chosen = |backend, why: &str, tracepoints: &Tracepoints| Chosen {
        backend,
        why: why.to_owned(),
        fix: None,
        missing: tracepoints.missing(),
    };
    match backend {
        Backend::Proc => return Ok((None, by_proc(asked.to_owned(), None))),
        Backend::Ftrace | Backend::Perf => {
            let (name, opened) = match backend {
                Backend::Perf => ("perf", Tracepoints::perf(cpus, shape)),
                _ => ("ftrace", Tracepoints::ftrace(cpus, shape)),
            };
            let tracepoints = opened.map_err(|refused| NoiseError::Backend { backend: name, refused })?;
            let chosen = chosen(backend, asked, &tracepoints);
            return Ok((Some(tracepoints), chosen));
        }
        Backend::Auto | Backend::Tracer => {}
    }
    let no_instance = match Tracepoints::ftrace(cpus, shape) {
        Ok(tracepoints) => {
            let chosen = chosen(Backend::Ftrace, "tracefs is writable", &tracepoints);
            return Ok((Some(tracepoints), chosen));
        }
        Err(refused) => refused,
    };
    match Tracepoints::perf(cpus, shape) {
        Ok(tracepoints) => {
            let chosen = chosen(Backend::Perf, &no_instance.why, &tracepoints);
            Ok((Some(tracepoints), chosen))
        }
        Err(refused) => Ok((None, by_proc(refused.why, Some(refused.fix)))),
    }
}

fn by_proc(why: String, fix: Option<String>) -> Chosen {
    let missing = "names and times of single interrupts, softirqs and threads: time is attributed to other threads (run-queue \
                   wait) or stays unexplained";
    Chosen { backend: Backend::Proc, why, fix, missing: vec![missing.to_owned()] }
}
