//! Section of the record on paths.

use super::RunEnd;
use super::copies;
use super::report::PartReport;
use crate::plan::Plan;
use crate::plan::response::{Host, responses};
use onbeat_trace::record::{ClockKind, PathRecord};
use onbeat_trace::{Record, Summary};

/// Record of each path in the plan's order, with replicas added up.
pub(super) fn paths(
    plan: &Plan,
    reports: &mut [PartReport],
    end: &RunEnd,
    duration_ns: u64,
) -> Vec<PathRecord> {
    let mut paths: Vec<_> = reports.iter_mut().flat_map(|report| report.paths.drain(..)).collect();
    paths.sort_by_key(|&(number, ..)| number);
    let sent: Vec<(usize, u64)> = reports.iter_mut().flat_map(|report| report.sent.drain(..)).collect();
    for (number, path, _) in &mut paths {
        let source = plan.paths[*number].source;
        let sent: u64 = sent.iter().filter(|(number, _)| *number == source).map(|(_, sent)| sent).sum();
        path.in_flight_mean = in_flight(&path.latency, sent, duration_ns);
        if let Some(in_flight) = end.limits.in_flight.get(*number).copied().flatten() {
            path.in_flight_mean = path.in_flight_mean.map(|_| in_flight.mean(duration_ns));
            path.in_flight_most = Some(in_flight.most);
            path.held_back_ns = in_flight.held_ns;
        }
    }
    let paths = paths.into_iter().map(|(_, record, measured)| (record, measured));
    match plan.recipe.is_some() {
        true => copies::paths(paths.map(|(record, measured)| (record, measured.unwrap_or_default()))),
        false => paths.map(|(record, _)| record).collect(),
    }
}

/// Mean number of messages in flight: messages per second, times their mean latency.
fn in_flight(latency: &Summary, sent: u64, duration_ns: u64) -> Option<f64> {
    (latency.count > 0 && duration_ns > 0).then(|| latency.mean_ns * sent as f64 / duration_ns as f64)
}

/// Adds the computed worst case of each path. There is none for replicas, which have no fixed order, and none
/// in virtual time, in which steps take no time.
///
/// The computation knows each step and each wake-up, but not what a thread loses between them. What this run
/// has measured was possible, so the worst case is at least that.
pub(super) fn set_worst_cases(plan: &Plan, record: &mut Record) {
    if plan.recipe.is_none() && plan.options.clock == ClockKind::Real {
        let worst = responses(plan, record, &Host::default()).paths;
        for (path, bound) in record.paths.iter_mut().zip(worst) {
            path.worst_ns = bound.worst_ns.map(|worst_ns| worst_ns.max(path.latency.max_ns));
        }
    }
}
