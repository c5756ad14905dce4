//! Tests the plan's advice with random graphs: predicts their performance under each scheduler, and measures
//! it.
//!
//! | module | contents |
//! |---|---|
//! | `draw` | graphs from numbers: light and heavy operators, state, branches, changes of the rate |
//! | `operators` | operators of such a graph |

mod draw;
mod operators;

pub use draw::GraphShape;

use crate::model::MachineCosts;
use crate::others::Others;
use crate::pipeline::advised;
use crate::{BenchError, BenchWatch};
use crate::{common, trial};
use onbeat_report::{BenchResult, Figure, bench::Machine};
use onbeat_runtime::{Idle, Scheduler};
use serde_json::json;

/// Settings of the bench.
#[derive(Debug, Clone)]
pub struct ShapesSettings {
    /// Number of graphs.
    pub shapes: usize,
    /// Seed: the same number gives the same graphs.
    pub seed: u64,
    /// Waiting of idle workers.
    pub idle: Idle,
    /// Duration of a run, in seconds.
    pub seconds: f64,
    /// Number of runs of each graph under each scheduler.
    pub rounds: usize,
}

impl Default for ShapesSettings {
    fn default() -> Self {
        ShapesSettings { shapes: 10, seed: 1, idle: Idle::Spin, seconds: 0.15, rounds: 5 }
    }
}

/// Results of the bench.
#[derive(Debug, Clone)]
pub struct ShapesResults {
    /// All figures, in the common form of the benches.
    pub result: BenchResult,
    /// Graphs in the order of their numbers.
    pub shapes: Vec<ShapeTrial>,
}

/// Result of one graph.
#[derive(Debug, Clone)]
pub struct ShapeTrial {
    /// Number of the graph: its figures begin with `shape.NUMBER`.
    pub number: usize,
    /// Description in one line.
    pub text: String,
    /// Predicted and measured iterations per second under each scheduler.
    pub under: Vec<(Scheduler, f64, f64)>,
    /// Index of the recommended scheduler.
    pub recommended: usize,
    /// Index of the fastest scheduler.
    pub fastest: usize,
}

impl ShapeTrial {
    /// Throughput of the recommended scheduler relative to the fastest: 0 to 1.
    #[must_use]
    pub fn of_fastest(&self) -> f64 {
        self.under[self.recommended].2 / self.under[self.fastest].2
    }

    /// Relative error of the recommended scheduler's prediction: 0.1 if it was a tenth too high.
    #[must_use]
    pub fn error(&self) -> f64 {
        let (_, expected, measured) = self.under[self.recommended];
        expected / measured - 1.0
    }
}

/// Creates graphs, gets advice for each, and measures all schedulers in turn.
///
/// # Errors
/// [`BenchError`]: a failed run, invalid settings, or a stop before the first graph was complete.
pub fn run(
    settings: &ShapesSettings,
    costs: &MachineCosts,
    watch: &mut dyn BenchWatch,
) -> Result<ShapesResults, BenchError> {
    if settings.shapes == 0 || settings.rounds == 0 || !(0.01..=60.0).contains(&settings.seconds) {
        return Err(BenchError::Settings(
            "shapes and rounds must be 1 or more, and seconds from 0.01 to 60".to_owned(),
        ));
    }
    let others = Others::watch();
    let mut result = BenchResult::new("plan", Machine::read());
    result.parameters = common::parameters(json!({
        "shapes": settings.shapes, "seed": settings.seed, "idle": settings.idle.to_string(),
        "seconds": settings.seconds, "rounds": settings.rounds, "costs": costs,
    }));
    let mut shapes = Vec::new();
    for number in 1..=settings.shapes {
        if watch.is_stopped() {
            result.notes.push(format!("stopped after {} of {}", number - 1, settings.shapes));
            break;
        }
        match one(number, settings, costs, watch, &mut result) {
            Ok(tried) => shapes.push(tried),
            Err(BenchError::Stopped) if !shapes.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    if shapes.is_empty() {
        return Err(BenchError::Stopped);
    }
    let count = |holds: fn(&ShapeTrial) -> bool| shapes.iter().filter(|tried| holds(tried)).count() as f64;
    result.add("advice.within_5_percent", &[count(|tried| tried.of_fastest() >= 0.95)], "shapes");
    result.add("advice.predicted_within_25_percent", &[count(|tried| tried.error().abs() <= 0.25)], "shapes");
    common::doubts(&mut result, others.share(0), common::AGAIN);
    Ok(ShapesResults { result, shapes })
}

fn one(
    number: usize,
    settings: &ShapesSettings,
    costs: &MachineCosts,
    watch: &mut dyn BenchWatch,
    result: &mut BenchResult,
) -> Result<ShapeTrial, BenchError> {
    let mut shape =
        GraphShape::draw(settings.seed.wrapping_mul(1_000_003).wrapping_add(number as u64), settings.idle);
    let advised = advised(&mut shape, costs, settings.seconds * 2.0, watch)?;
    let mut rates = vec![Vec::new(); advised.expected.len()];
    for round in 0..settings.rounds {
        for (rates, expected) in rates.iter_mut().zip(&advised.expected) {
            let text = format!("shape {number}, round {}: {}", round + 1, expected.scheduler);
            watch.at((number - 1) * settings.rounds + round, settings.shapes * settings.rounds, &text);
            if watch.is_stopped() {
                return Err(BenchError::Stopped);
            }
            let mut options = expected.options.clone();
            options.duration_ns = Some((settings.seconds * 1e9) as u64);
            let name = format!("shape {number} under {}", expected.scheduler);
            let failed = |reason: String| BenchError::Scenario { name: name.clone(), reason };
            let record = trial::run(&mut shape, &options).map_err(failed)?;
            rates.push(trial::taken(&record, trial::counted(&record)).map_err(failed)?.rate);
        }
    }
    let mut under = Vec::new();
    for (expected, rates) in advised.expected.iter().zip(&rates) {
        let name = format!("shape.{number}.{}", expected.scheduler);
        result.add(&format!("{name}.rate"), rates, "1/s");
        result.add(&format!("{name}.expected"), &[expected.prediction.rate], "1/s");
        let measured = Figure::of(rates, "1/s").map_or(0.0, |figure| figure.value);
        under.push((expected.scheduler, expected.prediction.rate, measured));
    }
    let fastest = (0..under.len()).max_by(|&a, &b| under[a].2.total_cmp(&under[b].2)).unwrap_or(0);
    Ok(ShapeTrial { number, text: shape.to_string(), under, recommended: advised.advice.chosen, fastest })
}
