//! How a graph is to be run.

use crate::base::idle::Idle;
use onbeat_os::Policy;
use onbeat_trace::record::{ClockKind, Scheduler};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most bytes of a stack that are brought in: a thread has 2 MiB, and operators need some.
pub(crate) const PREFAULT_MOST_BYTES: usize = 1 << 20;

/// Settings of one run. The default runs `greedy` on the real clock until all sources end.
///
/// ```
/// use onbeat_runtime::{Options, Pace};
/// let options = Options { pace: Some(Pace::Fast), duration_ns: Some(2_000_000_000), ..Options::default() };
/// # assert_eq!(options.capacity, 4);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Options {
    /// The recipe that makes workers of the graph.
    pub scheduler: Scheduler,
    /// Cores to run on, one worker on each. Empty: `greedy` runs wherever the kernel puts it, `pinned` and `event` take all
    /// cores that the process may use.
    pub cores: Vec<usize>,
    /// Cores for threads that are no workers. Workers that are given no cores keep off them.
    pub house_keeping: Vec<usize>,
    /// For `event`: what its workers share.
    pub share: Share,
    /// For `pinned` and `event`: how many workers there are, where no cores are named. They then run wherever the kernel puts them.
    pub workers: Option<usize>,
    /// How workers wait for something to do.
    pub idle: Idle,
    /// For `pinned`: what operators have cost before, by name, in any unit that all share (such as the busy time of an earlier
    /// record). Those that are not named count by their own `cost`.
    pub costs: BTreeMap<String, f64>,
    /// Real or virtual time.
    pub clock: ClockKind,
    /// How many times faster than real time the run's clock goes, from 1e-6 to 1e6. All times of the run are on that clock:
    /// periods, paces, limits, and what the record says.
    pub scale: f64,
    /// Stop after this much time on the run's clock.
    pub duration_ns: Option<u64>,
    /// How sources keep time, in place of their own parameter.
    pub pace: Option<Pace>,
    /// For `custom`: its pools. Operators that are in none go to one called `default`.
    pub pools: Vec<Pool>,
    /// What the kernel's scheduler gives to workers whose pool says nothing else; `None` for what the program has.
    #[serde(serialize_with = "as_text")]
    pub policy: Option<Policy>,
    /// Whether the memory of the process stays in main memory while it runs.
    pub lock_memory: bool,
    /// Bytes of each worker's stack that are brought in before the first step, 1 MiB at most. `None`: 256 KiB for workers with a
    /// real-time policy, and for others nothing.
    pub prefault: Option<usize>,
    /// Whether chunk stores ask for huge pages.
    pub huge_pages: bool,
    /// Whether chunk stores lie on the node of the cores that fill them.
    pub numa: bool,
    /// By how much timers of workers may be late; `None` for what the kernel gives, 50 µs. Workers with a real-time policy
    /// have none.
    pub timer_slack_ns: Option<u64>,
    /// How long idle cores may take to wake up while it runs, in microseconds; `None` for what the machine does.
    pub dma_latency_us: Option<u32>,
    /// Whether to run what may hang this machine: a real-time worker that never sleeps on a core that others need.
    pub force: bool,
    /// Whether a setting that is asked for and not obtained is an error.
    pub strict: bool,
    /// Real time after which an operator whose code has not returned is said to hang, in nanoseconds; `None` to look for none.
    pub watchdog_ns: Option<u64>,
    /// What becomes of the run then.
    pub on_hang: OnHang,
    /// Whether to find out why messages were late.
    pub explain: Explain,
    /// Capacity of edges that name none, in messages.
    pub capacity: usize,
    /// Quantum of edges that name none, in bytes.
    pub quantum: usize,
    /// Most bytes that all chunk stores together may have. The default is half of the machine's memory: pages that are never
    /// used are never there.
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

/// Threads with the same cores and policy, and the operators that they step. With several workers, any of them steps any
/// operator of the pool, as under `event`.
///
/// ```
/// use onbeat_runtime::{Graph, Idle, Options, Pool, Scheduler};
/// let mut graph = Graph::new("two pools");
/// let ones = graph.source("ones", || Some(1u8));
/// let end = graph.sink("end", |_: u8| ());
/// graph.connect(ones, |s| &s.out, end, |e| &e.input);
/// let radio = Pool::new("radio").cores([0]).policy("f:80".parse()?).operators(["ones"]);
/// let options = Options { scheduler: Scheduler::Custom, pools: vec![radio], idle: Idle::Park, ..Options::default() };
/// let plan = graph.plan(&options)?;
/// assert_eq!(plan.pools[0].policy.unwrap().to_string(), "f:80");
/// assert_eq!(plan.pools[1].name, "default");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Pool {
    /// Its name, which its threads have too.
    pub name: String,
    /// Its cores, one worker on each. None: its workers run wherever the kernel puts them.
    pub cores: Vec<usize>,
    /// How many workers it has, where no cores are named; one if nothing is said.
    pub workers: Option<usize>,
    /// What the kernel's scheduler gives its workers; `None` for [`Options::policy`].
    #[serde(serialize_with = "as_text")]
    pub policy: Option<Policy>,
    /// How its workers wait; `None` for [`Options::idle`].
    pub idle: Option<Idle>,
    /// Names of its operators; that of a subgraph stands for all that are in it.
    pub operators: Vec<String>,
}

impl Pool {
    /// A pool without operators.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Pool { name: name.into(), ..Pool::default() }
    }

    /// One worker on each of these cores.
    #[must_use]
    pub fn cores(self, cores: impl IntoIterator<Item = usize>) -> Self {
        Pool { cores: cores.into_iter().collect(), ..self }
    }

    /// So many workers, wherever the kernel puts them.
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        Pool { workers: Some(workers), ..self }
    }

    /// What the kernel's scheduler gives its workers.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        Pool { policy: Some(policy), ..self }
    }

    /// How its workers wait.
    #[must_use]
    pub fn idle(self, idle: Idle) -> Self {
        Pool { idle: Some(idle), ..self }
    }

    /// These operators are in it too.
    #[must_use]
    pub fn operators<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.operators.extend(names.into_iter().map(Into::into));
        self
    }
}

/// For serde: a policy as it is written.
pub(crate) fn as_text<S: serde::Serializer>(
    policy: &Option<Policy>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    policy.map(|policy| policy.to_string()).serialize(serializer)
}

/// What the workers of `event` share with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Operators whose steps take longer than the way to another worker: 5 µs on average where idle workers park, 1 µs where they
    /// spin. Lighter ones stay with what they follow.
    #[default]
    Heavy,
    /// All: for experiments.
    Always,
}

/// What becomes of a run when the code of an operator does not return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnHang {
    /// It is said, and waited for: until somebody asks for the end of the run.
    #[default]
    Wait,
    /// The run fails: all others end as they do after an error, and the thread that hangs is left to itself.
    Stop,
}

/// Whether it is found out why messages were late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Explain {
    /// Where something has a limit: a path its `max_latency`, an operator its `deadline` or `budget`.
    #[default]
    Auto,
    /// The steps of all operators are recorded.
    On,
    /// Nothing is recorded.
    Off,
}

/// How a source with a sample rate keeps time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// A chunk comes when its last sample is due.
    Real,
    /// A chunk comes as soon as there is room.
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
