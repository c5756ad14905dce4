//! What the engine itself costs per iteration: operators that do nothing, under each scheduler.
//!
//! | file | what |
//! |---|---|
//! | `settings` | what is to be measured |
//! | `case`, `operators`, `effort` | the graphs, and what their operators do |
//! | `recipe` | schedulers with their workers, and whether this version has them |
//! | `marks`, `measure` | the points between which the clock is read, from inside of a run |
//! | `bare` | the same cases without an engine: the limit |
//! | `rounds` | everything in turn, so often |
//! | `break_even` | how long an operator has to work until the engine hardly counts |
//! | `holoscan` | the same cases there |
//! | `result`, `plot` | figures and a picture |

mod bare;
mod break_even;
mod case;
mod effort;
mod holoscan;
mod marks;
mod measure;
mod operators;
mod plot;
mod recipe;
mod result;
mod rounds;
mod settings;

pub use bare::bare_chain_ns;
pub use break_even::{SHARES, Share};
pub use case::Case;
pub use recipe::Kind;
pub use settings::{Method, Peer, Settings};

use crate::{BenchError, Watch};
use onbeat_report::BenchResult;

/// What was found.
#[derive(Debug, Clone)]
pub struct Overhead {
    /// All of it, in the form of every bench.
    pub result: BenchResult,
    /// Scheduler and case of each line of a table, as figures name them, in the order of the settings.
    pub rows: Vec<Row>,
}

/// One scheduler with one case.
#[derive(Debug, Clone)]
pub struct Row {
    /// "greedy", "event2", "pinned2".
    pub recipe: String,
    /// The graph.
    pub case: Case,
    /// The name of the figure that is its limit, where there is one.
    pub limit: Option<String>,
    /// Steps that follow one another in an iteration: those of one worker, where each worker has its own.
    pub steps: f64,
}

/// Measures all that the settings ask for. What this version or machine does not have is left out, and a note says so.
///
/// # Errors
/// [`BenchError`]: a run that failed, settings that leave nothing to be measured, or a stop before the first measurement.
pub fn run(settings: &Settings, watch: &mut dyn Watch) -> Result<Overhead, BenchError> {
    let rounds = rounds::measure(settings, watch)?;
    Ok(result::overhead(settings, rounds))
}

impl Overhead {
    /// As an SVG: the cost of an iteration with its limit, and the share of the engine over the time of an operator.
    #[must_use]
    pub fn to_svg(&self) -> String {
        plot::sheet(self).to_svg()
    }
}
