//! Activity of threads, operators, edges, paths and stores, and misses.

use serde::{Deserialize, Serialize};

use super::{ChangeKind, FaultAction, FaultKind, MissKind, OperatorState, WhenFull};
use crate::cause::Verdict;
use crate::{Buckets, CourseRecord, RegularityRecord, Summary};

/// A thread that the run started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// Its name, as the kernel knows it.
    pub name: String,
    /// Its purpose, in a few words.
    pub purpose: String,
    /// Its kernel id.
    pub tid: i32,
    /// CPU time, in nanoseconds, as counted by the kernel.
    pub cpu_ns: u64,
    /// Time spent in steps, in nanoseconds; 0 for a thread that is not a worker.
    pub busy_ns: u64,
    /// Time spent waiting for work, in nanoseconds; 0 for a thread that is not a worker.
    pub idle_ns: u64,
    /// Scheduling policy in force, in rtla's notation; `None` if it was not checked.
    #[serde(default)]
    pub policy: Option<String>,
    /// Page faults without disk between its first step and its last; `None` for a thread that is not a
    /// worker.
    #[serde(default)]
    pub minor_faults: Option<u64>,
    /// Page faults with disk, likewise.
    #[serde(default)]
    pub major_faults: Option<u64>,
    /// Number of allocations between its first step and its last; `None` if the program does not count them.
    #[serde(default)]
    pub allocations: Option<u64>,
    /// Longest delay of a timed wake-up, in nanoseconds; `None` for a thread without one.
    #[serde(default)]
    pub wake_late_max_ns: Option<u64>,
    /// Work shared with other workers of its pool; `None` if it shared none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
}

/// Activity of a worker that shares operators with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    /// Number of times that it took an operator.
    pub taken: u64,
    /// Number of these operators that another worker had offered.
    pub stolen: u64,
    /// Number of times that it woke another worker.
    pub woken: u64,
    /// Number of times that it parked.
    pub parked: u64,
    /// Number of messages that it carried through operators that another worker had taken.
    #[serde(default)]
    pub helped: u64,
}

/// Activity of an operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperatorRecord {
    /// Its name in the graph.
    pub name: String,
    /// Its kind, as in the configuration.
    pub kind: String,
    /// Worker that stepped it; with several workers, the one that did so most.
    pub worker: String,
    /// Number of steps.
    pub steps: u64,
    /// Number of timed steps: all if it has a period, a deadline or a path limit, otherwise a sample.
    pub timed_steps: u64,
    /// Durations of the timed steps.
    pub step: Summary,
    /// The same durations by length; `None` if no step was timed.
    #[serde(default)]
    pub steps_by_time: Option<Buckets>,
    /// Time of all its steps, in nanoseconds, projected from the timed ones.
    pub busy_ns: u64,
    /// `busy_ns` as a fraction of the run's duration: 0 to 1, where 1 is a whole core.
    pub share: f64,
    /// Deadline of a step after its due time, in nanoseconds, if it has one.
    pub deadline_ns: Option<u64>,
    /// Number of steps that ended after their deadline.
    pub late: u64,
    /// Number of times that a chunk had to be copied, because the operator edited it while others held it.
    pub copies: u64,
    /// Number of restarts after a failure.
    #[serde(default)]
    pub restarts: u64,
    /// Number of workers that it was on, with a copy on each: 1 except under `replicated`. The other fields
    /// are totals of all copies.
    #[serde(default = "one")]
    pub workers: u64,
    /// Data that it lost although no setting permits a loss.
    #[serde(default)]
    pub losses: Vec<LossRecord>,
    /// Figures that it measured itself, such as the difference of two clocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<MeasuredRecord>,
    /// Its state at the end.
    pub state: OperatorState,
}

fn one() -> u64 {
    1
}

/// Data of one kind that an operator lost although no setting permits a loss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossRecord {
    /// Number of lost things.
    pub count: u64,
    /// The counted thing, in the plural: `datagrams`, `bytes`.
    pub unit: String,
    /// How they were lost.
    pub reason: String,
}

/// A figure that an operator measured itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRecord {
    /// Its name: `resampling ratio`.
    pub what: String,
    /// Its value.
    pub value: f64,
    /// Its unit: `ns`, `ppm`, or `1` for a ratio.
    pub unit: String,
}

/// Traffic of an edge, in messages unless the name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EdgeRecord {
    /// Output at its start: `operator.port`.
    pub from: String,
    /// Input at its end: `operator.port`.
    pub to: String,
    /// Type of its messages.
    pub message: String,
    /// Number of messages that it holds.
    pub capacity: u64,
    /// Behaviour when it is full.
    pub when_full: WhenFull,
    /// Size of its chunks in bytes, if its messages are chunks.
    pub quantum_bytes: Option<u64>,
    /// Messages put in, including those that it then dropped.
    pub sent: u64,
    /// Messages taken out.
    pub received: u64,
    /// Messages dropped by its `when_full`.
    pub dropped: u64,
    /// Messages left in it at the end, or sent after its consumer had ended.
    pub unread: u64,
    /// Maximum number of messages in it at a time.
    pub depth_max: u64,
    /// Mean number of messages in it, over the messages sent, if it was measured.
    pub depth_mean: Option<f64>,
}

/// Latency of a path: from the due time of its source to the end of its sink's step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathRecord {
    /// Source operator.
    pub from: String,
    /// Sink operator.
    pub to: String,
    /// Limit in nanoseconds, if one was set.
    pub max_latency_ns: Option<u64>,
    /// The latencies.
    pub latency: Summary,
    /// Number of latencies above the limit.
    pub misses: u64,
    /// Latencies by length; `None` if there were none.
    #[serde(default)]
    pub latencies_by_time: Option<Buckets>,
    /// Latencies over time.
    #[serde(default)]
    pub course: Option<CourseRecord>,
    /// Regularity of the output; `None` if no two consecutive messages came out.
    #[serde(default)]
    pub regularity: Option<RegularityRecord>,
    /// Upper bound of `latency`, computed from the longest steps and wake-ups of this run for any coincidence
    /// of them, in nanoseconds; `None` if there is no bound. See `onbeat_runtime::response`.
    #[serde(default)]
    pub worst_ns: Option<u64>,
    /// Limit on the messages in flight, if there was one.
    #[serde(default)]
    pub max_in_flight: Option<InFlightLimit>,
    /// Mean number of messages in flight. With a limit they are counted. Without one, messages that the
    /// source sent per second, times their mean latency (J. D. C. Little, "A Proof for the Queuing Formula: L
    /// = λW", Operations Research 9, 1961): those that are due and not sent yet are among them. `None` if
    /// nothing was measured.
    #[serde(default)]
    pub in_flight_mean: Option<f64>,
    /// Maximum number in flight; `None` without a limit, because it is not counted then.
    #[serde(default)]
    pub in_flight_most: Option<u64>,
    /// Longest time by which `max_in_flight` held back a message that was due, in nanoseconds. Latencies
    /// count from the time at which it let the message go.
    #[serde(default)]
    pub held_back_ns: u64,
    /// Slowest messages, the slowest first, with their steps; empty if steps were not recorded.
    #[serde(default)]
    pub slowest: Vec<SlowMessage>,
}

/// Limit on the messages in flight on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InFlightLimit {
    /// Number of messages of its source.
    Messages(u64),
    /// Time from the due time of the last message that arrived to that of the last one sent, in nanoseconds.
    #[serde(rename = "time_ns")]
    Time(u64),
}

/// One of the slowest messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowMessage {
    /// Its number among the messages of its source, from 0.
    pub sequence: u64,
    /// Time of its arrival, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Latency from its due time, in nanoseconds.
    pub latency_ns: u64,
    /// Its steps, in order.
    pub steps: Vec<SlowStep>,
}

/// A step of a slow message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowStep {
    /// The operator.
    pub operator: String,
    /// Time from the due time of the message to the start of the step, in nanoseconds; negative if the step
    /// began before.
    pub begin_ns: i64,
    /// Duration, in nanoseconds.
    pub step_ns: u64,
}

/// Activity of a chunk store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreRecord {
    /// Worker whose operators fill its chunks, or the first of several operators that move between workers
    /// together.
    pub worker: String,
    /// Size of its chunks in bytes.
    pub quantum_bytes: u64,
    /// Number of its chunks.
    pub chunks: u64,
    /// Maximum number of chunks in use at a time.
    pub in_use_max: u64,
    /// Number of requests when it had no chunk.
    pub refused: u64,
    /// Number of chunks that were used to copy a shared chunk.
    pub copies: u64,
}

/// A step or a path that was later than its limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    /// Time of its end, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Limit that was missed.
    pub kind: MissKind,
    /// The operator, or `from → to` of a path.
    pub name: String,
    /// Number of the message among those of its source, from 0.
    pub sequence: u64,
    /// Time since the due time, in nanoseconds.
    pub value_ns: u64,
    /// The limit, in nanoseconds.
    pub limit_ns: u64,
    /// `value_ns` minus `limit_ns`, in nanoseconds.
    pub late_ns: u64,
    /// Explanation; `None` if it was not looked for.
    #[serde(default)]
    pub verdict: Option<Verdict>,
}

/// A change made from outside during the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// Time, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// The operator.
    pub operator: String,
    /// Kind of change.
    pub what: ChangeKind,
    /// Parameter that was set.
    pub parameter: Option<String>,
    /// Its new value.
    pub value: Option<serde_json::Value>,
    /// First sample of the operator's input to which it applies, if one was named.
    pub sample: Option<u64>,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// Time, in nanoseconds since the start of the run; 0 for one before the first step.
    pub time_ns: u64,
    /// The operator; `None` if it was not the fault of one.
    pub operator: Option<String>,
    /// Kind of failure.
    pub what: FaultKind,
    /// Its message.
    pub text: String,
    /// Reaction of the run.
    pub then: FaultAction,
    /// Delay before the operator is restarted, in nanoseconds.
    pub delay_ns: Option<u64>,
    /// Stack of the thread that did not return, innermost frame first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}
