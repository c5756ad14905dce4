//! What made something late: the classes, the split of one miss, and the table of a run.

mod fixes;

use std::fmt;

pub use fixes::CauseFix;
use serde::{Deserialize, Serialize};

/// What kind of cause it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseClass {
    /// A source waited for its data.
    InputLate,
    /// An operator computed for longer than its budget or than it usually does.
    OwnCompute,
    /// The worker was busy with another step.
    QueueWait,
    /// An edge behind it had no room.
    DownstreamFull,
    /// Another thread had the core.
    Preempted,
    /// It could have run, and nobody is known to have had the core.
    RunQueueWait,
    /// A hardware interrupt.
    Irq,
    /// Deferred interrupt work.
    Softirq,
    /// An interrupt that cannot be masked.
    Nmi,
    /// Memory that was not there yet.
    PageFault,
    /// It waited in a system call.
    SystemCall,
    /// It waited for a thread of its own process.
    Lock,
    /// It was stopped by a signal or a debugger.
    Stopped,
    /// It went to another core.
    Migration,
    /// The kernel kept a real-time thread from its core, so that others get a part.
    RtThrottling,
    /// A `SCHED_DEADLINE` thread had used up the run time of its period.
    DeadlineBudget,
    /// The thread was woken after its time.
    TimerLate,
    /// The hypervisor or the firmware had the core.
    Hardware,
    /// Nothing that is known.
    Unexplained,
}

impl CauseClass {
    /// The word in JSON.
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
            CauseClass::Stopped => "stopped",
            CauseClass::Migration => "migration",
            CauseClass::RtThrottling => "rt_throttling",
            CauseClass::DeadlineBudget => "deadline_budget",
            CauseClass::TimerLate => "timer_late",
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

/// What one cause had of one miss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What kind.
    pub class: CauseClass,
    /// Its name: of the interrupt, the thread, the operator, the edge. Empty where there is none.
    pub name: String,
    /// The operator that was to run, or ran.
    pub operator: Option<String>,
    /// The core on which that was, where it is known.
    pub core: Option<u32>,
    /// What there is to say beside: the thread's policy, what is usual.
    #[serde(default)]
    pub detail: Option<String>,
    /// How long it took, in nanoseconds, as it was measured.
    pub took_ns: u64,
    /// How much of the lateness is put down to it, in nanoseconds. These sum to the lateness.
    pub late_ns: u64,
}

/// Why one message was late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// In a sentence.
    pub sentence: String,
    /// What it was made of, what weighs most first.
    pub parts: Vec<Part>,
}

/// What one cause has cost a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// What kind.
    pub class: CauseClass,
    /// Its name; empty where there is none.
    pub name: String,
    /// Of how many misses it was the main cause.
    pub misses: u64,
    /// How much of the lateness of all misses is put down to it, in nanoseconds.
    pub lost_ns: u64,
    /// The `onbeat doctor` finding that explains how to fix it, if there is one.
    pub finding: Option<String>,
}

/// How the misses of a run were explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// Where the knowledge of the kernel's doings came from: `ftrace`, `perf`, `proc`, `none`.
    pub source: String,
    /// Why it was no better source; `None` where it was the best.
    pub why: Option<String>,
    /// The command that gives a better one.
    pub fix: Option<String>,
    /// Operators whose steps were all timed.
    pub exact: Vec<String>,
    /// Operators whose steps came too close together for that: a sample was.
    pub sampled: Vec<String>,
    /// How many misses were explained.
    pub misses: u64,
    /// How many were not, because too many came at once.
    pub left_out: u64,
    /// Spans that were recorded.
    pub spans: u64,
    /// Of these, spans that had no room because those before them were not read in time.
    pub unread: u64,
    /// Records of the kernel that were lost.
    pub lost: u64,
}
