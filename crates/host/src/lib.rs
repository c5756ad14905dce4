//! Whether a machine can keep the promises of a pipeline, what costs it determinism, and how to change that and back.
//!
//! ```text
//! /proc, /sys ──► Facts ──┐
//! measuring ──► Measured ─┼─► Case ──► examine ──► Report of Findings ──► Fixes ──► Plan ──► Undo
//! trying ────► Tried ─────┘                        what, why, evidence             apply     back
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`tree`], [`fact`] | the files of a machine, this one or a made-up one; what is known, or why it is not |
//! | [`facts`] | everything that files tell: plain data |
//! | [`measured`], [`tried`] | what no file tells: how long things take, which rights there are |
//! | [`pipeline`], [`causes`] | what the pipeline at hand asks for; what made its frames late |
//! | [`checks`] | every check with its explanation |
//! | [`doctor`] | all of that to findings, as a pure function |
//! | [`verify`], [`command_line`], [`lists`] | whether the kernel did what its command line says |
//! | [`tune`] | what to change: the command line, settings, rights; doing it, and taking it back |

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

pub use case::Case;
pub use causes::Causes;
pub use doctor::{Report, examine};
pub use fact::Fact;
pub use facts::Facts;
pub use finding::{Finding, Fix, Severity, State};
pub use measured::Measured;
pub use pipeline::{Pipeline, Worker};
pub use tree::{Root, Tree};
pub use tried::Tried;
