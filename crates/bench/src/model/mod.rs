//! Predictions of a graph's performance under each scheduler, from the costs of its operators and of this
//! machine. Pure functions without measurements.
//!
//! | module | contents |
//! |---|---|
//! | `workload` | work of a graph per iteration, from the record of a run |
//! | `predict` | throughput and latency under one scheduler |
//! | `advice` | the recommended scheduler and the reasons |
//! | `scale` | prediction for a chain on more cores than this machine has |
//!
//! An *iteration* is one message of the source that sends most of them, and everything that follows from it.
//! All times are in nanoseconds per iteration unless their name says otherwise.

mod advice;
mod predict;
mod scale;
mod workload;

pub use advice::{Advice, advise};
pub use predict::{Prediction, StretchEnds, WorkerLayout, predict};
pub use scale::{CoreTimes, Scaled, scaled};
pub use workload::{EdgeLoad, GraphLoad, OperatorLoad};

use serde::{Deserialize, Serialize};

/// Costs of the engine and of hand-overs between cores on a machine, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MachineCosts {
    /// Engine cost of a step whose message comes from the same worker.
    pub hop_ns: f64,
    /// The same with workers that share operators (`event`).
    pub shared_hop_ns: f64,
    /// Hand-over of a message to an awake worker on another core: the part that does not depend on its size.
    pub hand_over_ns: f64,
    /// Size-dependent part of a hand-over, per KiB of samples that are read and written on both sides.
    pub hand_over_per_kib_ns: f64,
    /// Time that waking a sleeping worker takes on the waking worker.
    pub wake_call_ns: f64,
    /// Time from the wake-up to the woken worker's first step.
    pub wake_ns: f64,
    /// Share of a measured step time that is the clock reading itself.
    pub clock_ns: f64,
}

impl MachineCosts {
    /// Hand-over of a message of this many bytes to another core.
    #[must_use]
    pub fn hand_over(&self, bytes: f64) -> f64 {
        self.hand_over_ns + self.hand_over_per_kib_ns * bytes / 1024.0
    }
}
