//! Settings of the bench.

use super::RealtimePeer;
use onbeat_os::Policy;
use onbeat_runtime::Idle;

/// A real-time policy, with its name in the published benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealtimePolicy {
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    Rr,
    /// `SCHED_DEADLINE`.
    Deadline,
}

impl RealtimePolicy {
    /// All of them.
    pub const ALL: [RealtimePolicy; 3] = [RealtimePolicy::Fifo, RealtimePolicy::Rr, RealtimePolicy::Deadline];

    /// Name in figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RealtimePolicy::Fifo => "fifo",
            RealtimePolicy::Rr => "rr",
            RealtimePolicy::Deadline => "deadline",
        }
    }

    /// Returns the one with this name: `fifo`, `FIFO` or `SCHED_FIFO`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<RealtimePolicy> {
        let name = name.to_ascii_lowercase();
        let name = name.strip_prefix("sched_").unwrap_or(&name);
        RealtimePolicy::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Settings of the bench. The default is that of the published benchmark, except for the priority, which is
/// 99 there.
#[derive(Debug, Clone)]
pub struct RealtimeSettings {
    /// Frames per second.
    pub target_fps: f64,
    /// Duration of each pass, in nanoseconds.
    pub duration_ns: u64,
    /// Real-time policies in the order of the table.
    pub policies: Vec<RealtimePolicy>,
    /// Priority of `fifo` and `rr`.
    pub priority: u8,
    /// Rounds over its numbers that a load operator makes per step.
    pub bg_load_intensity: u32,
    /// Numbers of a load operator.
    pub bg_workload_size: usize,
    /// Rounds over its numbers that the frame operator makes per frame.
    pub bm_load_intensity: u32,
    /// Numbers of the frame operator.
    pub bm_workload_size: usize,
    /// Number of workers for the load; in the baseline they also step the frame operator.
    pub worker_threads: usize,
    /// Number of load operators.
    pub dummy_loads: usize,
    /// The core that all of them share.
    pub pin_cpu: usize,
    /// Waiting of the frames' worker under the real-time policies.
    pub idle: Idle,
    /// Number of rounds.
    pub rounds: usize,
    /// Other runtime that makes the same passes in the same rounds.
    pub peer: Option<RealtimePeer>,
}

impl Default for RealtimeSettings {
    fn default() -> Self {
        RealtimeSettings {
            target_fps: 60.0,
            duration_ns: 30_000_000_000,
            policies: RealtimePolicy::ALL.to_vec(),
            priority: 80,
            bg_load_intensity: 1000,
            bg_workload_size: 100,
            bm_load_intensity: 100,
            bm_workload_size: 100,
            worker_threads: 2,
            dummy_loads: 2,
            pin_cpu: 0,
            idle: Idle::Early(200_000),
            rounds: 1,
            peer: None,
        }
    }
}

impl RealtimeSettings {
    /// Period of the frames, in nanoseconds.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        (1e9 / self.target_fps).round() as u64
    }

    /// Scheduling parameters for the kernel. A deadline gets a tenth of the period, as in the published
    /// benchmark.
    pub(super) fn policy(&self, kind: RealtimePolicy) -> Policy {
        let period_ns = self.period_ns();
        match kind {
            RealtimePolicy::Fifo => Policy::Fifo(self.priority),
            RealtimePolicy::Rr => Policy::RoundRobin(self.priority),
            RealtimePolicy::Deadline => {
                Policy::Deadline { runtime_ns: period_ns / 10, deadline_ns: period_ns, period_ns }
            }
        }
    }
}
