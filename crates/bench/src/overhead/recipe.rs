//! A scheduler with its workers.

use super::Settings;
use onbeat_os::CoreSet;
use onbeat_runtime::{Options, Scheduler, Share};

/// A scheduler with its variant, as named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
pub(super) struct Recipe {
    pub kind: Kind,
    pub workers: usize,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Greedy, Kind::Event, Kind::EventShared, Kind::Pinned];

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Greedy => "greedy",
            Kind::Event => "event",
            Kind::EventShared => "event_shared",
            Kind::Pinned => "pinned",
        }
    }

    /// Returns the one with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Recipe {
    /// All combinations that the settings ask for.
    pub fn all(settings: &Settings) -> Vec<Recipe> {
        let mut recipes = Vec::new();
        for &kind in &settings.schedulers {
            let several = settings.workers.iter().copied().filter(|&workers| workers > 1);
            let workers: Vec<usize> = match (kind, settings.workers.is_empty()) {
                (Kind::Greedy, _) => vec![1],
                (Kind::Event, true) => vec![1, 2],
                (Kind::EventShared | Kind::Pinned, true) => vec![2],
                (Kind::EventShared, false) => several.collect(),
                (Kind::Event | Kind::Pinned, false) => settings.workers.clone(),
            };
            recipes.extend(workers.into_iter().map(|workers| Recipe { kind, workers }));
        }
        recipes
    }

    /// Name in figures and tables.
    pub fn name(self) -> String {
        let workers = self.workers;
        match self.kind {
            Kind::Greedy => "greedy".to_owned(),
            Kind::Event => format!("event{workers}"),
            Kind::EventShared => format!("event{workers}_shared"),
            Kind::Pinned => format!("pinned{workers}"),
        }
    }

    /// Whether every worker takes part, whatever the graph.
    pub fn must_share(self) -> bool {
        self.kind != Kind::Event
    }

    /// Options for the engine. The error says why this machine cannot run them.
    pub fn options(self, settings: &Settings) -> Result<Options, String> {
        let scheduler = match self.kind {
            Kind::Greedy => Scheduler::Greedy,
            Kind::Event | Kind::EventShared => Scheduler::Event,
            Kind::Pinned => Scheduler::Pinned,
        };
        let share = if self.kind == Kind::EventShared { Share::Always } else { Share::default() };
        let mut options = Options { scheduler, share, idle: settings.idle, ..Options::default() };
        let named = &settings.cores;
        if !named.is_empty() {
            if named.len() < self.workers {
                let (workers, cores) = (self.workers, named.len());
                return Err(format!("{workers} workers need {workers} cores, but --cores names {cores}"));
            }
            options.cores = named[..self.workers].to_vec();
        } else if self.kind == Kind::Pinned {
            match cores(self.workers) {
                Some(cores) => options.cores = cores,
                None => options.workers = Some(self.workers),
            }
        } else if self.kind != Kind::Greedy {
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
