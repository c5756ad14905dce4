//! All that is known of one miss: plain data.

use onbeat_trace::{Counted, KernelEvent, OffCpu, PageFault, Span};

/// All that is known of one miss: plain data. Times are nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Case<'c> {
    /// When the source was to send the message.
    pub due_ns: u64,
    /// When it was finished.
    pub end_ns: u64,
    /// How long that might have taken, in nanoseconds.
    pub limit_ns: u64,
    /// The steps of the message, in their order.
    pub way: &'c [Span],
    /// All steps of the workers that made them, in the window and before it; those of the way are among them.
    pub spans: &'c [Span],
    /// By [`Span::worker`].
    pub threads: &'c [ThreadFacts],
    /// By [`Span::operator`].
    pub operators: &'c [OperatorFacts],
    /// By [`Span::held_by`].
    pub edges: &'c [EdgeFacts],
    /// What the kernel did on the cores of these threads.
    pub events: &'c [KernelEvent],
    /// When these threads had no core.
    pub off_cpu: &'c [OffCpu],
    /// Page faults of these threads.
    pub faults: &'c [PageFault],
    /// What was counted of these threads around the window, where nothing better is known.
    pub counted: &'c [Counted],
    /// Whether the kernel gives other threads their part by a server (6.12 and later), and not by stopping all real-time threads.
    pub has_fair_server: bool,
    /// Whether every step of these workers was recorded, and the kernel told of these cores.
    pub is_complete: bool,
    /// What one page fault without a disk costs, in nanoseconds: an estimate.
    pub fault_ns: u64,
}

/// A worker's thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadFacts {
    /// The kernel's id.
    pub tid: i32,
    /// The core that it is bound to, if it is.
    pub core: Option<u32>,
    /// What the kernel gives it.
    pub scheduling: Scheduling,
}

/// Which of the kernel's classes a thread is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// `SCHED_OTHER`, `SCHED_BATCH`, `SCHED_IDLE`.
    #[default]
    Fair,
    /// `SCHED_FIFO`, `SCHED_RR`.
    RealTime,
    /// `SCHED_DEADLINE`.
    Deadline,
}

/// An operator.
#[derive(Debug, Clone, Default)]
pub struct OperatorFacts {
    /// Its name.
    pub name: String,
    /// Whether it waits for no other operator.
    pub is_source: bool,
    /// How long a step of it may compute, where that was stated.
    pub budget_ns: Option<u64>,
    /// How long a step of it usually takes, where that is known.
    pub usual_ns: Option<u64>,
}

/// An edge.
#[derive(Debug, Clone, Default)]
pub struct EdgeFacts {
    /// `a.out → b.in`.
    pub name: String,
    /// Number of the operator that takes from it.
    pub to: u32,
}
