//! Where the knowledge of the kernel's doings comes from on this machine.

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

/// Which source is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The best that this machine allows.
    #[default]
    Auto,
    /// Tracepoints by the rings of a trace instance of our own: every event with its name and time.
    Ftrace,
    /// Tracepoints by rings of perf: the same, for three times the price, and with fewer rights.
    Perf,
    /// What everybody may read in `/proc`: classes only.
    Proc,
    /// The kernel's own osnoise and timerlat tracers.
    Tracer,
}

/// Which source there is, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// Which one.
    pub backend: Backend,
    /// Why this one, in a sentence.
    pub why: String,
    /// The command that gives a better one; `None` where there is none.
    pub fix: Option<String>,
    /// What this kernel does not tell, `group:name: why`.
    pub missing: Vec<String>,
}

/// What is noted of the lines that say what was put back (`cleaned`).
pub(crate) fn left(cleaned: &[String]) -> impl Iterator<Item = String> {
    cleaned.iter().map(|line| format!("left by a process that was killed: {line}"))
}

/// Why a source is not to be had, and what gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRefusal {
    /// Why, with the thing and its value.
    pub why: String,
    /// What to do.
    pub fix: String,
}
