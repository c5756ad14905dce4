//! From runs to figures.

use super::{Graphs, PipelineSettings, SchedulerRuns};
use crate::common;
use crate::trial::TrialFigures;
use onbeat_report::{BenchResult, bench::Machine};
use serde_json::json;

pub(super) fn result(settings: &PipelineSettings, graphs: &Graphs, all: &[SchedulerRuns]) -> BenchResult {
    let mut result = BenchResult::new("pipeline", Machine::read());
    result.parameters = common::parameters(json!({
        "pipeline": graphs.name,
        "counted": graphs.counted,
        "schedulers": all.iter().map(|runs| runs.options.scheduler.to_string()).collect::<Vec<_>>(),
        "idle": all.first().map(|runs| runs.options.idle.to_string()),
        "cores": all.first().map(|runs| runs.options.cores.clone()),
        "seconds": settings.seconds,
        "rounds": settings.rounds,
    }));
    let first: Vec<f64> = all.first().map_or(Vec::new(), |runs| of(&runs.taken, |taken| taken.rate));
    for runs in all {
        let name = format!("pipeline.{}", runs.options.scheduler);
        let rates = of(&runs.taken, |taken| taken.rate);
        result.add(&format!("{name}.rate"), &rates, "1/s");
        let times: Vec<f64> = rates.iter().zip(&first).map(|(rate, first)| rate / first).collect();
        result.add(&format!("{name}.times_first"), &times, "x");
        let latency = |of: fn((f64, f64)) -> f64| -> Vec<f64> {
            runs.taken.iter().filter_map(|taken| taken.latency.map(of)).collect()
        };
        result.add(&format!("{name}.latency.p50"), &latency(|(p50, _)| p50), "ns");
        result.add(&format!("{name}.latency.p99"), &latency(|(_, p99)| p99), "ns");
        result.add(&format!("{name}.cpu"), &of(&runs.taken, |taken| taken.cpu_ns), "ns");
        result.add(&format!("{name}.idle"), &of(&runs.taken, |taken| taken.idle * 100.0), "%");
    }
    result.notes.clone_from(&graphs.notes);
    result.notes.extend(limits(graphs, all));
    common::doubts(&mut result, graphs.others, common::AGAIN);
    result
}

fn of(taken: &[TrialFigures], value: fn(&TrialFigures) -> f64) -> Vec<f64> {
    taken.iter().map(value).collect()
}

/// Finds what sets the pace.
fn limits(graphs: &Graphs, all: &[SchedulerRuns]) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some(first) = all.first() {
        let mut idle = of(&first.taken, |taken| taken.idle);
        idle.sort_by(f64::total_cmp);
        let idle = idle.get(idle.len() / 2).copied().unwrap_or(0.0);
        let scheduler = first.options.scheduler;
        if idle > 0.1 {
            limits.push(format!(
                "under {scheduler} the worker was idle for {:.0} % of the time: something else sets the pace \
                 (a source that keeps time, a file, a network), so compare latency and CPU time instead of \
                 the rate",
                idle * 100.0
            ));
        }
        if let Some((name, share)) = graphs.heaviest.as_ref().filter(|(_, share)| *share > 0.5) {
            limits.push(format!(
                "{name} takes {:.0} % of the work: no scheduler can be faster than {:.1} times one worker, \
                 unless this operator is replicated",
                share * 100.0,
                1.0 / share
            ));
        }
    }
    limits
}
