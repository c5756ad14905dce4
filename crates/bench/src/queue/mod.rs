//! What the work queue costs per item, beside models of a kernel's queue before and after its batching change, and channels.
//!
//! | file | what |
//! |---|---|
//! | `settings` | what is to be measured |
//! | `design` | who takes part |
//! | `model` | the queues of the kernel |
//! | `load` | as fast as one producer can, and several |
//! | `asleep` | a worker that sleeps: bursts, and how late it is |
//! | `lost` | rounds in which an event may be lost |
//! | `place` | on which cores |
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
pub use settings::{Placement, Settings};

use place::Place;

use crate::others::Others;
use crate::{BenchError, Watch};
use onbeat_report::BenchResult;

/// What was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// All of it, in the form of every bench.
    pub result: BenchResult,
}

/// Measures all that the settings ask for: every design in turn, so often.
///
/// # Errors
/// [`BenchError`]: settings that make no sense, a thread that could not be started, a stop before the first round was over.
pub fn run(settings: &Settings, watch: &mut dyn Watch) -> Result<Found, BenchError> {
    if settings.producers == 0 || settings.repeats == 0 || settings.single == 0 {
        return Err(BenchError::Settings("items, producers and repeats are 1 or more each".to_owned()));
    }
    if settings.multi < settings.producers {
        let Settings { multi, producers, .. } = settings;
        return Err(BenchError::Settings(format!(
            "{multi} items are too few for {producers} producers: each needs one"
        )));
    }
    let others = Others::watch();
    let mut runs = result::Runs::default();
    let place = Place::new(settings.placement, &mut runs.notes);
    runs.bursts =
        settings.burst_placements().map(|placement| (placement, result::Table::default())).collect();
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
            if let Some(asleep) = asleep::Kind::of(design).filter(|_| settings.bursts > 0) {
                for (placement, table) in &mut runs.bursts {
                    let place = Place::new(*placement, &mut Vec::new());
                    table.add(design, asleep::bursts(asleep, settings, &place)?);
                }
            }
        }
    }
    if settings.latencies > 0 && !watch.is_stopped() {
        watch.at(0, 1, "how late a sleeping worker is");
        runs.latency = asleep::latencies(settings, &place, &mut runs.notes)?;
    }
    if settings.lost_rounds > 0 && !watch.is_stopped() {
        watch.at(0, 1, "rounds in which an event may be lost");
        runs.lost = lost::all(settings.lost_rounds)?;
    }
    runs.others = others.share(0);
    Ok(Found { result: result::result(settings, runs) })
}

impl Found {
    /// As an SVG.
    #[must_use]
    pub fn to_svg(&self) -> String {
        plot::sheet(&self.result).to_svg()
    }
}
