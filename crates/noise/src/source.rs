//! Sources of kernel events on this machine.

mod core;
mod proc;
mod rings;
mod tracepoints;

pub use core::Core;
pub(crate) use proc::UNTRACED;
pub use proc::{CoreCounters, RunQueueWait};
pub(crate) use rings::KernelRings;
pub use tracepoints::{RingShape, Tracepoints};

use serde::{Deserialize, Serialize};

/// Source that is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The best one available.
    #[default]
    Auto,
    /// Tracepoints in the rings of an own trace instance: every event with its name and time.
    Ftrace,
    /// Tracepoints in perf rings: the same, at three times the cost, and with fewer rights.
    Perf,
    /// World-readable counters in `/proc`: classes only.
    Proc,
    /// The kernel's own osnoise and timerlat tracers.
    Tracer,
}

/// Source that was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// The source.
    pub backend: Backend,
    /// Reason for the choice, in a sentence.
    pub why: String,
    /// Command that makes a better source available; `None` if there is none.
    pub fix: Option<String>,
    /// Tracepoints that this kernel does not have, as `group:name: why`.
    pub missing: Vec<String>,
}

/// Notes about state that a killed process had left and that was restored (`cleaned`).
pub(crate) fn left(cleaned: &[String]) -> impl Iterator<Item = String> {
    cleaned.iter().map(|line| format!("left by a killed process: {line}"))
}

/// Why a source is not available, and how to make it available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRefusal {
    /// Reason, with the setting and its value.
    pub why: String,
    /// What to do.
    pub fix: String,
}
