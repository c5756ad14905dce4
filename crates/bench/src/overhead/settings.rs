//! What is to be measured, and how.

use super::{Case, Kind};
use onbeat_runtime::Idle;
use std::path::PathBuf;

/// What is to be measured. The default is what is published.
#[derive(Debug, Clone)]
pub struct Settings {
    /// In this order.
    pub cases: Vec<Case>,
    /// In this order.
    pub schedulers: Vec<Kind>,
    /// How many workers, one after the other; empty: 1 and 2 for `event`, 2 for `pinned`.
    pub workers: Vec<usize>,
    /// Cores for the workers; empty: `pinned` takes the first that the process may use, the others run anywhere.
    pub cores: Vec<usize>,
    /// How workers wait.
    pub idle: Idle,
    /// Iterations that are measured in a run; `None`: 100,000 for `process`, and as many as take about 50 ms for `steady`.
    pub iterations: Option<u64>,
    /// Iterations before that: inside the run for `steady`, in a run of their own for `process`. At least 1.
    pub warm_up: u64,
    /// How often everything is measured.
    pub runs: usize,
    /// Which of the two ways.
    pub method: Method,
    /// Who else runs the same cases in between.
    pub peer: Option<Peer>,
}

/// Where the clock is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Around building and running, divided by the iterations: start and stop are in it, as in the published figures.
    Process,
    /// Inside the run, after a warm-up.
    Steady,
    /// Both, each in runs of its own.
    Both,
}

/// Another runtime.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The Python that has Holoscan.
    pub python: PathBuf,
    /// Iterations of one of its runs.
    pub iterations: u64,
}

/// What the published benchmark takes.
pub(super) const PUBLISHED_ITERATIONS: u64 = 100_000;

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cases: Case::ALL.to_vec(),
            schedulers: Kind::ALL.to_vec(),
            workers: Vec::new(),
            cores: Vec::new(),
            idle: Idle::Park,
            iterations: None,
            warm_up: 10_000,
            runs: 9,
            method: Method::Both,
            peer: None,
        }
    }
}

impl Method {
    /// Whether runs are measured from outside.
    pub(super) fn has_process(self) -> bool {
        self != Method::Steady
    }

    /// Whether runs are measured from inside.
    pub(super) fn has_steady(self) -> bool {
        self != Method::Process
    }

    /// On the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::Process => "process",
            Method::Steady => "steady",
            Method::Both => "both",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Method> {
        [Method::Process, Method::Steady, Method::Both].into_iter().find(|method| method.name() == name)
    }
}
