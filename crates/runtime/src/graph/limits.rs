//! Limits that the user states: reactions to late messages, and the number of messages in flight on a path.

use onbeat_trace::record::InFlightLimit;
use serde::{Deserialize, Serialize};

/// Reaction to a missed deadline or path limit. Each miss is recorded in any case.
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
    /// None.
    #[default]
    Record,
    /// The source of the message skips its next tick, so that the messages after it catch up. A source
    /// without a period is not slowed down.
    Skip,
    /// The engine calls [`Operator::degrade`](crate::Operator::degrade), so that the operator does less work
    /// if it can.
    Degrade,
    /// The run ends with exit status 2. Messages in flight are still processed.
    Stop,
}

/// Limits of a path. The default has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathLimits {
    /// Longest time from the source's due time to the end of the sink's step, in nanoseconds.
    pub max_latency_ns: Option<u64>,
    /// Most messages or bytes that may be in flight at once.
    pub max_in_flight: Option<InFlightLimit>,
    /// Reaction to a missed `max_latency_ns`. [`OnMiss::Degrade`] is not allowed: it belongs to an operator.
    pub on_miss: OnMiss,
}
