//! How a graph is to be run.

use crate::team::Idle;
use onbeat_trace::record::{ClockKind, Scheduler};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// Whether a setting that is asked for and not obtained is an error.
    pub strict: bool,
    /// Real time after which an operator whose code has not returned is said to hang, in nanoseconds; `None` to look for none.
    pub watchdog_ns: Option<u64>,
    /// What becomes of the run then.
    pub on_hang: OnHang,
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
            strict: false,
            watchdog_ns: Some(10_000_000_000),
            on_hang: OnHang::Wait,
            capacity: 4,
            quantum: 16 << 10,
            store_bytes: usize::try_from(onbeat_os::memory::total_bytes() / 2).unwrap_or(usize::MAX),
        }
    }
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
pub(crate) struct Cores(pub Vec<usize>);

impl<'de> Deserialize<'de> for Cores {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Cores;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("cores, such as \"0-3,5\" or [0, 1]")
            }

            fn visit_i64<E: serde::de::Error>(self, core: i64) -> Result<Cores, E> {
                let core =
                    usize::try_from(core).map_err(|_| E::custom(format!("there is no core {core}")))?;
                Ok(Cores(vec![core]))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Cores, E> {
                let cores: onbeat_os::CoreSet = text.parse().map_err(E::custom)?;
                Ok(Cores(cores.iter().collect()))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Cores, A::Error> {
                let mut cores = Vec::new();
                while let Some(core) = list.next_element()? {
                    cores.push(core);
                }
                Ok(Cores(cores))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
