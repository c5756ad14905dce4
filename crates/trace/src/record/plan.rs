//! Workers and their operators.

use serde::{Deserialize, Serialize};

use super::Scheduler;

/// Plan of a run, as far as it explains the figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// Scheduler that made the workers.
    pub scheduler: Scheduler,
    /// The workers.
    pub workers: Vec<WorkerRecord>,
    /// All operators by name, sources first, each after the operators that it reads from as far as cycles
    /// allow.
    pub order: Vec<String>,
}

/// A worker and its part of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Its name, which is also its thread's name.
    pub name: String,
    /// Names of the operators that it may step.
    pub operators: Vec<String>,
}
