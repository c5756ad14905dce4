//! Whether the plan's advice holds: graphs drawn at random, what is expected of each under each scheduler, and what it then does.
//!
//! | file | what |
//! |---|---|
//! | `draw` | a graph from a number: light and heavy operators, a state in the middle, branches, changes of the rate |
//! | `operators` | what such a graph is made of |

mod draw;
mod operators;

pub use draw::Shape;

use crate::model::MachineCosts;
use crate::others::Others;
use crate::pipeline::advised;
use crate::{BenchError, Watch};
use crate::{told, trial};
use onbeat_report::{BenchResult, Figure, bench::Machine};
use onbeat_runtime::{Idle, Scheduler};
use serde_json::json;

/// What is to be looked at.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many graphs.
    pub shapes: usize,
    /// Where the drawing begins: the same number draws the same graphs.
    pub seed: u64,
    /// How idle workers wait.
    pub idle: Idle,
    /// How long one run takes.
    pub seconds: f64,
    /// How often each is run under each scheduler.
    pub rounds: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { shapes: 10, seed: 1, idle: Idle::Spin, seconds: 0.15, rounds: 5 }
    }
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// All of it, in the form of every bench.
    pub result: BenchResult,
    /// In the order in which they were drawn.
    pub shapes: Vec<Tried>,
}

/// One graph.
#[derive(Debug, Clone)]
pub struct Tried {
    /// Its number: its figures begin with `shape.NUMBER`.
    pub number: usize,
    /// What it is, in a line.
    pub text: String,
    /// Under each scheduler what was expected and what was measured, in iterations per second.
    pub under: Vec<(Scheduler, f64, f64)>,
    /// Place of the recommended one.
    pub recommended: usize,
    /// Place of the fastest one.
    pub fastest: usize,
}

impl Tried {
    /// What the recommended one does of what the fastest one does: 0 to 1.
    #[must_use]
    pub fn of_fastest(&self) -> f64 {
        self.under[self.recommended].2 / self.under[self.fastest].2
    }

    /// By how much the throughput of the recommended one differs from what was expected: 0.1 for a tenth too high.
    #[must_use]
    pub fn error(&self) -> f64 {
        let (_, expected, measured) = self.under[self.recommended];
        expected / measured - 1.0
    }
}

/// Draws graphs, asks for advice on each, and measures all schedulers in turn.
///
/// # Errors
/// [`BenchError`]: a run that failed, settings that make no sense, or a stop before the first graph was done.
pub fn run(settings: &Settings, costs: &MachineCosts, watch: &mut dyn Watch) -> Result<Found, BenchError> {
    if settings.shapes == 0 || settings.rounds == 0 || !(0.01..=60.0).contains(&settings.seconds) {
        return Err(BenchError::Settings(
            "shapes and rounds are 1 or more each, and a run takes 0.01 to 60 seconds".to_owned(),
        ));
    }
    let others = Others::watch();
    let mut result = BenchResult::new("plan", Machine::read());
    result.parameters = told::parameters(json!({
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
    let count = |holds: fn(&Tried) -> bool| shapes.iter().filter(|tried| holds(tried)).count() as f64;
    result.add("advice.within_5_percent", &[count(|tried| tried.of_fastest() >= 0.95)], "shapes");
    result.add("advice.predicted_within_25_percent", &[count(|tried| tried.error().abs() <= 0.25)], "shapes");
    told::doubts(&mut result, others.share(0), told::AGAIN);
    Ok(Found { result, shapes })
}

fn one(
    number: usize,
    settings: &Settings,
    costs: &MachineCosts,
    watch: &mut dyn Watch,
    result: &mut BenchResult,
) -> Result<Tried, BenchError> {
    let mut shape =
        Shape::draw(settings.seed.wrapping_mul(1_000_003).wrapping_add(number as u64), settings.idle);
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
    Ok(Tried { number, text: shape.to_string(), under, recommended: advised.advice.chosen, fastest })
}
