//! A run: a plan at work, from its start to its record.

mod bind;
mod conditions;
mod fetch;
mod handle;
mod hang;
mod life;
mod pending_order;
mod pooled;
pub(crate) mod record;
mod rights;
mod set_up;
mod start;
mod status;

pub(crate) use fetch::made;
pub use handle::{OrderError, Position, RunHandle};
pub(crate) use pending_order::PendingOrder;
pub use status::{
    Activity, EdgeStatus, EventStatus, GateStatus, OperatorStatus, PathStatus, RunState, RunStatus,
};

use crate::base::panic::panic_text;
use crate::engine::control::Control;
use crate::explain::{Recorder, RecorderReport};
use crate::plan::{GraphError, Plan};
use hang::Watch;
use onbeat_queue::sync::atomic::Ordering;
use onbeat_trace::Record;
use onbeat_trace::record::{Obtained, ThreadRecord};
use record::ThreadReport;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

/// Error of a run.
///
/// `{:?}` is the same text as `{}`, so that a `main` that returns this error prints what to do.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The graph cannot be run.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The run could not begin.
    #[error("{0}")]
    Begin(String),
    /// The run failed. The record has its measurements until then.
    #[error("{}", .0.result.reason)]
    Failed(Box<Record>),
}

impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Thread that serves a run and ends with it.
pub(crate) trait RunService: fmt::Debug + Send {
    /// Answers the pending requests and ends. Returns the thread's record if it is known.
    fn end(self: Box<Self>) -> Option<ThreadRecord>;
}

/// A run in progress: one execution of a graph.
///
/// ```
/// # use onbeat_runtime::{Graph, Options};
/// let mut graph = Graph::new("endless");
/// let ones = graph.source("ones", || Some(1u8));
/// let end = graph.sink("end", |_: u8| ());
/// graph.connect(ones, |s| &s.out, end, |e| &e.input);
/// let run = graph.start(&Options::default())?;
/// run.stop();
/// let record = run.wait()?;
/// assert_eq!(record.result.outcome.to_string(), "stopped");
/// # Ok::<(), onbeat_runtime::RunError>(())
/// ```
#[derive(Debug)]
pub struct Run {
    name: String,
    config: serde_json::Value,
    plan: Arc<Plan>,
    threads: Vec<JoinHandle<ThreadReport>>,
    control: Arc<Control>,
    handle: RunHandle,
    started_unix_ns: u64,
    watch: Option<Watch>,
    process: rights::ProcessSettings,
    /// Server of the control socket, which ends with the run.
    service: Option<Box<dyn RunService>>,
    recorder: Option<Recorder>,
}

/// A run has the methods of its handle.
impl Deref for Run {
    type Target = RunHandle;

    fn deref(&self) -> &RunHandle {
        &self.handle
    }
}

impl Run {
    /// Returns a handle to watch and steer the run from another thread.
    pub fn handle(&self) -> RunHandle {
        self.handle.clone()
    }

    /// Settings requested from the machine, and what was obtained. Known before the first step.
    pub fn obtained(&self) -> impl Iterator<Item = &Obtained> {
        self.plan.obtained.iter().chain(&self.process.obtained)
    }

    /// Notes of the plan.
    pub fn notes(&self) -> &[String] {
        &self.plan.notes
    }

    /// Whether the run has a control socket.
    pub(crate) fn has_service(&self) -> bool {
        self.service.is_some()
    }

    /// Sets the service that ends with the run.
    pub(crate) fn set_service(&mut self, service: Box<dyn RunService>) {
        self.service = Some(service);
    }

    /// Cores of the threads that step no operators.
    pub(crate) fn house_keeping(&self) -> Vec<usize> {
        self.plan.house_keeping()
    }

    /// Whether the run has ended.
    pub fn is_finished(&self) -> bool {
        let is_over = |(worker, thread): (usize, &JoinHandle<_>)| {
            thread.is_finished() || self.control.barrier.is_given_up(worker)
        };
        self.threads.iter().enumerate().all(is_over)
    }

    /// Waits for the end of the run.
    ///
    /// # Errors
    /// [`RunError::Failed`] if an operator failed or the run was in deadlock.
    pub fn wait(self) -> Result<Record, RunError> {
        let mut reports = Vec::with_capacity(self.threads.len());
        for (worker, thread) in self.threads.into_iter().enumerate() {
            if !self.control.barrier.await_end(worker) {
                let tid = self.control.threads[worker].load(Ordering::Relaxed).cast_signed();
                rights::take_back(worker, &self.plan, tid);
                reports.push(ThreadReport::given_up(&self.plan, worker, tid));
                continue;
            }
            let report = thread.join().map_err(|panic| {
                RunError::Begin(format!("a worker itself panicked: {}", panic_text(&*panic)))
            })?;
            reports.push(report);
        }
        let served = self.service.and_then(RunService::end);
        let has_recorder = self.recorder.is_some();
        let (findings, recorded_steps, recorder) = match self.recorder.and_then(Recorder::end) {
            Some(RecorderReport { findings, steps, thread }) => (Some(findings), steps, Some(thread)),
            None => (None, Vec::new(), None),
        };
        let end = record::RunEnd {
            started_unix_ns: self.started_unix_ns,
            start_ns: self.control.start_ns.get().copied(),
            was_stopped: self.control.was_stopped(),
            faults: self.control.faults.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            survived: self.control.hangs.take_faults(),
            helpers: [self.watch.and_then(Watch::end), served, recorder].into_iter().flatten().collect(),
            recorded_steps,
            obtained: self.process.obtained.clone(),
            overruns: self.process.overruns(),
            limits: self.control.limits.outcome(&self.plan),
            stuck: std::mem::take(&mut *self.control.stuck.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        let mut record = record::record(self.name, self.config, &self.plan, reports, end);
        match findings {
            Some(findings) => findings.enter(&mut record, &self.plan),
            None if has_recorder => record.notes.push(
                "the thread that explains misses has panicked: nothing is explained, and the steps that it counted are missing"
                    .to_owned(),
            ),
            None => {}
        }
        if record.result.exit_status == 1 { Err(RunError::Failed(Box::new(record))) } else { Ok(record) }
    }
}
