//! From plan to running workers, and back to a record.

mod asking;
mod bind;
mod conditions;
mod handle;
mod hang;
mod life;
pub(crate) mod record;
mod rights;
mod roam;
mod set_up;
mod status;

pub(crate) use asking::Asking;
use handle::Named;
pub use handle::{OrderError, Position, RunHandle};
pub use status::{
    Activity, EdgeStatus, EventStatus, GateStatus, OperatorStatus, PathStatus, RunState, RunStatus,
};

use crate::base::options::Options;
use crate::base::panic::panic_text;
use crate::engine::control::board::Board;
use crate::engine::control::{Control, RunFault};
use crate::engine::flight::Rings;
use crate::engine::limits::Limits;
use crate::explain::{Recorded, Recorder};
use crate::graph::Graph;
use crate::operator::chunk::Info;
use crate::operator::when::{FileWatch, FileWatcher, When};
use crate::plan::replicate;
use crate::plan::{GraphError, Plan};
use hang::Watch;
use life::Begin;
use onbeat_queue::sync::atomic::Ordering;
use onbeat_queue::{Owner, Seed};
use onbeat_trace::record::{Obtained, ThreadRecord};
use onbeat_trace::{Evidence, NoEvidence, Record};
use record::ThreadReport;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, mpsc};
use std::thread::JoinHandle;

/// Why a run did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The graph cannot be run.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The run could not begin.
    #[error("{0}")]
    Begin(String),
    /// The run failed. What it measured until then is in the record.
    #[error("{}", .0.result.reason)]
    Failed(Box<Record>),
}

/// A thread that serves a run and ends with it.
pub(crate) trait Service: fmt::Debug + Send {
    /// Answers what was asked before, and ends. What the thread has cost, where that is known.
    fn end(self: Box<Self>) -> Option<ThreadRecord>;
}

/// A run under way.
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
    watching: Option<FileWatch>,
    watch: Option<Watch>,
    held: rights::Held,
    /// What serves it, and ends with it.
    service: Option<Box<dyn Service>>,
    recorder: Option<Recorder>,
}

/// A run can do what its handle can.
impl Deref for Run {
    type Target = RunHandle;

    fn deref(&self) -> &RunHandle {
        &self.handle
    }
}

impl Run {
    /// A handle to watch and steer it from elsewhere.
    pub fn handle(&self) -> RunHandle {
        self.handle.clone()
    }

    /// What was asked of the machine for it, and what there is; known before the first step.
    pub fn obtained(&self) -> impl Iterator<Item = &Obtained> {
        self.plan.obtained.iter().chain(&self.held.obtained)
    }

    /// What is pointed out of its plan.
    pub fn notes(&self) -> &[String] {
        &self.plan.notes
    }

    /// Whether something serves it.
    pub(crate) fn has_service(&self) -> bool {
        self.service.is_some()
    }

    /// Has this end with the run.
    pub(crate) fn set_service(&mut self, service: Box<dyn Service>) {
        self.service = Some(service);
    }

    /// Cores of the threads that step no operators.
    pub(crate) fn house_keeping(&self) -> &[usize] {
        &self.plan.options.house_keeping
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        let is_over = |(worker, thread): (usize, &JoinHandle<_>)| {
            thread.is_finished() || self.control.barrier.is_given_up(worker)
        };
        self.threads.iter().enumerate().all(is_over)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`RunError::Failed`] when an operator failed or nothing could go on.
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
        let served = self.service.and_then(Service::end);
        let is_explained = self.recorder.is_some();
        let (findings, noted, recorder) = match self.recorder.and_then(Recorder::end) {
            Some(Recorded { findings, steps, thread }) => (Some(findings), steps, Some(thread)),
            None => (None, Vec::new(), None),
        };
        let ended = record::Ended {
            started_unix_ns: self.started_unix_ns,
            start_ns: self.control.start_ns.get().copied(),
            was_stopped: self.control.was_stopped(),
            faults: self.control.faults.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            survived: self.control.hangs.take_faults(),
            helpers: [
                self.watching.and_then(FileWatch::end),
                self.watch.and_then(Watch::end),
                served,
                recorder,
            ]
            .into_iter()
            .flatten()
            .collect(),
            noted,
            obtained: self.held.obtained.clone(),
            overruns: self.held.overruns(),
            limits: self.control.limits.outcome(&self.plan),
            stuck: std::mem::take(&mut *self.control.stuck.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        let mut record = record::record(self.name, self.config, &self.plan, reports, ended);
        match findings {
            Some(findings) => findings.enter(&mut record, &self.plan),
            None if is_explained => record.notes.push(
                "the thread that finds out why something was late has panicked: nothing is explained, and the steps that it counted are missing"
                    .to_owned(),
            ),
            None => {}
        }
        if record.result.exit_status == 1 { Err(RunError::Failed(Box::new(record))) } else { Ok(record) }
    }
}

impl Graph {
    /// Plans, starts and returns at once.
    ///
    /// # Errors
    /// [`RunError::Graph`] when the graph cannot be run, [`RunError::Begin`] when threads or memory are missing.
    pub fn start(self, options: &Options) -> Result<Run, RunError> {
        let plan = self.plan(options)?;
        self.start_plan(plan)
    }

    /// Plans, starts and waits for the end.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(self, options: &Options) -> Result<Record, RunError> {
        self.start(options)?.wait()
    }

    /// As [`start`](Graph::start), under a plan that was made before from this graph.
    ///
    /// # Errors
    /// [`RunError::Begin`].
    pub fn start_plan(self, plan: Plan) -> Result<Run, RunError> {
        self.start_explained(plan, Box::new(NoEvidence))
    }

    /// As [`start_plan`](Graph::start_plan), with what the kernel tells, so that misses are explained by it. Whether they are at
    /// all, [`Options::explain`](crate::Options::explain) says.
    ///
    /// # Errors
    /// [`RunError::Begin`].
    pub fn start_explained(self, plan: Plan, evidence: Box<dyn Evidence>) -> Result<Run, RunError> {
        let (name, config) = (self.name.clone(), self.config.clone());
        let (gates, events) = (self.gates.clone(), self.events.clone());
        let mut graph = match &plan.recipe {
            Some(recipe) => replicate::apply(self, recipe)?,
            None => self,
        };
        let limits = Limits::of(&plan);
        limits.bind(&mut graph, &plan);
        let mut seeds: Vec<Vec<Seed<Info>>> = plan.parts.iter().map(|_| Vec::new()).collect();
        let mut wishes = rights::StoreWishes::new(&plan);
        // By rising size for each part, as the plan has them.
        for store in &plan.stores {
            let seed = Seed::<Info>::new_in(store.chunks, store.quantum_bytes as usize, &mut |memory| {
                wishes.prepare(store.part, memory);
            })
            .map_err(|error| RunError::Begin(error.to_string()))?;
            seeds[store.part].push(seed);
        }
        let mut wishes = wishes.obtained(plan.stores.len());
        wishes.extend(rights::of_evidence(&plan, evidence.as_ref()));
        let started_unix_ns = onbeat_os::clock::realtime_unix_ns();
        let for_files = graph.operators.iter().any(|node| node.when.iter().any(When::waits_for_files));
        let wrong = |error| RunError::Begin(format!("cannot wait for files: {error}"));
        let watcher = for_files.then(FileWatcher::new).transpose().map_err(wrong)?;
        let bind::Bound { mut parts, team, threads: seats, orders } =
            bind::bind(graph, &plan, watcher.clone());
        let recorder = prepare(&plan, &mut parts);
        let house_keeping = &plan.options.house_keeping;
        let watching = watcher.map(|watcher| watcher.start(house_keeping)).transpose().map_err(wrong)?;
        let plan = Arc::new(plan);
        let board = Board::new(plan.parts.len(), plan.operators.len(), plan.edges.len(), plan.paths.len());
        let control = Arc::new(Control::new(team, plan.workers.len(), orders, board, limits));
        let pools = seats.iter().map(|(_, pool)| pool.as_ref().map(|(pool, _)| Arc::clone(pool))).collect();
        let any_shares = seats.iter().any(|(_, pool)| pool.is_some());
        let mut given: Vec<Begin> = seats
            .into_iter()
            .enumerate()
            .map(|(worker, (parker, pool))| Begin { worker, parker, pool, any_shares, parts: Vec::new() })
            .collect();
        let in_pool = |pool| plan.parts.iter().filter(|part| part.pool == pool).count();
        let counts: Vec<usize> = (0..plan.pools.len()).map(in_pool).collect();
        for ((part, seeds), at) in parts.into_iter().zip(seeds).zip(&plan.parts) {
            // Neighbours begin on one thread.
            let workers = &plan.pools[at.pool].workers;
            let worker = workers[part.place as usize * workers.len() / counts[at.pool]];
            given[worker].parts.push((part, seeds));
        }
        let mut held = rights::Held::take(&plan, wishes)?;
        let (mut threads, mut begins) = (Vec::new(), Vec::new());
        let mut settled = Vec::new();
        for worker in &plan.workers {
            let (begin, wait) = mpsc::sync_channel::<Begin>(1);
            let (plan, control) = (Arc::clone(&plan), Arc::clone(&control));
            let (say, settings) = mpsc::channel();
            settled.push(settings);
            let departure = Departure { control, worker: threads.len() };
            let main = move || match wait.recv() {
                Ok(begin) => {
                    // Whoever started the run waits for it.
                    let _ = say.send(rights::take(begin.worker, &plan, &departure.control));
                    life::live(begin, &plan, &departure.control)
                }
                // Another thread could not be made: the run does not begin.
                Err(mpsc::RecvError) => ThreadReport::default(),
            };
            // On an error the threads made so far end, because what they wait for is gone.
            let thread = onbeat_os::thread::spawn(&worker.name, main).map_err(|error| {
                RunError::Begin(format!("cannot start the thread `{}`: {error}", worker.name))
            })?;
            threads.push(thread);
            begins.push(begin);
        }
        for (begin, given) in begins.into_iter().zip(given) {
            // It is waiting for just this.
            let _ = begin.send(given);
        }
        // Beside their start, which they take no time from.
        let recorder =
            recorder.map(|(rings, owner)| Recorder::start(&plan, &control, rings, owner, evidence));
        let helpers =
            Watch::start(&plan, &control, pools).and_then(|watch| Ok((watch, recorder.transpose()?)));
        let (watch, recorder) = match helpers {
            Ok(helpers) => helpers,
            Err(error) => {
                let text = format!("cannot start the thread that watches or explains: {error}");
                control.fail(RunFault::of_the_run(text.clone()));
                threads.into_iter().for_each(|thread| drop(thread.join()));
                return Err(RunError::Begin(text));
            }
        };
        for settings in settled {
            held.obtained.extend(settings.recv().unwrap_or_default());
        }
        let obtained = plan.obtained.iter().chain(&held.obtained).cloned().collect();
        let named = Named { gates, events, obtained };
        let handle = RunHandle::new(Arc::clone(&control), Arc::clone(&plan), named);
        Ok(Run {
            name,
            config,
            plan,
            threads,
            control,
            handle,
            started_unix_ns,
            watching,
            watch,
            held,
            service: None,
            recorder,
        })
    }
}

/// Gives rings to the parts whose misses are to be explained.
fn prepare(plan: &Plan, parts: &mut [bind::Part]) -> Option<(Vec<Rings>, Owner)> {
    let recorded = crate::plan::recorded_parts(plan);
    let mut chosen: Vec<&mut bind::Part> =
        parts.iter_mut().zip(recorded).filter(|(_, recorded)| *recorded).map(|(part, _)| part).collect();
    if chosen.is_empty() {
        return None;
    }
    let (rings, owner) = crate::explain::rings(chosen.iter().map(|part| &part.owner));
    chosen.iter_mut().zip(&rings).for_each(|(part, rings)| part.rings = Some(rings.clone()));
    Some((rings, owner))
}

/// Says that a worker's thread ends, however that comes.
struct Departure {
    control: Arc<Control>,
    worker: usize,
}

impl Drop for Departure {
    fn drop(&mut self) {
        self.control.barrier.leave(self.worker);
    }
}
