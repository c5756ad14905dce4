//! Causes of lateness: their classes, the split of one miss, and the table of a run.

mod fixes;

use std::fmt;

pub use fixes::CauseFix;
use serde::{Deserialize, Serialize};

/// Class of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseClass {
    /// A source waited for its data, or the message for one of another source that was due later.
    InputLate,
    /// An operator computed for longer than its budget or its usual time, not counting time without a core.
    OwnCompute,
    /// The worker was busy with another step.
    QueueWait,
    /// A downstream edge had no room.
    DownstreamFull,
    /// Another thread had the core.
    Preempted,
    /// The thread was ready to run, by the kernel's records or counters, and the thread that had the core is
    /// unknown.
    RunQueueWait,
    /// A hardware interrupt.
    Irq,
    /// Deferred interrupt work.
    Softirq,
    /// A non-maskable interrupt.
    Nmi,
    /// Memory that was not present.
    PageFault,
    /// The thread waited in a system call.
    SystemCall,
    /// The thread waited for another thread of its process.
    Lock,
    /// The thread waited for the lock of the Python interpreter (GIL), which this operator or thread had.
    GilWait,
    /// The message left the other run, from which it came over a link, so late.
    OtherNode,
    /// The message was on its way from another run.
    Network,
    /// The thread was stopped by a signal or a debugger.
    Stopped,
    /// The thread moved to another core.
    Migration,
    /// The kernel kept a real-time thread from its core to give time to other threads.
    RtThrottling,
    /// A `SCHED_DEADLINE` thread had used up the run time of its period.
    DeadlineBudget,
    /// The thread was woken too late.
    TimerLate,
    /// Data had come, and the worker had not found them yet: it slept, or had not looked.
    SocketWait,
    /// The hypervisor or the firmware had the core.
    Hardware,
    /// No known cause.
    Unexplained,
}

impl CauseClass {
    /// Returns its word in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            CauseClass::InputLate => "input_late",
            CauseClass::OwnCompute => "own_compute",
            CauseClass::QueueWait => "queue_wait",
            CauseClass::DownstreamFull => "downstream_full",
            CauseClass::Preempted => "preempted",
            CauseClass::RunQueueWait => "run_queue_wait",
            CauseClass::Irq => "irq",
            CauseClass::Softirq => "softirq",
            CauseClass::Nmi => "nmi",
            CauseClass::PageFault => "page_fault",
            CauseClass::SystemCall => "system_call",
            CauseClass::Lock => "lock",
            CauseClass::GilWait => "gil_wait",
            CauseClass::OtherNode => "other_node",
            CauseClass::Network => "network",
            CauseClass::Stopped => "stopped",
            CauseClass::Migration => "migration",
            CauseClass::RtThrottling => "rt_throttling",
            CauseClass::DeadlineBudget => "deadline_budget",
            CauseClass::TimerLate => "timer_late",
            CauseClass::SocketWait => "socket_wait",
            CauseClass::Hardware => "hardware",
            CauseClass::Unexplained => "unexplained",
        }
    }
}

impl fmt::Display for CauseClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Part of one cause in one miss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its class.
    pub class: CauseClass,
    /// Name of the interrupt, thread, operator or edge; empty if it has none.
    pub name: String,
    /// Operator that should have run, or ran.
    pub operator: Option<String>,
    /// Its core, if known.
    pub core: Option<u32>,
    /// Further information: the thread's policy, the usual duration.
    #[serde(default)]
    pub detail: Option<String>,
    /// Of `other_node`: the message's number among those of its source there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<u64>,
    /// Measured duration, in nanoseconds. In a backlog it includes the time by which earlier steps were
    /// delayed.
    pub took_ns: u64,
    /// Share of the lateness, in nanoseconds. The shares of all parts add up to the lateness.
    pub late_ns: u64,
}

/// Explanation of one late message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Explanation in a sentence.
    pub sentence: String,
    /// Parts of the lateness, the largest first.
    pub parts: Vec<Part>,
}

/// Total of one cause in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Its class.
    pub class: CauseClass,
    /// Its name; empty if it has none.
    pub name: String,
    /// Number of misses of which it was the main cause.
    pub misses: u64,
    /// Its share of the lateness of all misses, in nanoseconds.
    pub lost_ns: u64,
    /// The `onbeat doctor` finding that explains how to fix it, if there is one.
    pub finding: Option<String>,
}

/// How the misses of a run were explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// Source of kernel events: `ftrace`, `perf`, `proc`, `none`.
    pub source: String,
    /// Why no better source was available; `None` for the best one.
    pub why: Option<String>,
    /// Command that makes a better source available.
    pub fix: Option<String>,
    /// Operators whose steps were all timed.
    pub exact: Vec<String>,
    /// Operators with too short steps for that: only a sample was timed.
    pub sampled: Vec<String>,
    /// Number of misses that were explained.
    pub misses: u64,
    /// Number of misses that were not, because too many came at once.
    pub left_out: u64,
    /// Number of recorded spans.
    pub spans: u64,
    /// Number of these for which there was no room, because earlier ones were not read in time.
    pub unread: u64,
    /// Number of kernel records that were lost.
    pub lost: u64,
}
