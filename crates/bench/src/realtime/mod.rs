//! Frame jitter next to operators that load the same core, like the benchmark that Holoscan publishes for its
//! real-time threads.
//!
//! | module | contents |
//! |---|---|
//! | `settings` | settings, by their published names |
//! | `work`, `frames` | work of frames and loads, and the times of the frames |
//! | `pass` | one pass, by the engine or by a bare loop |
//! | `causes` | causes of late frames |
//! | `figures` | figures of the frames |
//! | `peer` | the same passes in Holoscan |
//! | `result`, `plot` | figures and a picture |

mod causes;
mod figures;
mod frames;
mod pass;
mod peer;
mod plot;
mod result;
mod settings;
mod work;

pub use causes::{MACHINE, OUTLIER_NS, Outlier};
pub use peer::RealtimePeer;
pub use settings::{RealtimePolicy, RealtimeSettings};

use crate::others::{self, Others};
use crate::{BenchError, BenchWatch};
use causes::FrameCauses;
use figures::PassFigures;
use onbeat_os::CoreSet;
use onbeat_report::BenchResult;
use pass::Pass;
use peer::RealtimeHoloscan;

/// Results of the bench.
#[derive(Debug, Clone)]
pub struct RealtimeResults {
    /// All figures, in the common form of the benches.
    pub result: BenchResult,
    /// The passes made, as figures name them, each followed by its floor.
    pub passes: Vec<String>,
    /// Outliers of each pass: the round, and the cause.
    pub outliers: Vec<(String, usize, Outlier)>,
    series: Vec<(String, Vec<PassFigures>)>,
}

/// One pass with all of its rounds.
struct RealtimeRow {
    name: String,
    runner: RowRunner,
    taken: Vec<PassFigures>,
}

enum RowRunner {
    Own(Pass),
    Peer(Option<RealtimePolicy>),
}

/// Runs the bench: every pass in turn, once per round. A policy that the machine refuses is skipped, and a
/// note says why.
///
/// # Errors
/// [`BenchError`]: invalid settings, a failed run, or a stop before the first pass was complete.
pub fn run(settings: &RealtimeSettings, watch: &mut dyn BenchWatch) -> Result<RealtimeResults, BenchError> {
    check(settings)?;
    let mut notes = Vec::new();
    let mut rows: Vec<RealtimeRow> = Pass::all(settings)
        .into_iter()
        .map(|pass| RealtimeRow { name: pass.name(), runner: RowRunner::Own(pass), taken: Vec::new() })
        .collect();
    let mut peer = settings.peer.as_ref().and_then(|peer| {
        watch.at(0, 1, "starting Holoscan");
        RealtimeHoloscan::start(peer).inspect_err(|reason| notes.push(reason.clone())).ok()
    });
    if peer.is_some() {
        let kinds = settings.policies.iter().filter(|&&kind| peer::has(kind)).copied().map(Some);
        rows.extend([None].into_iter().chain(kinds).map(|kind| RealtimeRow {
            name: format!("holoscan_{}", kind.map_or("baseline", RealtimePolicy::name)),
            runner: RowRunner::Peer(kind),
            taken: Vec::new(),
        }));
    }
    let cores: Vec<usize> = CoreSet::online().map(|cores| cores.iter().collect()).unwrap_or_default();
    let mut causes = FrameCauses::open(&cores, &mut notes);
    let helpers_ns =
        |peer: &Option<RealtimeHoloscan>| peer.as_ref().and_then(|it| others::cpu_ns(it.id())).unwrap_or(0);
    let (others, before_ns) = (Others::watch(), helpers_ns(&peer));
    let passes = rows.len();
    let all = settings.rounds * passes;
    'rounds: for round in 0..settings.rounds {
        for (at, row) in rows.iter_mut().enumerate() {
            if watch.is_stopped() {
                if round == 0 && at == 0 {
                    return Err(BenchError::Stopped);
                }
                notes.push(format!(
                    "stopped in round {} of {}, before {}",
                    round + 1,
                    settings.rounds,
                    row.name
                ));
                break 'rounds;
            }
            let text = format!("round {} of {}: {}", round + 1, settings.rounds, row.name);
            watch.at(round * passes + at, all, &text);
            let answer = match row.runner {
                RowRunner::Own(pass) => pass.run(settings, &mut causes, watch)?,
                RowRunner::Peer(kind) => match &mut peer {
                    Some(peer) => {
                        causes.begin();
                        peer.run(settings, kind)
                    }
                    None => continue,
                },
            };
            match answer {
                Ok(frames) => {
                    row.taken.push(PassFigures::of(&frames, &causes.outliers, settings.period_ns()))
                }
                Err(reason) => {
                    let note = format!("{}: not available: {reason}", row.name);
                    if !notes.contains(&note) {
                        notes.push(note);
                    }
                }
            }
        }
    }
    let others = others.share(helpers_ns(&peer).saturating_sub(before_ns));
    rows.retain(|row| !row.taken.is_empty());
    let versions = peer.map(|peer| peer.versions().clone());
    Ok(result::found(settings, rows, others, versions, notes))
}

/// Most frames of a pass: more than a day at 60 per second.
const MOST_FRAMES: u64 = 10_000_000;

fn check(settings: &RealtimeSettings) -> Result<(), BenchError> {
    let refuse = |text: String| Err(BenchError::Settings(text));
    let RealtimeSettings { target_fps, duration_ns, pin_cpu, .. } = *settings;
    if !(0.1..=10_000.0).contains(&target_fps) {
        return refuse(format!("target-fps is {target_fps}: it must be from 0.1 to 10000"));
    }
    if duration_ns / settings.period_ns() < 5 {
        let seconds = duration_ns as f64 / 1e9;
        return refuse(format!(
            "{seconds} s at {target_fps} frames per second are fewer than 5 frames: a pass must take {:.3} s \
             or more",
            5.0 * settings.period_ns() as f64 / 1e9
        ));
    }
    let frames = duration_ns / settings.period_ns();
    if frames > MOST_FRAMES {
        return refuse(format!(
            "{frames} frames per pass: at most {MOST_FRAMES} can be kept; make the pass shorter"
        ));
    }
    if settings.rounds == 0 || settings.worker_threads == 0 {
        return refuse("rounds and worker threads must be 1 or more".to_owned());
    }
    let allowed =
        CoreSet::allowed().map_err(|error| BenchError::System { what: "cores of this process", error })?;
    if !allowed.contains(pin_cpu) {
        return refuse(format!("core {pin_cpu} is not available to this process, which can use {allowed}"));
    }
    Ok(())
}

impl RealtimeResults {
    /// Draws an SVG: a histogram of the periods, one of those near the target, and each period over time.
    #[must_use]
    pub fn to_svg(&self) -> String {
        plot::sheet(self).to_svg()
    }
}
