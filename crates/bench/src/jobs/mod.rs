//! Whole jobs, from an input file to an output file, on the same cores in onbeat and in other programs.
//!
//! Every side gets the same input and the same specification: filters have the same taps. The quality of each
//! result is measured with its rate, so that a faster but worse result is seen. The cases take turns within a
//! round, and ratios are taken within a round.
//!
//! | module | contents |
//! |---|---|
//! | `settings` | settings of the bench |
//! | `kind` | the parts in which jobs differ |
//! | `fm`, `adsb`, `spectrum`, `channelizer`, `audio`, `image` | the jobs: input, pipeline, bare kernels, quality |
//! | `signal` | the signal of two FM stations, and the quality of audio |
//! | `case` | a job on one side |
//! | `ours`, `bare` | a job as a pipeline, and as kernels in a loop |
//! | `peers` | a job in another program |
//! | `folder` | the files |
//! | `rounds` | all measurements in turn |
//! | `result`, `plot` | figures and a picture |

mod adsb;
mod audio;
mod bare;
mod case;
mod channelizer;
mod fm;
mod folder;
mod image;
mod kind;
mod ours;
mod peers;
mod plot;
mod result;
mod rounds;
mod settings;
mod signal;
mod spectrum;

pub use case::{JobCase, JobSide};
pub use peers::JobPeer;
pub use settings::{Job, JobsSettings};

use crate::{BenchError, BenchWatch};
use onbeat_report::BenchResult;

/// Results of the bench.
#[derive(Debug, Clone)]
pub struct JobsResults {
    /// All figures, in the common form of the benches.
    pub result: BenchResult,
    /// Cases in the order of the table.
    pub rows: Vec<JobRow>,
}

/// A table row.
#[derive(Debug, Clone)]
pub struct JobRow {
    /// The case.
    pub case: JobCase,
    /// Prefix of the names of its figures: `.rate` in 10⁶ samples per second, `.real_time`, `.quality`,
    /// `.same`, `.of_bare`, `.times_best_peer`.
    pub name: String,
}

/// Runs the bench. Jobs, schedulers and peers that are not available are left out, and a note says so.
///
/// # Errors
/// [`BenchError`]: a failed run, settings that leave nothing to measure, or a stop before the first round was
/// complete.
pub fn run(settings: &JobsSettings, watch: &mut dyn BenchWatch) -> Result<JobsResults, BenchError> {
    Ok(result::result(settings, rounds::measure(settings, watch)?))
}

impl JobsResults {
    /// Draws an SVG: for each job, the rate of every case.
    #[must_use]
    pub fn to_svg(&self) -> String {
        plot::sheet(self).to_svg()
    }
}
