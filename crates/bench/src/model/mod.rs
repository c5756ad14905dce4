//! What a graph would do under each scheduler, by what its operators and this machine cost: pure functions, no measuring.
//!
//! | file | what |
//! |---|---|
//! | `workload` | what a graph asks for per iteration, by the record of a run |
//! | `predict` | throughput and latency under one scheduler |
//! | `advice` | which scheduler, and why |
//! | `scale` | the same for a chain on more cores than this machine has |
//!
//! An *iteration* is one message of the source that sends most of them, and all that follows from it. Every time is in nanoseconds
//! per iteration unless its name says otherwise.

mod advice;
mod predict;
mod scale;
mod workload;

pub use advice::{Advice, advise};
pub use predict::{Ends, Layout, Prediction, predict};
pub use scale::{Core, Scaled, scaled};
pub use workload::{EdgeLoad, OperatorLoad, Workload};

use serde::{Deserialize, Serialize};

/// What the engine and the ways between cores cost on a machine, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MachineCosts {
    /// The engine, for a step whose message comes from the same worker.
    pub hop_ns: f64,
    /// The same where workers share operators (`event`).
    pub shared_hop_ns: f64,
    /// A message to a worker on another core that is awake: the part that does not depend on its size.
    pub hand_over_ns: f64,
    /// The part that does, for each KiB of samples that are read and written on both sides.
    pub hand_over_per_kib_ns: f64,
    /// What waking a sleeping worker takes of the worker that does it.
    pub wake_call_ns: f64,
    /// From waking to its first step.
    pub wake_ns: f64,
    /// What the time of a step has in it that is none of the operator's: looking at the clock.
    pub clock_ns: f64,
}

impl MachineCosts {
    /// A message of so many bytes to another core.
    #[must_use]
    pub fn hand_over(&self, bytes: f64) -> f64 {
        self.hand_over_ns + self.hand_over_per_kib_ns * bytes / 1024.0
    }
}
