//! Who ran where.

use serde::{Deserialize, Serialize};

use super::Scheduler;

/// The plan of a run, as far as it explains the figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// The recipe that the workers were made by.
    pub scheduler: Scheduler,
    /// The workers.
    pub workers: Vec<WorkerRecord>,
    /// All operators by name, sources first, each after those that it reads from as far as cycles allow.
    pub order: Vec<String>,
}

/// One worker and what the plan gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Its name, which is its thread's name too.
    pub name: String,
    /// The names of the operators that it may step.
    pub operators: Vec<String>,
}
