//! The benchmark of radio runtimes: a source that claims full chunks, a chain of `y = a · x + b`, and a sink that counts.
//!
//! Each figure has the limit of the machine beside it, measured half before and half after. Modes are never mixed: `pinned` keeps the order on
//! split cores, which is the rule of the published benchmark, and `replicated` does not split.
//!
//! | file | what |
//! |---|---|
//! | `settings` | what is to be measured |
//! | `case` | one chain under one mode, and its limit |
//! | `graph`, `operators` | the chain as an ordinary graph of ordinary operators |
//! | `bare` | the chain without an engine |
//! | `beside` | what the machine gave right before and after |
//! | `peers` | the chain in other runtimes |
//! | `rounds` | everything in turn, so often, and again what was disturbed |
//! | `result`, `plot` | figures and a picture |

mod bare;
mod beside;
mod case;
mod graph;
mod operators;
mod peers;
mod plot;
mod result;
mod rounds;
mod settings;

pub use case::{Case, Shape};
pub use peers::Peer;
pub use settings::{Form, Mode, Settings, Whose};

use crate::{BenchError, Watch};
use onbeat_report::BenchResult;

/// What was found.
#[derive(Debug, Clone)]
pub struct Saxpy {
    /// All of it, in the form of every bench.
    pub result: BenchResult,
    /// Ours, in the order of the table.
    pub rows: Vec<Row>,
    /// The peers', in the order of the table.
    pub peers: Vec<PeerRow>,
}

/// One line of ours.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was run.
    pub case: Case,
    /// The begin of the names of its figures: `.rate`, `.share`, `.of_bare`, `.of_one_core`.
    pub name: String,
    /// The name of the figure that is its limit.
    pub limit: String,
}

/// One line of a peer.
#[derive(Debug, Clone)]
pub struct PeerRow {
    /// What was run.
    pub peer: Peer,
    /// The begin of the names of its figures: `.rate`, `.share`.
    pub name: String,
}

/// Measures all that the settings ask for. What this version or machine does not have is left out, and a note says so.
///
/// # Errors
/// [`BenchError`]: a run that failed, settings that leave nothing to be measured, or a stop before the first round was over.
pub fn run(settings: &Settings, watch: &mut dyn Watch) -> Result<Saxpy, BenchError> {
    Ok(result::result(settings, rounds::measure(settings, watch)?))
}

impl Saxpy {
    /// As an SVG: for each number of cores the rate over the number of kernels, with the ideal lines.
    #[must_use]
    pub fn to_svg(&self) -> String {
        plot::sheet(self).to_svg()
    }
}
