//! A pipeline's needs of a machine: plain data, taken from its plan.

use onbeat_os::{CoreSet, Policy};

/// Needs of a pipeline.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PipelineNeeds {
    /// Name of the pipeline.
    pub name: String,
    /// Absolute path of its file.
    pub file: String,
    /// Threads that step its operators.
    pub workers: Vec<WorkerNeeds>,
    /// Cores for all its other threads.
    pub house: CoreSet,
    /// Whether it locks its memory.
    pub lock_memory: bool,
    /// Allowed wake-up latency of idle cores while it runs; `None` if it sets none.
    pub dma_latency_us: Option<u32>,
    /// Shortest period, deadline or path limit, in nanoseconds.
    pub shortest_ns: Option<u64>,
    /// What `shortest_ns` is a period or limit of.
    pub shortest_of: String,
}

/// Needs of a thread that steps operators.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerNeeds {
    /// Its name, as `ps` shows it.
    pub name: String,
    /// Its core, if the pipeline names one.
    pub core: Option<usize>,
    /// Scheduling policy that it asks for.
    pub policy: Option<Policy>,
    /// Whether it spins while it waits, at least for a while.
    pub spins: bool,
    /// Whether it never sleeps.
    pub never_sleeps: bool,
}

impl PipelineNeeds {
    /// Returns the cores that it pins workers to.
    #[must_use]
    pub fn cores(&self) -> CoreSet {
        CoreSet::from_cores(self.workers.iter().filter_map(|worker| worker.core)).unwrap_or_default()
    }

    /// Returns the cores to keep free for it: those of workers with a real-time policy, or all pinned cores
    /// if no worker has one.
    #[must_use]
    pub fn critical_cores(&self) -> CoreSet {
        let real_time =
            self.workers.iter().filter(|worker| worker.is_real_time()).filter_map(|worker| worker.core);
        let real_time = CoreSet::from_cores(real_time).unwrap_or_default();
        if real_time.is_empty() { self.cores() } else { real_time }
    }

    /// Returns the highest priority that it asks for; 0 for none.
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.workers.iter().filter_map(|worker| worker.policy?.priority()).max().unwrap_or(0)
    }

    /// Whether a worker asks for `SCHED_DEADLINE`.
    #[must_use]
    pub fn has_deadline(&self) -> bool {
        self.workers.iter().any(|worker| matches!(worker.policy, Some(Policy::Deadline { .. })))
    }
}

impl WorkerNeeds {
    /// Whether it asks for a policy that precedes normal threads.
    #[must_use]
    pub fn is_real_time(&self) -> bool {
        self.policy.is_some_and(|policy| policy.is_real_time())
    }
}
