//! Examines whether a machine can meet a pipeline's deadlines, what costs it determinism, and how to change
//! and restore it.
//!
//! ```text
//! /proc, /sys ──► Facts ──────────┐
//! measuring ────► Measurements ───┼─► MachineCase ──► Report ──► TuningPlan ──► Undo
//! trying ───────► Attempts ───────┘               examine    plan          apply
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`tree`], [`fact`] | the files of a machine, real or made up; a known value, or the reason why it is unknown |
//! | [`facts`] | everything that files say: plain data |
//! | [`measured`], [`tried`] | what no file says: latencies, and which rights are granted |
//! | [`pipeline`], [`causes`] | what the pipeline needs; what made its frames late |
//! | [`checks`] | every check with its texts |
//! | [`doctor`] | from all of that to findings, as a pure function |
//! | [`verify`], [`command_line`], [`lists`] | whether the kernel did what its command line asks for |
//! | [`tune`] | changes to the command line, settings and rights; applying and undoing them |

#![forbid(unsafe_code)]

pub mod case;
pub mod causes;
pub mod checks;
pub mod command_line;
pub mod doctor;
pub mod fact;
pub mod facts;
pub mod finding;
pub mod lists;
pub mod measured;
pub mod pipeline;
pub mod tree;
pub mod tried;
pub mod tune;
pub mod verify;

pub use case::MachineCase;
pub use causes::Causes;
pub use doctor::{Report, examine};
pub use fact::Fact;
pub use facts::Facts;
pub use finding::{Finding, Fix, Severity, State};
pub use measured::Measurements;
pub use pipeline::{PipelineNeeds, WorkerNeeds};
pub use tree::{Root, Tree};
pub use tried::Attempts;
