//! Cost of the engine per iteration, measured with operators that do nothing, under each scheduler.
//!
//! | module | contents |
//! |---|---|
//! | `settings` | settings of the bench |
//! | `case`, `operators`, `effort` | the graphs, and the work of their operators |
//! | `recipe` | schedulers with their workers, and whether this version has them |
//! | `marks`, `measure` | clock readings inside a run |
//! | `bare` | the same cases without an engine: the limit |
//! | `python` | the same cases with operators in Python, onbeat's and Holoscan's |
//! | `rounds` | all measurements in turn, once per round |
//! | `break_even` | work per step at which the engine hardly counts |
//! | `result`, `plot` | figures and a picture |

mod bare;
mod break_even;
mod case;
mod effort;
mod marks;
mod measure;
mod operators;
mod plot;
mod python;
mod recipe;
mod result;
mod rounds;
mod settings;

pub use bare::bare_chain_ns;
pub use break_even::{EngineShare, SHARES};
pub use case::OverheadCase;
pub use recipe::SchedulerVariant;
pub use settings::{Method, OverheadPeer, OverheadSettings};

use crate::{BenchError, BenchWatch};
use onbeat_report::BenchResult;

/// Results of the bench.
#[derive(Debug, Clone)]
pub struct Overhead {
    /// All figures, in the common form of the benches.
    pub result: BenchResult,
    /// Scheduler and case of each table row, as figures name them, in the order of the settings.
    pub rows: Vec<OverheadRow>,
}

/// One scheduler with one case.
#[derive(Debug, Clone)]
pub struct OverheadRow {
    /// Scheduler and workers: "greedy", "event2", "pinned2".
    pub recipe: String,
    /// The graph.
    pub case: OverheadCase,
    /// Name of the figure with its limit, if there is one.
    pub limit: Option<String>,
    /// Consecutive steps in an iteration: those of one worker, if each worker has its own operators.
    pub steps: f64,
}

/// Runs the bench. Cases that this version or machine does not support are skipped, and a note says so.
///
/// # Errors
/// [`BenchError`]: a failed run, settings that leave nothing to measure, or a stop before the first
/// measurement.
pub fn run(settings: &OverheadSettings, watch: &mut dyn BenchWatch) -> Result<Overhead, BenchError> {
    let rounds = rounds::measure(settings, watch)?;
    Ok(result::overhead(settings, rounds))
}

impl Overhead {
    /// Draws an SVG: the cost of an iteration with its limit, and the engine's share over an operator's time.
    #[must_use]
    pub fn to_svg(&self) -> String {
        plot::sheet(self).to_svg()
    }
}
