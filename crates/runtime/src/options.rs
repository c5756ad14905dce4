//! How a graph is to be run.

use onbeat_trace::record::{ClockKind, Scheduler};
use serde::{Deserialize, Serialize};

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
    /// Real or virtual time.
    pub clock: ClockKind,
    /// Stop after this much time on the run's clock.
    pub duration_ns: Option<u64>,
    /// How sources keep time, in place of their own parameter.
    pub pace: Option<Pace>,
    /// Whether a setting that is asked for and not obtained is an error.
    pub strict: bool,
    /// Capacity of edges that name none, in messages.
    pub capacity: usize,
    /// Quantum of edges that name none, in bytes.
    pub quantum: usize,
    /// Most bytes that all chunk stores together may have.
    pub store_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            scheduler: Scheduler::Greedy,
            clock: ClockKind::Real,
            duration_ns: None,
            pace: None,
            strict: false,
            capacity: 4,
            quantum: 16 << 10,
            store_bytes: 1 << 30,
        }
    }
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
