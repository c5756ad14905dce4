//! A scheduler with its workers.

use super::OverheadSettings;
use onbeat_os::CoreSet;
use onbeat_runtime::{Options, Scheduler, Share};

/// A scheduler with its variant, as named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulerVariant {
    /// One worker, deterministic order.
    Greedy,
    /// Any operator on any worker; the engine can leave a light graph to one worker.
    Event,
    /// Like `Event`, but all workers must take part.
    EventShared,
    /// Each worker has its own part of the graph.
    Pinned,
}

/// A scheduler with a number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkerSetup {
    pub kind: SchedulerVariant,
    pub workers: usize,
}

impl SchedulerVariant {
    /// All of them.
    pub const ALL: [SchedulerVariant; 4] = [
        SchedulerVariant::Greedy,
        SchedulerVariant::Event,
        SchedulerVariant::EventShared,
        SchedulerVariant::Pinned,
    ];

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SchedulerVariant::Greedy => "greedy",
            SchedulerVariant::Event => "event",
            SchedulerVariant::EventShared => "event_shared",
            SchedulerVariant::Pinned => "pinned",
        }
    }

    /// Returns the one with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<SchedulerVariant> {
        SchedulerVariant::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl WorkerSetup {
    /// All combinations that the settings ask for.
    pub fn all(settings: &OverheadSettings) -> Vec<WorkerSetup> {
        let mut recipes = Vec::new();
        for &kind in &settings.schedulers {
            let several = settings.workers.iter().copied().filter(|&workers| workers > 1);
            let workers: Vec<usize> = match (kind, settings.workers.is_empty()) {
                (SchedulerVariant::Greedy, _) => vec![1],
                (SchedulerVariant::Event, true) => vec![1, 2],
                (SchedulerVariant::EventShared | SchedulerVariant::Pinned, true) => vec![2],
                (SchedulerVariant::EventShared, false) => several.collect(),
                (SchedulerVariant::Event | SchedulerVariant::Pinned, false) => settings.workers.clone(),
            };
            recipes.extend(workers.into_iter().map(|workers| WorkerSetup { kind, workers }));
        }
        recipes
    }

    /// Name in figures and tables.
    pub fn name(self) -> String {
        let workers = self.workers;
        match self.kind {
            SchedulerVariant::Greedy => "greedy".to_owned(),
            SchedulerVariant::Event => format!("event{workers}"),
            SchedulerVariant::EventShared => format!("event{workers}_shared"),
            SchedulerVariant::Pinned => format!("pinned{workers}"),
        }
    }

    /// Whether every worker takes part, whatever the graph.
    pub fn must_share(self) -> bool {
        self.kind != SchedulerVariant::Event
    }

    /// Options for the engine. The error says why this machine cannot run them.
    pub fn options(self, settings: &OverheadSettings) -> Result<Options, String> {
        let scheduler = match self.kind {
            SchedulerVariant::Greedy => Scheduler::Greedy,
            SchedulerVariant::Event | SchedulerVariant::EventShared => Scheduler::Event,
            SchedulerVariant::Pinned => Scheduler::Pinned,
        };
        let share = if self.kind == SchedulerVariant::EventShared { Share::Always } else { Share::default() };
        let mut options = Options { scheduler, share, idle: settings.idle, ..Options::default() };
        let named = &settings.cores;
        if !named.is_empty() {
            if named.len() < self.workers {
                let (workers, cores) = (self.workers, named.len());
                return Err(format!("{workers} workers need {workers} cores, but --cores names {cores}"));
            }
            options.cores = named[..self.workers].to_vec();
        } else if self.kind == SchedulerVariant::Pinned {
            match cores(self.workers) {
                Some(cores) => options.cores = cores,
                None => options.workers = Some(self.workers),
            }
        } else if self.kind != SchedulerVariant::Greedy {
            options.workers = Some(self.workers);
        }
        Ok(options)
    }
}

/// The first `count` cores that this process may use, if there are that many.
pub(super) fn cores(count: usize) -> Option<Vec<usize>> {
    let allowed: Vec<usize> = CoreSet::allowed().ok()?.iter().take(count).collect();
    (allowed.len() == count).then_some(allowed)
}
