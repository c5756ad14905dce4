//! Settings of the bench.

use super::{OverheadCase, SchedulerVariant};
use onbeat_runtime::Idle;
use std::path::PathBuf;

/// Settings of the bench. The default is that of the published benchmark.
#[derive(Debug, Clone)]
pub struct OverheadSettings {
    /// Cases in the order of the table.
    pub cases: Vec<OverheadCase>,
    /// Schedulers in the order of the table.
    pub schedulers: Vec<SchedulerVariant>,
    /// Numbers of workers; empty: 1 and 2 for `event`, 2 for `pinned`.
    pub workers: Vec<usize>,
    /// Cores for the workers; empty: `pinned` takes the first cores that the process may use, the others run
    /// anywhere.
    pub cores: Vec<usize>,
    /// Waiting of idle workers.
    pub idle: Idle,
    /// Measured iterations per run; `None`: 100,000 for `process`, and about 50 ms for `steady`.
    pub iterations: Option<u64>,
    /// Warm-up iterations: inside the run for `steady`, in a separate run for `process`. At least 1.
    pub warm_up: u64,
    /// Number of rounds.
    pub runs: usize,
    /// Measuring method.
    pub method: Method,
    /// Interpreter for the same cases with operators in Python, in the same rounds.
    pub python: Option<PathBuf>,
    /// Other runtime that runs the same cases in the same rounds.
    pub peer: Option<OverheadPeer>,
}

/// Position of the clock readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Around building and running, divided by the iterations: includes start and stop, like the published
    /// figures.
    Process,
    /// Inside the run, after a warm-up.
    Steady,
    /// Both, each in separate runs.
    Both,
}

/// Another runtime.
#[derive(Debug, Clone)]
pub struct OverheadPeer {
    /// The Python that has Holoscan.
    pub python: PathBuf,
    /// Iterations per run.
    pub iterations: u64,
}

/// Iterations of the published benchmark.
pub(super) const PUBLISHED_ITERATIONS: u64 = 100_000;

impl Default for OverheadSettings {
    fn default() -> Self {
        OverheadSettings {
            cases: OverheadCase::ALL.to_vec(),
            schedulers: SchedulerVariant::ALL.to_vec(),
            workers: Vec::new(),
            cores: Vec::new(),
            idle: Idle::Park,
            iterations: None,
            warm_up: 10_000,
            runs: 9,
            method: Method::Both,
            python: None,
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

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::Process => "process",
            Method::Steady => "steady",
            Method::Both => "both",
        }
    }

    /// Returns the one with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Method> {
        [Method::Process, Method::Steady, Method::Both].into_iter().find(|method| method.name() == name)
    }
}
