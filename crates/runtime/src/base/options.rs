//! Settings of a run.

use crate::base::idle::Idle;
use onbeat_os::Policy;
use onbeat_trace::record::{ClockKind, Scheduler};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most bytes of a stack that can be prefaulted: a thread has 2 MiB, and operators need some.
pub(crate) const PREFAULT_MOST_BYTES: usize = 1 << 20;

/// Settings of one run. The default runs everything on one thread (`greedy`) and the real clock, until all
/// sources end.
///
/// Settings that the kernel refuses are noted in the record; under [`strict`](Options::strict) they are
/// errors.
///
/// ```
/// use onbeat_runtime::{Options, Pace};
/// let options = Options { pace: Some(Pace::Fast), duration_ns: Some(2_000_000_000), ..Options::default() };
/// # assert_eq!(options.capacity, 4);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Options {
    /// Recipe that makes workers of the graph. Default: `greedy`, one worker.
    pub scheduler: Scheduler,
    /// Cores to run on, with one worker each. Default: none named. Then `greedy` runs on the core that the
    /// kernel chooses, and `pinned` and `event` use all cores that the process may use.
    pub cores: Vec<usize>,
    /// Cores for non-worker threads. Workers without named cores avoid these cores. Default: the cores of the
    /// process without a worker, or all of them; see [`Plan::house_keeping`](crate::Plan::house_keeping).
    pub house_keeping: Vec<usize>,
    /// For `event`: the operators that its workers share. Default: [`Share::Heavy`].
    pub share: Share,
    /// For `pinned` and `event`: number of workers if no cores are named. The kernel then chooses their
    /// cores. Default: `None`, one worker per core.
    pub workers: Option<usize>,
    /// How workers wait for work. Default: [`Idle::Park`].
    pub idle: Idle,
    /// For `pinned`: cost of operators by name, all in the same unit, for example their busy times in an
    /// earlier record. For operators without an entry their own [`cost`](crate::Graph::cost) counts.
    pub costs: BTreeMap<String, f64>,
    /// Real or virtual time. Default: real.
    pub clock: ClockKind,
    /// Speed of the run's clock as a multiple of real time, from 1e-6 to 1e6. Default: 1. All times of the
    /// run are on this clock: periods, paces, limits and the times in the record.
    pub scale: f64,
    /// Time on the run's clock after which the run is stopped, in nanoseconds. Default: `None`, it runs until
    /// all sources end.
    pub duration_ns: Option<u64>,
    /// Pace of all sources that keep time, by a sample rate or by a period. Default: `None`. Then sources
    /// with a sample rate follow their own parameter, and periodic sources keep real time.
    pub pace: Option<Pace>,
    /// Whether the end of the run waits until the files of its sinks are on the disk. Default: yes. Otherwise
    /// the kernel writes them within the next half minute or so; until then a power failure can lose them,
    /// and an error of the disk is not reported.
    pub sync_files: bool,
    /// For `custom`: its pools. Operators without a pool go to a pool called `default`.
    pub pools: Vec<Pool>,
    /// Kernel scheduling policy of workers, unless their pool has one. Default: `None`, the policy of the
    /// process.
    #[serde(serialize_with = "as_text")]
    pub policy: Option<Policy>,
    /// Whether the memory of the process is locked into main memory during the run. Default: no.
    pub lock_memory: bool,
    /// Bytes of each worker's stack to prefault before the first step, at most 1 MiB. Default: `None`, 256
    /// KiB for workers with a real-time policy, 0 for others.
    pub prefault: Option<usize>,
    /// Whether chunk stores ask for huge pages. Default: no.
    pub huge_pages: bool,
    /// Whether the memory of chunk stores is on the NUMA node of the cores that fill them. Default: no.
    pub numa: bool,
    /// Time by which timers of workers may be late, in nanoseconds. Default: `None`, the kernel's value of 50
    /// µs. It does not apply to workers with a real-time policy.
    pub timer_slack_ns: Option<u64>,
    /// Longest time that idle cores may take to wake up during the run, in microseconds. Default: `None`, the
    /// setting of the machine.
    pub dma_latency_us: Option<u32>,
    /// Whether to run even if that may hang this machine: a real-time worker that never sleeps on a core that
    /// others need. Default: no.
    pub force: bool,
    /// Whether a setting that was asked for and not obtained is an error. Default: no, it is noted.
    pub strict: bool,
    /// Real time in nanoseconds after which an operator counts as hanging if its code has not returned.
    /// Default: 10 s. `None` turns the watchdog off.
    pub watchdog_ns: Option<u64>,
    /// How the run continues if an operator hangs. Default: [`OnHang::Wait`].
    pub on_hang: OnHang,
    /// Whether to find the causes of late messages. Default: [`Explain::Auto`].
    pub explain: Explain,
    /// Capacity in messages of edges that name none. Default: 4.
    pub capacity: usize,
    /// Quantum in bytes of edges that name none. Default: 16 KiB. An edge on which larger frames are known to
    /// come has room for one; an edge from a source that keeps time has room for 100 ms of samples at most,
    /// unless samples go round in a cycle.
    pub quantum: usize,
    /// Most bytes of all chunk stores together. Default: half of the machine's memory. Pages that are never
    /// used take no memory.
    pub store_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            scheduler: Scheduler::Greedy,
            cores: Vec::new(),
            house_keeping: Vec::new(),
            workers: None,
            share: Share::Heavy,
            idle: Idle::Park,
            costs: BTreeMap::new(),
            clock: ClockKind::Real,
            scale: 1.0,
            duration_ns: None,
            pace: None,
            sync_files: true,
            pools: Vec::new(),
            policy: None,
            lock_memory: false,
            prefault: None,
            huge_pages: false,
            numa: false,
            timer_slack_ns: None,
            dma_latency_us: None,
            force: false,
            strict: false,
            watchdog_ns: Some(10_000_000_000),
            on_hang: OnHang::Wait,
            explain: Explain::Auto,
            capacity: 4,
            quantum: 16 << 10,
            store_bytes: usize::try_from(onbeat_os::memory::total_bytes() / 2).unwrap_or(usize::MAX),
        }
    }
}

/// A pool of the scheduler `custom`: threads with the same cores and policy, and the operators that they
/// step.
///
/// If a pool has several workers, any of them steps any operator of the pool, as under `event`.
///
/// ```
/// use onbeat_runtime::{Graph, Idle, Options, Pool, Scheduler};
/// let mut graph = Graph::new("two pools");
/// let ones = graph.source("ones", || Some(1u8));
/// let end = graph.sink("end", |_: u8| ());
/// graph.connect(ones, |s| &s.out, end, |e| &e.input);
/// let radio = Pool::new("radio").cores([0]).policy("f:80".parse()?).operators(["ones"]);
/// let pools = vec![radio];
/// let options = Options { scheduler: Scheduler::Custom, pools, idle: Idle::Park, ..Options::default() };
/// let plan = graph.plan(&options)?;
/// assert_eq!(plan.pools[0].policy.unwrap().to_string(), "f:80");
/// assert_eq!(plan.pools[1].name, "default");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Pool {
    /// Name of the pool and of its threads.
    pub name: String,
    /// Cores, with one worker each. Empty: the kernel chooses the cores.
    pub cores: Vec<usize>,
    /// Number of workers if no cores are named. `None`: 1.
    pub workers: Option<usize>,
    /// Kernel scheduling policy of its workers. `None`: [`Options::policy`].
    #[serde(serialize_with = "as_text")]
    pub policy: Option<Policy>,
    /// How its workers wait for work. `None`: [`Options::idle`].
    pub idle: Option<Idle>,
    /// Names of its operators. The name of a subgraph stands for all operators in it.
    pub operators: Vec<String>,
}

impl Pool {
    /// Makes a pool with one worker and without operators.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Pool { name: name.into(), ..Pool::default() }
    }

    /// Sets the cores, with one worker each.
    #[must_use]
    pub fn cores(self, cores: impl IntoIterator<Item = usize>) -> Self {
        Pool { cores: cores.into_iter().collect(), ..self }
    }

    /// Sets the number of workers. The kernel chooses their cores.
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        Pool { workers: Some(workers), ..self }
    }

    /// Sets the kernel scheduling policy of its workers.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        Pool { policy: Some(policy), ..self }
    }

    /// Sets how its workers wait for work.
    #[must_use]
    pub fn idle(self, idle: Idle) -> Self {
        Pool { idle: Some(idle), ..self }
    }

    /// Adds operators, or subgraphs, by name.
    #[must_use]
    pub fn operators<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.operators.extend(names.into_iter().map(Into::into));
        self
    }
}

/// Serializes a policy as text, such as `f:80`.
pub(crate) fn as_text<S: serde::Serializer>(
    policy: &Option<Policy>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    policy.map(|policy| policy.to_string()).serialize(serializer)
}

/// Operators that the workers of `event` share with each other. The default is [`Heavy`](Share::Heavy).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Operators whose steps take longer than a hand-over to another worker: on average 5 µs if idle workers
    /// park, 1 µs if they spin. Lighter operators stay on the worker of their producer.
    #[default]
    Heavy,
    /// All operators, for experiments.
    Always,
}

/// How a run continues if the code of an operator does not return. The default is [`Wait`](OnHang::Wait).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnHang {
    /// The hang is reported, and the run waits for the operator until someone stops the run.
    #[default]
    Wait,
    /// The run fails. All other operators end as after an error, and the hanging thread is abandoned.
    Stop,
}

/// Whether a run finds the causes of late messages. The default is [`Auto`](Explain::Auto).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Explain {
    /// If something has a limit: a path a `max_latency`, or an operator a `deadline` or `budget`.
    #[default]
    Auto,
    /// Always: the steps of all operators are recorded.
    On,
    /// Never: no steps are recorded.
    Off,
}

/// How a source with a sample rate keeps time. The default is [`Fast`](Pace::Fast).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// The source sends a chunk when its last sample is due.
    Real,
    /// The source sends a chunk as soon as there is room.
    #[default]
    Fast,
}

/// A list of cores in a file: `[0, 1]`, `"0-3,5"`, or one number.
pub(crate) struct CoreList(pub Vec<usize>);

impl<'de> Deserialize<'de> for CoreList {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CoreListVisitor;
        impl<'de> serde::de::Visitor<'de> for CoreListVisitor {
            type Value = CoreList;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("cores, such as \"0-3,5\" or [0, 1]")
            }

            fn visit_i64<E: serde::de::Error>(self, core: i64) -> Result<CoreList, E> {
                let core =
                    usize::try_from(core).map_err(|_| E::custom(format!("there is no core {core}")))?;
                Ok(CoreList(vec![core]))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<CoreList, E> {
                let cores: onbeat_os::CoreSet = text.parse().map_err(E::custom)?;
                Ok(CoreList(cores.iter().collect()))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<CoreList, A::Error> {
                let mut cores = Vec::new();
                while let Some(core) = list.next_element()? {
                    cores.push(core);
                }
                Ok(CoreList(cores))
            }
        }
        deserializer.deserialize_any(CoreListVisitor)
    }
}
