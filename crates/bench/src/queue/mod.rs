//! Cost of the work queue per item, compared with models of a kernel's queue before and after its batching
//! change, and with channels.
//!
//! | module | contents |
//! |---|---|
//! | `settings` | settings of the bench |
//! | `design` | the queues to compare |
//! | `model` | the kernel's queues |
//! | `load` | throughput with one producer and with several |
//! | `asleep` | a sleeping worker: bursts and latency |
//! | `lost` | search for lost events |
//! | `place` | cores of the threads |
//! | `result`, `plot` | figures and a picture |

mod asleep;
mod design;
mod load;
mod lost;
mod model;
mod place;
mod plot;
mod result;
mod settings;

pub use design::Design;
pub use settings::{Placement, QueueSettings};

use place::ThreadCores;

use crate::others::Others;
use crate::{BenchError, BenchWatch};
use onbeat_report::BenchResult;

/// Results of the bench.
#[derive(Debug, Clone)]
pub struct QueueResults {
    /// All figures, in the common form of the benches.
    pub result: BenchResult,
}

/// Runs the bench: every design in turn, once per round.
///
/// # Errors
/// [`BenchError`]: invalid settings, a thread that could not be started, or a stop before the first round was
/// complete.
pub fn run(settings: &QueueSettings, watch: &mut dyn BenchWatch) -> Result<QueueResults, BenchError> {
    if settings.producers == 0 || settings.repeats == 0 || settings.single == 0 {
        return Err(BenchError::Settings("items, producers and repeats must be 1 or more".to_owned()));
    }
    if settings.multi < settings.producers {
        let QueueSettings { multi, producers, .. } = settings;
        return Err(BenchError::Settings(format!(
            "{multi} items for {producers} producers: each producer needs at least one"
        )));
    }
    let others = Others::watch();
    let mut runs = result::DesignRuns::default();
    let place = ThreadCores::new(settings.placement, &mut runs.notes);
    runs.bursts =
        settings.burst_placements().map(|placement| (placement, result::DesignTable::default())).collect();
    let all = settings.repeats * Design::ALL.len();
    'rounds: for round in 0..settings.repeats {
        for (at, design) in Design::ALL.into_iter().enumerate() {
            if watch.is_stopped() {
                if round == 0 {
                    return Err(BenchError::Stopped);
                }
                runs.notes.push(format!("stopped in round {} of {}", round + 1, settings.repeats));
                break 'rounds;
            }
            let text = format!("round {} of {}: {}", round + 1, settings.repeats, design.name());
            watch.at(round * Design::ALL.len() + at, all, &text);
            runs.single.add(design, load::run(design, settings.single, 1, &place)?);
            runs.multi.add(design, load::run(design, settings.multi, settings.producers, &place)?);
            if let Some(asleep) = asleep::SleepingQueue::of(design).filter(|_| settings.bursts > 0) {
                for (placement, table) in &mut runs.bursts {
                    let place = ThreadCores::new(*placement, &mut Vec::new());
                    table.add(design, asleep::bursts(asleep, settings, &place)?);
                }
            }
        }
    }
    if settings.latencies > 0 && !watch.is_stopped() {
        watch.at(0, 1, "latency of a sleeping worker");
        runs.latency = asleep::latencies(settings, &place, &mut runs.notes)?;
    }
    if settings.lost_rounds > 0 && !watch.is_stopped() {
        watch.at(0, 1, "search for lost events");
        runs.lost = lost::all(settings.lost_rounds)?;
    }
    runs.others = others.share(0);
    Ok(QueueResults { result: result::result(settings, runs) })
}

impl QueueResults {
    /// Draws an SVG.
    #[must_use]
    pub fn to_svg(&self) -> String {
        plot::sheet(&self.result).to_svg()
    }
}
