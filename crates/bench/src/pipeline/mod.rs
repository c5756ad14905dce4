//! Runs a user's graph under each scheduler that can run it, in turn.
//!
//! | module | contents |
//! |---|---|
//! | `result` | figures, and what limits them |
//! | `advised` | predictions of the model, and the recommended scheduler |

mod advised;
mod result;

pub use advised::{Advised, Expected, advised};

use crate::others::Others;
use crate::trial::{self, Maker, TrialFigures};
use crate::{BenchError, BenchWatch};
use onbeat_report::BenchResult;
use onbeat_runtime::{Options, Scheduler};

/// Settings of the bench.
#[derive(Debug, Clone)]
pub struct PipelineSettings {
    /// Schedulers to try; empty: all that can run the graph.
    pub schedulers: Vec<Scheduler>,
    /// Longest duration of a run, which may end earlier on its own.
    pub seconds: f64,
    /// Number of rounds.
    pub rounds: usize,
}

impl Default for PipelineSettings {
    fn default() -> Self {
        PipelineSettings { schedulers: Vec::new(), seconds: 0.5, rounds: 5 }
    }
}

/// Results of the bench.
#[derive(Debug, Clone)]
pub struct PipelineResults {
    /// All figures, in the common form of the benches.
    pub result: BenchResult,
    /// Schedulers in the order of the table; their figures begin with `pipeline.NAME`.
    pub schedulers: Vec<Scheduler>,
}

/// Runs of one scheduler.
struct SchedulerRuns {
    options: Options,
    taken: Vec<TrialFigures>,
}

/// Data for the figures that are not part of the runs.
struct Graphs {
    name: String,
    /// Name of the counted edge: "a.out → b.in".
    counted: String,
    /// The operator that takes most of the time under the first scheduler, with its share of the work.
    heaviest: Option<(String, f64)>,
    others: Option<f64>,
    notes: Vec<String>,
}

/// Runs the graph under each scheduler in turn, once per round.
///
/// # Errors
/// [`BenchError`]: no scheduler that can run the graph, a failed run, or a stop before the first round was
/// complete.
pub fn run(
    maker: &mut dyn Maker,
    settings: &PipelineSettings,
    watch: &mut dyn BenchWatch,
) -> Result<PipelineResults, BenchError> {
    if settings.rounds == 0 || !(0.001..=600.0).contains(&settings.seconds) {
        return Err(BenchError::Settings(
            "rounds must be 1 or more, and seconds from 0.001 to 600".to_owned(),
        ));
    }
    let (graph, given) = made(maker)?;
    let mut graphs = Graphs {
        name: graph.name().to_owned(),
        counted: String::new(),
        heaviest: None,
        others: None,
        notes: Vec::new(),
    };
    drop(graph);
    let mut all = possible(maker, settings, &given, &mut graphs.notes)?;
    if all.is_empty() {
        return Err(BenchError::Nothing(graphs.notes.join("; ")));
    }
    let others = Others::watch();
    let mut place = None;
    'rounds: for round in 0..settings.rounds {
        let (done, count) = (round * all.len(), settings.rounds * all.len());
        for (at, runs) in all.iter_mut().enumerate() {
            let name = runs.options.scheduler.to_string();
            watch.at(done + at, count, &format!("round {} of {}: {name}", round + 1, settings.rounds));
            if watch.is_stopped() {
                if round == 0 {
                    return Err(BenchError::Stopped);
                }
                graphs.notes.push(format!("stopped in round {} of {}", round + 1, settings.rounds));
                break 'rounds;
            }
            let failed = |reason: String| BenchError::Scenario { name: name.clone(), reason };
            let record = trial::run(maker, &runs.options).map_err(failed)?;
            let counted = *place.get_or_insert_with(|| trial::counted(&record));
            if graphs.counted.is_empty() {
                graphs.counted = record
                    .edges
                    .get(counted)
                    .map_or(String::new(), |edge| format!("{} → {}", edge.from, edge.to));
                graphs.heaviest = heaviest(&record);
            }
            runs.taken.push(trial::taken(&record, counted).map_err(failed)?);
        }
    }
    graphs.others = others.share(0);
    // Only whole rounds count, so that all compared figures were measured close together.
    let rounds = all.iter().map(|runs| runs.taken.len()).min().unwrap_or(0);
    all.iter_mut().for_each(|runs| runs.taken.truncate(rounds));
    let schedulers = all.iter().map(|runs| runs.options.scheduler).collect();
    Ok(PipelineResults { result: result::result(settings, &graphs, &all), schedulers })
}

/// Schedulers that can run the graph, with their options. A scheduler that cannot is noted; if it was named
/// explicitly, it is an error.
fn possible(
    maker: &mut dyn Maker,
    settings: &PipelineSettings,
    given: &Options,
    notes: &mut Vec<String>,
) -> Result<Vec<SchedulerRuns>, BenchError> {
    let mut wanted = settings.schedulers.clone();
    if wanted.is_empty() {
        wanted = trial::ALL.to_vec();
        if !given.pools.is_empty() {
            wanted.push(Scheduler::Custom);
        }
    }
    let mut all = Vec::new();
    for scheduler in wanted {
        let duration_ns = (settings.seconds * 1e9) as u64;
        let options = trial::options(given, scheduler, duration_ns);
        let (graph, _) = made(maker)?;
        match graph.plan(&options) {
            Ok(_) => all.push(SchedulerRuns { options, taken: Vec::new() }),
            Err(error) => notes.push(format!("{scheduler}: not available: {error}")),
        }
    }
    Ok(all)
}

fn made(maker: &mut dyn Maker) -> Result<(onbeat_runtime::Graph, Options), BenchError> {
    maker.make().map_err(BenchError::Settings)
}

fn heaviest(record: &onbeat_trace::Record) -> Option<(String, f64)> {
    let all: u64 = record.operators.iter().map(|operator| operator.busy_ns).sum();
    let most = record.operators.iter().max_by_key(|operator| operator.busy_ns)?;
    (all > 0).then(|| (most.name.clone(), most.busy_ns as f64 / all as f64))
}
