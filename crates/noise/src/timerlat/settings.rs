//! What a measurement of timers is asked for.

use crate::session::MeasuringLimits;
use crate::source::{Backend, RingShape};
use onbeat_os::{CoreSet, Policy};

/// What to measure. Times in nanoseconds.
#[derive(Debug, Clone)]
pub struct LatencySettings {
    /// Which cores; all that this process may use where there are none.
    pub cpus: Option<CoreSet>,
    /// Where everything else of ours runs; where it is not said, on the cores that are not measured.
    pub house_keeping: Option<CoreSet>,
    /// What the scheduler gives to the measuring threads.
    pub policy: Option<Policy>,
    /// From wake-up to wake-up.
    pub period_ns: u64,
    /// Each core's moments come so much after those of the core before it; without, they begin as the threads do.
    pub aligned_ns: Option<u64>,
    /// Ends it with the first interrupt that comes later.
    pub stop_irq_ns: Option<u64>,
    /// Ends it with the first thread that comes later.
    pub stop_thread_ns: Option<u64>,
    /// Ends it; without, whoever watches does.
    pub duration_ns: Option<u64>,
    /// So much at the begin is not counted.
    pub warm_up_ns: u64,
    /// A limit that is hit is told to whoever watches, and it goes on.
    pub goes_on: bool,
    /// Idle states of the measured cores that are deeper than this are switched off meanwhile; all of them for −1.
    pub deepest_idle_state: Option<i32>,
    /// Keeps idle cores from sleeping so deeply that waking up takes longer.
    pub dma_latency_us: Option<u32>,
    /// The width of a bucket of the histograms.
    pub bucket_ns: u64,
    /// How many buckets they have.
    pub entries: usize,
    /// How many of the latest wake-ups are analysed one by one.
    pub samples: usize,
    /// Where the causes are to come from.
    pub backend: Backend,
    /// Whose threads the kernel's tracer wakes.
    pub workload: Workload,
    /// Has the kernel's tracer tell the stack at the interrupt, where the thread came later than this.
    pub stack_ns: Option<u64>,
    /// The size of a core's ring.
    pub ring_bytes: usize,
    /// How many of a core's last kernel events are kept for a trace.
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

/// Whose threads are measured, where the kernel's tracer does it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Workload {
    /// The kernel's own.
    #[default]
    Kernel,
    /// Ours, which wait on the kernel's `timerlat_fd`.
    Threads,
    /// Somebody else's, which do.
    Users,
}
