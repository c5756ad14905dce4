//! Predictions for each scheduler from a short run with one worker, and a recommendation.

use crate::model::{Advice, GraphLoad, MachineCosts, Prediction, WorkerLayout, advise, predict};
use crate::trial::{self, Maker};
use crate::{BenchError, BenchWatch};
use onbeat_runtime::{Idle, Options, Plan, Scheduler};
use std::collections::BTreeMap;

/// Measured workload, predictions and recommendation.
#[derive(Debug, Clone)]
pub struct Advised {
    /// Work of the graph per iteration.
    pub workload: GraphLoad,
    /// Predictions in the order of the table; the simplest scheduler comes first.
    pub expected: Vec<Expected>,
    /// Recommended scheduler with reasons.
    pub advice: Advice,
    /// Additional notes.
    pub notes: Vec<String>,
}

/// Prediction for one scheduler.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Options of a run under it, with the operators' costs.
    pub options: Options,
    /// Predicted performance.
    pub prediction: Prediction,
    /// Placement of operators on workers.
    pub plan: Plan,
}

impl Advised {
    /// The recommended scheduler.
    #[must_use]
    pub fn chosen(&self) -> &Expected {
        &self.expected[self.advice.chosen]
    }
}

/// Number of runs that measure the operators' costs; the median run counts.
const RUNS: usize = 3;

/// Runs the graph several times with one worker and predicts its performance under each scheduler.
///
/// # Errors
/// [`BenchError`]: a graph that cannot run with one worker, a failed run, or a stop.
pub fn advised(
    maker: &mut dyn Maker,
    costs: &MachineCosts,
    seconds: f64,
    watch: &mut dyn BenchWatch,
) -> Result<Advised, BenchError> {
    if !(0.001..=600.0).contains(&seconds) {
        return Err(BenchError::Settings(format!("seconds is {seconds}: it must be from 0.001 to 600")));
    }
    let failed = |reason: String| BenchError::Scenario { name: "greedy".to_owned(), reason };
    let mut workloads = Vec::new();
    let mut given = Options::default();
    for run in 0..RUNS {
        watch.at(run, RUNS, "costs of its operators");
        if watch.is_stopped() {
            return Err(BenchError::Stopped);
        }
        let (_, options) = maker.make().map_err(BenchError::Settings)?;
        let duration_ns = (seconds * 1e9 / RUNS as f64) as u64;
        let record =
            trial::run(maker, &trial::options(&options, Scheduler::Greedy, duration_ns)).map_err(failed)?;
        let workload = GraphLoad::of(&record, costs);
        workloads.push(
            workload.ok_or_else(|| failed("its sources sent nothing in that time: give more time".into()))?,
        );
        given = options;
    }
    workloads.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let workload = workloads.swap_remove(RUNS / 2);
    let mut notes = Vec::new();
    let parks = given.idle == Idle::Park;
    let busy: BTreeMap<String, f64> =
        workload.operators.iter().map(|operator| (operator.name.clone(), operator.work_ns())).collect();
    let mut expected = Vec::new();
    for scheduler in trial::ALL {
        let mut options = trial::options(&given, scheduler, u64::MAX);
        options.duration_ns = given.duration_ns;
        options.costs.clone_from(&busy);
        let (graph, _) = maker.make().map_err(BenchError::Settings)?;
        match graph.plan(&options) {
            // Several workers that reduce to one are not another scheduler.
            Ok(plan) if scheduler != Scheduler::Greedy && plan.workers.len() == 1 => {
                notes.push(format!("{scheduler}: one worker would do everything, as with greedy"));
            }
            Ok(plan) => {
                let layout = trial::layout(&plan, &workload);
                let prediction = predict(&workload, &layout, costs, parks);
                expected.push(Expected { scheduler, options, prediction, plan });
            }
            Err(error) => notes.push(format!("{scheduler}: not available: {error}")),
        }
    }
    let named: Vec<(String, WorkerLayout, Prediction)> = expected
        .iter()
        .map(|one| (one.scheduler.to_string(), trial::layout(&one.plan, &workload), one.prediction))
        .collect();
    let advice = advise(&workload, &named, costs).ok_or_else(|| BenchError::Nothing(notes.join("; ")))?;
    Ok(Advised { workload, expected, advice, notes })
}
