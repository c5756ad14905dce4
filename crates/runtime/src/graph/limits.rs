//! Limits that are the user's: what becomes of a message that is too late, and how many may be in flight on a
//! path.

use onbeat_trace::record::InFlightLimit;
use serde::{Deserialize, Serialize};

/// What happens when a deadline or the limit of a path was missed. It is noted in any case.
///
/// ```
/// use onbeat_runtime::{Graph, OnMiss, Options};
/// let mut graph = Graph::new("late");
/// let mut left = 100u32;
/// let numbers = graph.source("numbers", move || { left -= 1; (left > 0).then_some(left) });
/// let slow = graph.sink("slow", |_: u32| std::thread::sleep(std::time::Duration::from_millis(2)));
/// graph.connect(numbers, |s| &s.out, slow, |e| &e.input);
/// graph.deadline(slow, 1_000_000);
/// graph.on_miss(slow, OnMiss::Stop);
/// let record = graph.run(&Options::default())?;
/// assert_eq!((record.misses_total, record.result.exit_status), (1, 2));
/// # Ok::<(), onbeat_runtime::RunError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMiss {
    /// Nothing more.
    #[default]
    Record,
    /// The source of the message leaves out its next tick, so that what follows catches up. A source without
    /// a period is not slowed down.
    Skip,
    /// The operator is told ([`Operator::degrade`](crate::Operator::degrade)) and does less, if it can.
    Degrade,
    /// The run ends: what is under way is worked off, and the exit status is 2.
    Stop,
}

/// Limits of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathLimits {
    /// From the source's due time to the end of the step at its end, in nanoseconds.
    pub max_latency_ns: Option<u64>,
    /// What may be under way at once.
    pub max_in_flight: Option<InFlightLimit>,
    /// What happens when `max_latency_ns` was missed; anything but [`OnMiss::Degrade`], which is an
    /// operator's.
    pub on_miss: OnMiss,
}
