//! What is to be measured, and how.

use super::Peer;
use onbeat_os::Policy;
use onbeat_runtime::Idle;

/// A real-time policy, by the name that the published benchmark gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    Rr,
    /// `SCHED_DEADLINE`.
    Deadline,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Fifo, Kind::Rr, Kind::Deadline];

    /// In figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Fifo => "fifo",
            Kind::Rr => "rr",
            Kind::Deadline => "deadline",
        }
    }

    /// The one of this name: `fifo`, `FIFO` or `SCHED_FIFO`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Kind> {
        let name = name.to_ascii_lowercase();
        let name = name.strip_prefix("sched_").unwrap_or(&name);
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What is to be measured. The default is what is published, but for the priority, which is 99 there.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Frames per second.
    pub target_fps: f64,
    /// How long each pass takes, in nanoseconds.
    pub duration_ns: u64,
    /// The real-time policies, in this order.
    pub policies: Vec<Kind>,
    /// Of `fifo` and `rr`.
    pub priority: u8,
    /// Rounds over its numbers that a load operator makes per step.
    pub bg_load_intensity: u32,
    /// How many numbers it has.
    pub bg_workload_size: usize,
    /// Rounds over its numbers that the frame operator makes per frame.
    pub bm_load_intensity: u32,
    /// How many numbers it has.
    pub bm_workload_size: usize,
    /// Workers of the load; in the baseline they step the frame operator, too.
    pub worker_threads: usize,
    /// Load operators.
    pub dummy_loads: usize,
    /// The core that all of them share.
    pub pin_cpu: usize,
    /// How the worker of the frames waits for the next one under the real-time policies.
    pub idle: Idle,
    /// How often all passes are made, in turn.
    pub rounds: usize,
    /// Who else runs the same passes in between.
    pub peer: Option<Peer>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            target_fps: 60.0,
            duration_ns: 30_000_000_000,
            policies: Kind::ALL.to_vec(),
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

impl Settings {
    /// From frame to frame, in nanoseconds.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        (1e9 / self.target_fps).round() as u64
    }

    /// What the kernel is asked for; a deadline has a tenth of the period, as in the published benchmark.
    pub(super) fn policy(&self, kind: Kind) -> Policy {
        let period_ns = self.period_ns();
        match kind {
            Kind::Fifo => Policy::Fifo(self.priority),
            Kind::Rr => Policy::RoundRobin(self.priority),
            Kind::Deadline => {
                Policy::Deadline { runtime_ns: period_ns / 10, deadline_ns: period_ns, period_ns }
            }
        }
    }
}
