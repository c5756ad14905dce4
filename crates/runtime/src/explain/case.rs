//! Facts on one miss, as plain data.

use onbeat_trace::{Counted, KernelEvent, LinkArrival, LockWait, OffCpu, PageFault, Span};

/// Facts on one miss, as plain data. Times are nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Case<'c> {
    /// Time at which the source should have sent the message.
    pub due_ns: u64,
    /// Time at which the message was finished.
    pub end_ns: u64,
    /// Limit on the time between the two, in nanoseconds.
    pub limit_ns: u64,
    /// Steps that the message went through, in order.
    pub way: &'c [Span],
    /// All steps of the same workers, in the window and before it, those of the message included.
    pub spans: &'c [Span],
    /// Threads of the workers, by [`Span::worker`].
    pub threads: &'c [ThreadFacts],
    /// Operators, by [`Span::operator`].
    pub operators: &'c [OperatorFacts],
    /// Edges, by [`Span::held_by`].
    pub edges: &'c [EdgeFacts],
    /// Kernel events on the cores of these threads.
    pub events: &'c [KernelEvent],
    /// Times in which these threads had no core.
    pub off_cpu: &'c [OffCpu],
    /// Times in which these threads waited for a lock that they know, in order of their ends.
    pub lock_waits: &'c [LockWait],
    /// Messages from other runs that came within the window.
    pub arrivals: &'c [LinkArrival],
    /// Page faults of these threads.
    pub faults: &'c [PageFault],
    /// Counters of these threads around the window, if nothing better is known.
    pub counted: &'c [Counted],
    /// Whether the kernel gives other threads their share by a server (6.12 and later), instead of stopping
    /// all real-time threads.
    pub has_fair_server: bool,
    /// Whether all steps of these workers and all kernel events on these cores are known.
    pub is_complete: bool,
    /// Estimated cost of one page fault without a disk access, in nanoseconds.
    pub fault_ns: u64,
}

/// Facts on a worker's thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadFacts {
    /// Id in the kernel.
    pub tid: i32,
    /// Core to which the thread is bound, if it is.
    pub core: Option<u32>,
    /// Scheduling class.
    pub scheduling: Scheduling,
    /// Whether its control group may use only part of its core (`cpu.max`).
    pub has_quota: bool,
}

/// Scheduling class of a thread in the kernel.
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

/// Facts on an operator.
#[derive(Debug, Clone, Default)]
pub struct OperatorFacts {
    /// Name of the operator.
    pub name: String,
    /// Whether the operator is a source.
    pub is_source: bool,
    /// Whether the operator waits for descriptors: what it sends was due when the kernel had it.
    pub awaits_descriptors: bool,
    /// Budget of a step, in nanoseconds, if one was set.
    pub budget_ns: Option<u64>,
    /// Usual duration of a step, in nanoseconds, if it is known.
    pub usual_ns: Option<u64>,
}

/// Facts on an edge.
#[derive(Debug, Clone, Default)]
pub struct EdgeFacts {
    /// Name, as in `a.out → b.in`.
    pub name: String,
    /// Number of the producer.
    pub from: u32,
    /// Number of the consumer.
    pub to: u32,
    /// Whether the consumer waits for messages of this edge.
    pub is_awaited: bool,
}
