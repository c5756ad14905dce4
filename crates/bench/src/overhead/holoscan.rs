//! The same cases in Holoscan, by a Python that runs `peers/holoscan/overhead.py` and answers one line per run.

use super::case::Case;
use super::recipe::{Kind, Recipe};
use super::settings::Peer;
use crate::holoscan::{Holoscan as Process, START};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// Carried along, so that it need not be found.
const SCRIPT: &str = include_str!("../../../../peers/holoscan/overhead.py");

/// A Holoscan that waits for work.
pub(super) struct Holoscan {
    process: Process,
    pub iterations: u64,
}

/// What one run took there, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerTaken {
    /// Around constructing, composing and running, per iteration.
    pub process_ns: f64,
    /// After the warm-up, per iteration.
    pub steady_ns: f64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Taken { wall_ns: u64, begin_ns: u64, end_ns: u64 },
    Refused { error: String },
}

impl Holoscan {
    /// Starts it, or says why not and how to get it.
    pub fn start(peer: &Peer) -> Result<Holoscan, String> {
        let process = Process::start(&peer.python, SCRIPT)?;
        Ok(Holoscan { process, iterations: peer.iterations })
    }

    /// Of Holoscan and of its Python.
    pub fn versions(&self) -> &(String, String) {
        &self.process.versions
    }

    /// Of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether it has a scheduler like this.
    pub fn has(&self, recipe: Recipe) -> bool {
        matches!(recipe.kind, Kind::Greedy | Kind::Event)
    }

    /// Iterations before those that its steady figures are made of.
    pub fn warm_up(&self, wanted: u64) -> u64 {
        wanted.min(self.iterations / 10).max(1)
    }

    /// One run there.
    pub fn run(&mut self, case: Case, recipe: Recipe, warm_up: u64) -> Result<PeerTaken, String> {
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
        // Slower by far than anybody has seen it.
        let limit = START + Duration::from_micros(iterations.saturating_mul(5_000));
        let line = self.process.ask(&wanted, limit).map_err(|why| failed(&why))?;
        match serde_json::from_str(&line) {
            Ok(Answer::Taken { wall_ns, begin_ns, end_ns }) => Ok(PeerTaken {
                process_ns: wall_ns as f64 / iterations as f64,
                steady_ns: end_ns.saturating_sub(begin_ns) as f64 / (iterations - warm_up).max(1) as f64,
            }),
            Ok(Answer::Refused { error }) => Err(failed(&error)),
            Err(_) => Err(failed(&format!("it says `{line}`"))),
        }
    }
}
