//! Settings of a timer measurement.

use crate::session::MeasuringLimits;
use crate::source::{Backend, RingShape};
use onbeat_os::{CoreSet, Policy};

/// Settings of a timer measurement. Times in nanoseconds.
#[derive(Debug, Clone)]
pub struct LatencySettings {
    /// Cores to measure; `None` for all that this process may use.
    pub cpus: Option<CoreSet>,
    /// Cores for all other threads of this process; `None` for the cores that are not measured.
    pub house_keeping: Option<CoreSet>,
    /// Scheduling policy of the measuring threads.
    pub policy: Option<Policy>,
    /// Time from one wake-up to the next.
    pub period_ns: u64,
    /// Offset of each core's timers from those of the core before it; `None` to start them with their
    /// threads.
    pub aligned_ns: Option<u64>,
    /// Stops at the first timer interrupt later than this.
    pub stop_irq_ns: Option<u64>,
    /// Stops at the first thread later than this.
    pub stop_thread_ns: Option<u64>,
    /// Duration of the whole measurement; without it, the watcher ends it.
    pub duration_ns: Option<u64>,
    /// Number of wake-ups of each core after which the measurement is over; without it, there is no limit.
    pub wakeups: Option<u64>,
    /// Warm-up to discard.
    pub warm_up_ns: u64,
    /// Whether a limit that is hit is only reported to the watcher, and measuring goes on.
    pub goes_on: bool,
    /// Deepest idle state that the measured cores may use; −1 for none.
    pub deepest_idle_state: Option<i32>,
    /// Limit on the exit latency of idle cores.
    pub dma_latency_us: Option<u32>,
    /// Width of a histogram bucket.
    pub bucket_ns: u64,
    /// Number of buckets per histogram.
    pub entries: usize,
    /// Number of the latest wake-ups that are analysed one by one.
    pub samples: usize,
    /// Source of the causes.
    pub backend: Backend,
    /// Threads that the kernel's tracer wakes.
    pub workload: Workload,
    /// Lets the kernel's tracer report the stack at the interrupt if the thread is later than this.
    pub stack_ns: Option<u64>,
    /// Size of each core's ring.
    pub ring_bytes: usize,
    /// Number of each core's last kernel events that are kept for a trace.
    pub keep_events: usize,
}

impl Default for LatencySettings {
    fn default() -> Self {
        LatencySettings {
            cpus: None,
            house_keeping: None,
            policy: Some(Policy::Fifo(95)),
            period_ns: 1_000_000,
            aligned_ns: None,
            stop_irq_ns: None,
            stop_thread_ns: None,
            duration_ns: None,
            wakeups: None,
            warm_up_ns: 0,
            goes_on: false,
            deepest_idle_state: None,
            dma_latency_us: None,
            bucket_ns: 1_000,
            entries: 256,
            samples: 5,
            backend: Backend::Auto,
            workload: Workload::Kernel,
            stack_ns: None,
            ring_bytes: RingShape::default().ring_bytes,
            keep_events: 0,
        }
    }
}

impl LatencySettings {
    pub(crate) fn limits(&self) -> MeasuringLimits {
        MeasuringLimits {
            duration_ns: self.duration_ns,
            warm_up_ns: self.warm_up_ns,
            goes_on: self.goes_on,
            keep_events: self.keep_events,
        }
    }

    pub(super) fn shape(&self) -> RingShape {
        RingShape { ring_bytes: self.ring_bytes, keep: self.keep_events, ..RingShape::default() }
    }
}

/// Threads that are measured by the kernel's tracer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Workload {
    /// The kernel's own threads.
    #[default]
    Kernel,
    /// Threads of this process, which wait on the kernel's `timerlat_fd`.
    Threads,
    /// Threads of another program, which wait on it.
    Users,
}
