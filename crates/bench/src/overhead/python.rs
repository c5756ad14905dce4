//! The same cases with operators in Python, onbeat's and Holoscan's: a process answers one line per run.

use super::case::OverheadCase;
use super::recipe::{SchedulerVariant, WorkerSetup};
use crate::python_process::{PythonProcess, PythonScript, START};
use serde::Deserialize;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Holoscan. The script is embedded, so that no path is needed.
pub(super) const HOLOSCAN: PythonScript =
    PythonScript::holoscan(include_str!("../../../../peers/holoscan/overhead.py"));

/// onbeat's own package.
pub(super) const ONBEAT: PythonScript = PythonScript {
    name: "python",
    text: "from onbeat._overhead import serve; serve()",
    how: "to install it: pip install . in the folder of the project, in the environment of that interpreter",
};

/// A running process that waits for requests.
pub(super) struct PythonCases {
    script: PythonScript,
    process: PythonProcess,
    pub iterations: u64,
}

/// Times of one run, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerTimes {
    /// Construction, composition and run, per iteration.
    pub process_ns: f64,
    /// Time after the warm-up, per iteration.
    pub steady_ns: f64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RunAnswer {
    RunTimes { wall_ns: u64, begin_ns: u64, end_ns: u64 },
    Refused { error: String },
}

impl PythonCases {
    /// Starts the interpreter. On failure the error says why, and how to install what is missing.
    pub fn start(python: &Path, script: PythonScript, iterations: u64) -> Result<PythonCases, String> {
        let process = PythonProcess::start(python, script)?;
        Ok(PythonCases { script, process, iterations })
    }

    /// Versions of the package and its Python.
    pub fn versions(&self) -> &(String, String) {
        &self.process.versions
    }

    /// CPU time of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether it has an equivalent scheduler.
    pub fn has(&self, recipe: WorkerSetup) -> bool {
        matches!(recipe.kind, SchedulerVariant::Greedy | SchedulerVariant::Event)
    }

    /// Iterations before those of the steady figures.
    pub fn warm_up(&self, wanted: u64) -> u64 {
        wanted.min(self.iterations / 10).max(1)
    }

    /// Makes one run under a scheduler. With `None`, the steps are called in a loop without an engine, which
    /// only onbeat's package does.
    pub fn run(
        &mut self,
        case: OverheadCase,
        recipe: Option<WorkerSetup>,
        warm_up: u64,
    ) -> Result<PeerTimes, String> {
        let (scheduler, workers) = recipe.map_or(("bare", 1), |recipe| (recipe.kind.name(), recipe.workers));
        let (iterations, warm_up) = (self.iterations, self.warm_up(warm_up));
        let name = self.script.name;
        let under = recipe.map_or_else(|| scheduler.to_owned(), WorkerSetup::name);
        let failed = |why: &str| format!("{name}: {} under {under}: {why}", case.name());
        let wanted = json!({
            "case": case.name(),
            "scheduler": scheduler,
            "workers": workers,
            "iterations": iterations,
            "warm_up": warm_up,
        });
        // Time limit, far above every run observed.
        let limit = START + Duration::from_micros(iterations.saturating_mul(5_000));
        let line = self.process.ask(&wanted, limit).map_err(|why| failed(&why))?;
        match serde_json::from_str(&line) {
            Ok(RunAnswer::RunTimes { wall_ns, begin_ns, end_ns }) => Ok(PeerTimes {
                process_ns: wall_ns as f64 / iterations as f64,
                steady_ns: end_ns.saturating_sub(begin_ns) as f64 / (iterations - warm_up).max(1) as f64,
            }),
            Ok(RunAnswer::Refused { error }) => Err(failed(&error)),
            Err(_) => Err(failed(&format!("unexpected answer `{line}`"))),
        }
    }
}
