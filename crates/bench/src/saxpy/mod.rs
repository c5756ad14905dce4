//! The radio runtimes' benchmark: a source that claims full chunks, a chain of `y = a · x + b`, and a sink
//! that counts.
//!
//! The limit of the machine is measured with each figure, half before and half after it. Modes are never
//! mixed: `pinned` splits the chain between cores and keeps the order, as the published benchmark requires;
//! `replicated` does not split.
//!
//! | module | contents |
//! |---|---|
//! | `settings` | settings of the bench |
//! | `case` | one chain under one mode, and its limit |
//! | `graph`, `operators` | the chain as an ordinary graph of ordinary operators |
//! | `bare` | the chain without an engine |
//! | `beside` | speed of the machine right before and after |
//! | `peers` | the chain in other runtimes |
//! | `rounds` | all measurements in turn, and repetitions of disturbed ones |
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

pub use case::{ChainShape, SaxpyCase};
pub use peers::SaxpyPeer;
pub use settings::{Mode, SaxpyForm, SaxpySettings, Whose};

use crate::{BenchError, BenchWatch};
use onbeat_report::BenchResult;

/// Results of the bench.
#[derive(Debug, Clone)]
pub struct SaxpyResults {
    /// All figures, in the common form of the benches.
    pub result: BenchResult,
    /// Cases of onbeat, in the order of the table.
    pub rows: Vec<SaxpyRow>,
    /// Peers, in the order of the table.
    pub peers: Vec<PeerRow>,
}

/// A table row for a case of onbeat.
#[derive(Debug, Clone)]
pub struct SaxpyRow {
    /// The case.
    pub case: SaxpyCase,
    /// Prefix of the names of its figures: `.rate`, `.share`, `.of_bare`, `.of_one_core`.
    pub name: String,
    /// Name of the figure with its limit.
    pub limit: String,
}

/// A table row for a peer.
#[derive(Debug, Clone)]
pub struct PeerRow {
    /// The peer.
    pub peer: SaxpyPeer,
    /// Prefix of the names of its figures: `.rate`, `.share`.
    pub name: String,
}

/// Runs the bench. Cases that this version or machine does not support are skipped, and a note says so.
///
/// # Errors
/// [`BenchError`]: a failed run, settings that leave nothing to measure, or a stop before the first round was
/// complete.
pub fn run(settings: &SaxpySettings, watch: &mut dyn BenchWatch) -> Result<SaxpyResults, BenchError> {
    Ok(result::result(settings, rounds::measure(settings, watch)?))
}

impl SaxpyResults {
    /// Draws an SVG: for each number of cores, the rate over the number of kernels, with the ideal lines.
    #[must_use]
    pub fn to_svg(&self) -> String {
        plot::sheet(self).to_svg()
    }
}
