//! What threads, operators, edges, paths and stores did, and what was late.

use serde::{Deserialize, Serialize};

use super::{ChangeKind, FaultAction, FaultKind, MissKind, OperatorState, WhenFull};
use crate::cause::Verdict;
use crate::{Buckets, CourseRecord, RegularityRecord, Summary};

/// One thread that the run started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// Its name, as the kernel knows it.
    pub name: String,
    /// What it was for, in a few words.
    pub purpose: String,
    /// The kernel's id of it.
    pub tid: i32,
    /// The time that it had a core, in nanoseconds, as the kernel counted it.
    pub cpu_ns: u64,
    /// The time that it spent in steps, in nanoseconds; 0 for a thread that is no worker.
    pub busy_ns: u64,
    /// The time that it spent waiting for something to do, in nanoseconds; 0 for a thread that is no
    /// worker.
    pub idle_ns: u64,
    /// What the kernel's scheduler gave it in the end, as rtla writes it; `None` where that was not looked at.
    #[serde(default)]
    pub policy: Option<String>,
    /// Page faults without disk between its first step and its last; `None` for a thread that is no worker.
    #[serde(default)]
    pub minor_faults: Option<u64>,
    /// Page faults with disk; the same.
    #[serde(default)]
    pub major_faults: Option<u64>,
    /// How often it asked for memory between its first step and its last; `None` where the program does not count.
    #[serde(default)]
    pub allocations: Option<u64>,
    /// The most that it slept past a time that it was to be woken at, in nanoseconds; `None` for a thread that never was.
    #[serde(default)]
    pub wake_late_max_ns: Option<u64>,
    /// What it did for others of its pool; `None` where it shared nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
}

/// What one thread of several that share operators did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    /// How often it took up an operator.
    pub taken: u64,
    /// How many of those another thread had offered.
    pub stolen: u64,
    /// How often it woke another thread.
    pub woken: u64,
    /// How often it went to sleep.
    pub parked: u64,
    /// How many messages it carried through operators that another thread had taken up.
    #[serde(default)]
    pub helped: u64,
}

/// What one operator did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperatorRecord {
    /// Its name in the graph.
    pub name: String,
    /// Its kind, as the configuration calls it.
    pub kind: String,
    /// The worker that stepped it; where several may, the one that did so most.
    pub worker: String,
    /// How many steps it made.
    pub steps: u64,
    /// How many of them were timed: all if it has a period, a deadline or a path limit, else a sample.
    pub timed_steps: u64,
    /// How long the timed steps took.
    pub step: Summary,
    /// The same by length; `None` where nothing was timed.
    #[serde(default)]
    pub steps_by_time: Option<Buckets>,
    /// The time that all its steps took, in nanoseconds; projected from the timed ones.
    pub busy_ns: u64,
    /// `busy_ns` as a share of the run's duration: 0 to 1, where 1 is a whole core.
    pub share: f64,
    /// The deadline of a step after its due time, in nanoseconds, if it has one.
    pub deadline_ns: Option<u64>,
    /// How many steps ended after their deadline.
    pub late: u64,
    /// How often it edited a chunk that others held too, so that the chunk had to be copied.
    pub copies: u64,
    /// How often it was started anew after it had failed.
    #[serde(default)]
    pub restarts: u64,
    /// On how many workers it was, with a copy of it on each: 1 but under `replicated`. The other fields are of all of them.
    #[serde(default = "one")]
    pub workers: u64,
    /// What became of it.
    pub state: OperatorState,
}

fn one() -> u64 {
    1
}

/// What went over one edge, in messages unless the name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EdgeRecord {
    /// The output that it begins at: `operator.port`.
    pub from: String,
    /// The input that it ends at: `operator.port`.
    pub to: String,
    /// The type of its messages.
    pub message: String,
    /// How many it holds.
    pub capacity: u64,
    /// What it does when it is full.
    pub when_full: WhenFull,
    /// The size of its chunks in bytes, if its messages are chunks.
    pub quantum_bytes: Option<u64>,
    /// Put in, what it then dropped included.
    pub sent: u64,
    /// Taken out.
    pub received: u64,
    /// Dropped by its `when_full`.
    pub dropped: u64,
    /// Left in it at the end, or sent after its consumer had ended.
    pub unread: u64,
    /// The most that it held at a time.
    pub depth_max: u64,
    /// How many it held on average over the messages sent, if that was measured.
    pub depth_mean: Option<f64>,
}

/// The latency of one path: from the due time of its source to the end of its sink's step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathRecord {
    /// The source operator.
    pub from: String,
    /// The sink operator.
    pub to: String,
    /// The limit in nanoseconds, if one was set.
    pub max_latency_ns: Option<u64>,
    /// The latencies.
    pub latency: Summary,
    /// How many were above the limit.
    pub misses: u64,
    /// The latencies by length; `None` where there were none.
    #[serde(default)]
    pub latencies_by_time: Option<Buckets>,
    /// The latencies over time.
    #[serde(default)]
    pub course: Option<CourseRecord>,
    /// How regularly messages came out; `None` where no two followed each other.
    #[serde(default)]
    pub regularity: Option<RegularityRecord>,
    /// The most that `latency` can come to by the longest steps and wake-ups of this run, in nanoseconds, whatever comes together;
    /// `None` where there is no bound. See `onbeat_runtime::response`.
    #[serde(default)]
    pub worst_ns: Option<u64>,
    /// What might be under way at once, if that was limited.
    #[serde(default)]
    pub max_in_flight: Option<InFlightLimit>,
    /// How many messages were under way at once, on average over the run: those that the source sent per second, times their mean
    /// latency (J. D. C. Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9, 1961). `None` where nothing was
    /// measured.
    #[serde(default)]
    pub in_flight_mean: Option<f64>,
    /// Most at once; `None` where that was not limited, and not counted therefore.
    #[serde(default)]
    pub in_flight_most: Option<u64>,
    /// The messages that took longest, the longest first, with their steps; empty where steps were not recorded.
    #[serde(default)]
    pub slowest: Vec<SlowMessage>,
}

/// What may be under way on a path at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InFlightLimit {
    /// So many messages of its source.
    Messages(u64),
    /// So much time from the due time of the last one that has arrived to that of the last one sent, in nanoseconds.
    #[serde(rename = "time_ns")]
    Time(u64),
}

/// One of the messages that took longest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowMessage {
    /// Which message of its source, from 0.
    pub sequence: u64,
    /// When it arrived, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// How long it took from its due time, in nanoseconds.
    pub latency_ns: u64,
    /// Its steps, in their order.
    pub steps: Vec<SlowStep>,
}

/// One step of such a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowStep {
    /// The operator.
    pub operator: String,
    /// From the due time of the message to the begin of the step, in nanoseconds; less than 0 where the step began before.
    pub begin_ns: i64,
    /// How long it took, in nanoseconds.
    pub step_ns: u64,
}

/// What one chunk store gave out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreRecord {
    /// Whose operators fill its chunks: a worker, or the first operator of several that go from worker to worker together.
    pub worker: String,
    /// The size of its chunks in bytes.
    pub quantum_bytes: u64,
    /// How many chunks it has.
    pub chunks: u64,
    /// The most that were out at a time.
    pub in_use_max: u64,
    /// How often it was asked for one and had none.
    pub refused: u64,
    /// How many of its chunks were given out to hold the copy of a shared one.
    pub copies: u64,
}

/// One step or path that was later than its limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    /// When it ended, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Which limit was missed.
    pub kind: MissKind,
    /// Of what: the operator, or `from → to` of a path.
    pub name: String,
    /// Which message of its source, from 0.
    pub sequence: u64,
    /// How long it took from the due time, in nanoseconds.
    pub value_ns: u64,
    /// How long it might have taken, in nanoseconds.
    pub limit_ns: u64,
    /// `value_ns` less `limit_ns`, in nanoseconds.
    pub late_ns: u64,
    /// Why; `None` where that was not looked for.
    #[serde(default)]
    pub verdict: Option<Verdict>,
}

/// One thing that was changed from outside while the run was under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// When, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Of which operator.
    pub operator: String,
    /// What was done.
    pub what: ChangeKind,
    /// The parameter that was set.
    pub parameter: Option<String>,
    /// What it was set to.
    pub value: Option<serde_json::Value>,
    /// The sample of its input from which on, if one was named.
    pub sample: Option<u64>,
}

/// One failure of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// When, in nanoseconds since the start of the run; 0 for one before the first step.
    pub time_ns: u64,
    /// Which operator; `None` where it was none's fault.
    pub operator: Option<String>,
    /// In a word.
    pub what: FaultKind,
    /// What it said.
    pub text: String,
    /// What the run did about it.
    pub then: FaultAction,
    /// After what time it is started anew, in nanoseconds.
    pub delay_ns: Option<u64>,
    /// Where the thread was that did not return, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}
