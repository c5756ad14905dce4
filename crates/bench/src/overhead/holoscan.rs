//! The same cases in Holoscan: a Python process runs `peers/holoscan/overhead.py` and answers one line per
//! run.

use super::case::OverheadCase;
use super::recipe::{SchedulerVariant, WorkerSetup};
use super::settings::OverheadPeer;
use crate::holoscan::{Holoscan as Process, START};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// Embedded script, so that no path is needed.
const SCRIPT: &str = include_str!("../../../../peers/holoscan/overhead.py");

/// A running Holoscan process that waits for requests.
pub(super) struct OverheadHoloscan {
    process: Process,
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

impl OverheadHoloscan {
    /// Starts Holoscan. On failure the error says why, and how to install it.
    pub fn start(peer: &OverheadPeer) -> Result<OverheadHoloscan, String> {
        let process = Process::start(&peer.python, SCRIPT)?;
        Ok(OverheadHoloscan { process, iterations: peer.iterations })
    }

    /// Versions of Holoscan and its Python.
    pub fn versions(&self) -> &(String, String) {
        &self.process.versions
    }

    /// CPU time of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether Holoscan has an equivalent scheduler.
    pub fn has(&self, recipe: WorkerSetup) -> bool {
        matches!(recipe.kind, SchedulerVariant::Greedy | SchedulerVariant::Event)
    }

    /// Iterations before those of the steady figures.
    pub fn warm_up(&self, wanted: u64) -> u64 {
        wanted.min(self.iterations / 10).max(1)
    }

    /// Makes one run.
    pub fn run(
        &mut self,
        case: OverheadCase,
        recipe: WorkerSetup,
        warm_up: u64,
    ) -> Result<PeerTimes, String> {
        let (iterations, warm_up) = (self.iterations, self.warm_up(warm_up));
        let scheduler = recipe.kind.name();
        let failed = |why: &str| format!("holoscan: {} under {}: {why}", case.name(), recipe.name());
        let wanted = json!({
            "case": case.name(),
            "scheduler": scheduler,
            "workers": recipe.workers,
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
