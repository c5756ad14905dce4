//! Converts passes to the common form of the benches.

use super::causes::MACHINE;
use super::figures::{DeviationSummary, LIMITS, PassFigures};
use super::{RealtimeResults, RealtimeRow, RealtimeSettings};
use crate::common;
use onbeat_report::{BenchResult, bench::Machine};
use serde_json::{Value, json};

pub(super) fn found(
    settings: &RealtimeSettings,
    rows: Vec<RealtimeRow>,
    others: Option<f64>,
    versions: Option<(String, String)>,
    notes: Vec<String>,
) -> RealtimeResults {
    let mut result = BenchResult::new("realtime", Machine::read());
    result.parameters = parameters(settings, versions.as_ref());
    let target_ns = settings.period_ns() as f64;
    for row in &rows {
        add(&mut result, row, target_ns);
    }
    for row in &rows {
        let of = |name: String| rows.iter().find(|row| row.name == name);
        if let Some(floor) = of(format!("floor_{}", row.name)) {
            ratios(&mut result, row, floor, "floor", target_ns);
        }
        if let Some(baseline) = of("baseline".to_owned()).filter(|_| row.name != "baseline") {
            ratios(&mut result, row, baseline, "baseline", target_ns);
        }
    }
    result.notes = notes;
    if let Some((holoscan, python)) = versions {
        result
            .notes
            .push(format!("Holoscan {holoscan}, Python {python}: its operators are written in Python"));
    }
    common::doubts(&mut result, others, "the causes below say where that delayed a frame");
    let mut outliers = Vec::new();
    for row in &rows {
        for (round, taken) in row.taken.iter().enumerate() {
            outliers.extend(taken.outliers.iter().map(|outlier| (row.name.clone(), round, outlier.clone())));
        }
    }
    result.raw = raw(&rows);
    let passes = rows.iter().map(|row| row.name.clone()).collect();
    let series = rows.into_iter().map(|row| (row.name, row.taken)).collect();
    RealtimeResults { result, passes, outliers, series }
}

fn parameters(
    settings: &RealtimeSettings,
    versions: Option<&(String, String)>,
) -> serde_json::Map<String, Value> {
    let policies: Vec<&str> = settings.policies.iter().map(|kind| kind.name()).collect();
    common::parameters(json!({
        "target_fps": settings.target_fps,
        "duration_s": settings.duration_ns as f64 / 1e9,
        "scheduling_policy": policies,
        "priority": settings.priority,
        "bg_load_intensity": settings.bg_load_intensity,
        "bg_workload_size": settings.bg_workload_size,
        "bm_load_intensity": settings.bm_load_intensity,
        "bm_workload_size": settings.bm_workload_size,
        "worker_thread_number": settings.worker_threads,
        "dummy_load_number": settings.dummy_loads,
        "pin_cpu": settings.pin_cpu,
        "idle": settings.idle.to_string(),
        "rounds": settings.rounds,
        "peer": versions.map(|(holoscan, python)| json!({ "name": "holoscan", "version": holoscan, "python": python })),
    }))
}

/// Figures of one pass: one value per round, and their median.
fn add(result: &mut BenchResult, row: &RealtimeRow, target_ns: f64) {
    let name = &row.name;
    let mut summaries = |what: &str, of: &dyn Fn(&PassFigures) -> Vec<f64>| {
        let rounds: Vec<DeviationSummary> =
            row.taken.iter().filter_map(|taken| DeviationSummary::of(&of(taken))).collect();
        let Some(first) = rounds.first() else { return };
        for (at, (figure, _)) in first.named().into_iter().enumerate() {
            let runs: Vec<f64> = rounds.iter().map(|summary| summary.named()[at].1).collect();
            result.add(&format!("{name}.{what}.{figure}"), &runs, "ns");
        }
    };
    summaries("period", &|taken| taken.periods_ns.clone());
    summaries("period_without_machine", &|taken| taken.periods_without_ns.clone());
    summaries("deviation", &|taken| taken.deviations_ns(target_ns));
    summaries("execution", &|taken| taken.executions_ns.clone());
    let runs = |of: &dyn Fn(&PassFigures) -> f64| row.taken.iter().map(of).collect::<Vec<f64>>();
    for (limit, limit_ns) in LIMITS {
        result.add(&format!("{name}.{limit}"), &runs(&|taken| taken.over(target_ns, limit_ns) as f64), "1");
    }
    result.add(&format!("{name}.fps"), &runs(&|taken| taken.fps), "1/s");
    result.add(&format!("{name}.frames"), &runs(&|taken| taken.executions_ns.len() as f64), "1");
    result.add(&format!("{name}.missed"), &runs(&|taken| taken.missed as f64), "1");
    result.add(&format!("{name}.delayed_by_machine"), &runs(&|taken| taken.machines() as f64), "1");
}

/// Ratio of this pass's deviations to another's, within each round, because the machine was the same then.
fn ratios(result: &mut BenchResult, row: &RealtimeRow, other: &RealtimeRow, against: &str, target_ns: f64) {
    for (at, figure) in [(4, "p50"), (5, "p99")] {
        let of = |taken: &PassFigures| {
            DeviationSummary::of(&taken.deviations_ns(target_ns)).map(|summary| summary.named()[at].1)
        };
        let pairs = row.taken.iter().zip(&other.taken);
        let shares: Vec<f64> =
            pairs.filter_map(|(own, other)| Some(of(own)? / of(other)?.max(1.0))).collect();
        result.add(&format!("ratio.{against}.{}.{figure}", row.name), &shares, "x");
    }
}

fn raw(rows: &[RealtimeRow]) -> serde_json::Map<String, Value> {
    let round = |taken: &PassFigures| {
        json!({
            "period_ns": taken.periods_ns,
            "execution_ns": taken.executions_ns,
            "outliers": taken.outliers,
        })
    };
    let row =
        |row: &RealtimeRow| (row.name.clone(), row.taken.iter().map(round).collect::<Vec<Value>>().into());
    rows.iter().map(row).collect()
}

impl RealtimeResults {
    /// Causes of one pass's late frames, the most frequent first: name, number of frames, and the longest
    /// delay in nanoseconds.
    #[must_use]
    pub fn causes(&self, pass: &str) -> Vec<(String, usize, u64)> {
        let mut causes: Vec<(String, usize, u64)> = Vec::new();
        for (_, _, outlier) in self.outliers.iter().filter(|it| it.0 == pass && it.2.is_late) {
            match causes.iter_mut().find(|cause| cause.0 == outlier.cause) {
                Some(cause) => (cause.1, cause.2) = (cause.1 + 1, cause.2.max(outlier.excess_ns)),
                None => causes.push((outlier.cause.clone(), 1, outlier.excess_ns)),
            }
        }
        causes.sort_by_key(|cause| (std::cmp::Reverse(cause.1), cause.0 == MACHINE));
        causes
    }
}
