//! From plan to running workers, and back to a record.

mod bind;
mod conditions;
mod life;
mod roam;
mod set_up;

use crate::chunk::Info;
use crate::graph::Graph;
use crate::options::Options;
use crate::plan::{GraphError, Plan};
use crate::record::{self, ThreadReport};
use crate::team::Team;
use crate::when::{Event, Gate, Watcher, Watching, When};
use crate::worker::Stuck;
use life::Begin;
use onbeat_queue::Seed;
use onbeat_queue::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use onbeat_trace::Record;
use std::collections::BTreeMap;
use std::sync::{Arc, Barrier, Mutex, OnceLock, PoisonError, mpsc};
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

/// Shared by the workers and whoever watches them.
pub(crate) struct Control {
    /// See [`stop`].
    stop: AtomicU32,
    /// On the run's clock, when a worker last looked. Relaxed everywhere: a picture for people.
    now_ns: AtomicU64,
    position_ns: AtomicU64,
    /// 0 while unknown.
    length_ns: AtomicU64,
    /// Where a clock that runs faster or slower has left the real one.
    pub origin_ns: u64,
    /// On the run's clock: the first step's time. Set when all operators have started.
    start_ns: OnceLock<u64>,
    team: Team,
    /// Where workers wait for each other: before the first step, after the last, and between their stops.
    gate: Barrier,
    faults: Mutex<Vec<Fault>>,
    /// What was left on the workers that saw that nothing goes on.
    stuck: Mutex<Vec<Stuck>>,
}

/// Bits of [`Control::stop`].
mod stop {
    /// A stop was asked for.
    pub const ASKED: u32 = 1;
    /// A worker has told its sources.
    pub const TOLD: u32 = 2;
    /// Something failed: everybody drops what is under way.
    pub const ABORT: u32 = 4;
}

/// Something that failed.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// Of the plan; `None` where it is no operator's.
    pub operator: Option<usize>,
    pub text: String,
}

impl Control {
    fn new(team: Team, workers: usize) -> Self {
        Control {
            stop: AtomicU32::new(0),
            now_ns: AtomicU64::new(0),
            position_ns: AtomicU64::new(0),
            length_ns: AtomicU64::new(0),
            origin_ns: onbeat_os::clock::monotonic_ns(),
            start_ns: OnceLock::new(),
            team,
            gate: Barrier::new(workers),
            faults: Mutex::new(Vec::new()),
            stuck: Mutex::new(Vec::new()),
        }
    }

    // Relaxed throughout: the flags publish nothing but themselves, and what failed lies behind a lock.
    #[inline]
    pub fn stop_asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub fn is_aborted(&self) -> bool {
        self.stop.load(Ordering::Relaxed) & stop::ABORT != 0
    }

    pub fn set_stopped(&self) {
        self.stop.fetch_or(stop::TOLD, Ordering::Relaxed);
    }

    pub fn was_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) & stop::TOLD != 0
    }

    fn ask_to_stop(&self) {
        self.stop.fetch_or(stop::ASKED, Ordering::Relaxed);
        self.team.wake_all();
    }

    /// Notes what failed, and has all workers drop what is under way.
    fn fail(&self, fault: Fault) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
        self.stop.fetch_or(stop::ABORT, Ordering::Relaxed);
        self.team.wake_all();
    }

    fn has_failed(&self) -> bool {
        !self.faults.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub fn publish(&self, now_ns: u64, position_ns: u64) {
        self.now_ns.store(now_ns, Ordering::Relaxed);
        if position_ns > self.position_ns.load(Ordering::Relaxed) {
            self.position_ns.store(position_ns, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Control({} workers, stop {})", self.team.len(), self.stop.load(Ordering::Relaxed))
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Time since the start, on the run's clock.
    pub elapsed_ns: u64,
    /// Source time of the latest message that was looked at.
    pub position_ns: u64,
    /// Source time at the end, where a source knows it.
    pub length_ns: Option<u64>,
}

/// Ends a run from outside: from another thread, from a signal handler's thread.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<Control>);

impl Stopper {
    /// Asks the sources to end. What is under way is worked off, files are finished, the record is made.
    pub fn stop(&self) {
        self.0.ask_to_stop();
    }

    /// How far the run is.
    pub fn progress(&self) -> Position {
        let start_ns = self.0.start_ns.get().copied().unwrap_or(0);
        let length_ns = self.0.length_ns.load(Ordering::Relaxed);
        Position {
            elapsed_ns: self.0.now_ns.load(Ordering::Relaxed).saturating_sub(start_ns),
            position_ns: self.0.position_ns.load(Ordering::Relaxed),
            length_ns: (length_ns > 0).then_some(length_ns),
        }
    }
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
/// let stopper = run.stopper();
/// stopper.stop();
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
    started_unix_ns: u64,
    gates: BTreeMap<String, Gate>,
    events: BTreeMap<String, Event>,
    watching: Option<Watching>,
}

impl Run {
    /// The gate of this name.
    pub fn gate(&self, name: &str) -> Option<&Gate> {
        self.gates.get(name)
    }

    /// The event of this name.
    pub fn event(&self, name: &str) -> Option<&Event> {
        self.events.get(name)
    }

    /// A handle to stop and watch it from elsewhere.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.control))
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`RunError::Failed`] when an operator failed or nothing could go on.
    pub fn wait(self) -> Result<Record, RunError> {
        let mut reports = Vec::with_capacity(self.threads.len());
        for thread in self.threads {
            let report = thread.join().map_err(|panic| {
                RunError::Begin(format!("a worker itself panicked: {}", life::panic_text(&*panic)))
            })?;
            reports.push(report);
        }
        let ended = record::Ended {
            started_unix_ns: self.started_unix_ns,
            start_ns: self.control.start_ns.get().copied(),
            was_stopped: self.control.was_stopped(),
            faults: self.control.faults.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            helpers: self.watching.and_then(Watching::end).into_iter().collect(),
            stuck: std::mem::take(&mut *self.control.stuck.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        let record = record::record(self.name, self.config, &self.plan, reports, ended);
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
        let (name, config) = (self.name.clone(), self.config.clone());
        let (gates, events) = (self.gates.clone(), self.events.clone());
        let mut seeds: Vec<Vec<Seed<Info>>> = plan.parts.iter().map(|_| Vec::new()).collect();
        // By rising size for each part, as the plan has them.
        for store in &plan.stores {
            let seed = Seed::<Info>::new(store.chunks, store.quantum_bytes as usize)
                .map_err(|error| RunError::Begin(error.to_string()))?;
            seeds[store.part].push(seed);
        }
        let started_unix_ns = onbeat_os::clock::realtime_unix_ns();
        let for_files = self.operators.iter().any(|node| node.when.iter().any(When::waits_for_files));
        let wrong = |error| RunError::Begin(format!("cannot wait for files: {error}"));
        let watcher = for_files.then(Watcher::new).transpose().map_err(wrong)?;
        let bind::Bound { parts, team, threads: seats } = bind::bind(self, &plan, watcher.clone());
        let house_keeping = &plan.options.house_keeping;
        let watching = watcher.map(|watcher| watcher.start(house_keeping)).transpose().map_err(wrong)?;
        let plan = Arc::new(plan);
        let control = Arc::new(Control::new(team, plan.workers.len()));
        let mut given: Vec<Begin> = seats
            .into_iter()
            .enumerate()
            .map(|(worker, (parker, pool))| Begin { worker, parker, pool, parts: Vec::new() })
            .collect();
        let in_pool = |pool| plan.parts.iter().filter(|part| part.pool == pool).count();
        let counts: Vec<usize> = (0..plan.pools.len()).map(in_pool).collect();
        for ((part, seeds), at) in parts.into_iter().zip(seeds).zip(&plan.parts) {
            // Neighbours begin on one thread.
            let workers = &plan.pools[at.pool].workers;
            let worker = workers[part.place as usize * workers.len() / counts[at.pool]];
            given[worker].parts.push((part, seeds));
        }
        let (mut threads, mut begins) = (Vec::new(), Vec::new());
        for worker in &plan.workers {
            let (begin, wait) = mpsc::sync_channel(1);
            let (plan, control) = (Arc::clone(&plan), Arc::clone(&control));
            let main = move || match wait.recv() {
                Ok(begin) => life::live(begin, &plan, &control),
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
        Ok(Run { name, config, plan, threads, control, started_unix_ns, gates, events, watching })
    }
}
