//! What a pipeline asks of a machine: plain data, made from its plan by whoever knows plans.

use onbeat_os::{CoreSet, Policy};

/// A pipeline's wishes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// The file that it comes from, as an absolute path.
    pub file: String,
    /// Its threads that step operators.
    pub workers: Vec<Worker>,
    /// Cores for all its other threads.
    pub house: CoreSet,
    /// Whether it wants its memory locked.
    pub lock_memory: bool,
    /// How long idle cores may take to wake up while it runs; nothing where it does not say.
    pub dma_latency_us: Option<u32>,
    /// The shortest period, deadline or limit of a path, in nanoseconds.
    pub shortest_ns: Option<u64>,
    /// What that is.
    pub shortest_of: String,
}

/// A thread that steps operators.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    /// Its name, as `ps` shows it.
    pub name: String,
    /// Its core, where the pipeline names one.
    pub core: Option<usize>,
    /// What it asks of the scheduler.
    pub policy: Option<Policy>,
    /// Whether it waits by spinning, at least for a while.
    pub spins: bool,
    /// Whether it never sleeps.
    pub never_sleeps: bool,
}

impl Pipeline {
    /// The cores that it pins workers to.
    #[must_use]
    pub fn cores(&self) -> CoreSet {
        CoreSet::from_cores(self.workers.iter().filter_map(|worker| worker.core)).unwrap_or_default()
    }

    /// The cores to keep free for it: those of workers with a real-time policy, or all that it pins where none has one.
    #[must_use]
    pub fn critical_cores(&self) -> CoreSet {
        let real_time =
            self.workers.iter().filter(|worker| worker.is_real_time()).filter_map(|worker| worker.core);
        let real_time = CoreSet::from_cores(real_time).unwrap_or_default();
        if real_time.is_empty() { self.cores() } else { real_time }
    }

    /// The highest priority that it asks for; 0 for none.
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

impl Worker {
    /// Whether it asks to be served before normal threads.
    #[must_use]
    pub fn is_real_time(&self) -> bool {
        self.policy.is_some_and(|policy| policy.is_real_time())
    }
}
