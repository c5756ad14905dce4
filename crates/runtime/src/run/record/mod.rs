//! Record of a run, which all views read: each part reports at its end, and the reports are joined section by
//! section.

mod copies;
mod edges;
mod links;
mod operators;
mod paths;
mod report;
mod result;

pub(crate) use copies::join;
pub(crate) use report::{PartReport, ThreadReport, ThreadTime, report};

use crate::base::bounded_list::BoundedList;
use crate::base::wording;
use crate::engine::control::RunFault;
use crate::engine::control::standstill::Standstill;
use crate::engine::limits::LimitsOutcome;
use crate::plan::{PathPlan, Plan};
use onbeat_trace::record::{
    Build, ClockRecord, FaultAction, FaultRecord, Obtained, OperatorRecord, OperatorState, PlanRecord,
    ThreadRecord, WorkerRecord,
};
use onbeat_trace::{Histogram, Machine, Record, record};
use result::Unprocessed;
use std::mem::take;

/// End of a run, as far as parts and threads do not report it.
pub(crate) struct RunEnd {
    pub started_unix_ns: u64,
    /// Time of the first step; `None` if there was none.
    pub start_ns: Option<u64>,
    pub was_stopped: bool,
    /// Faults that ended the run.
    pub faults: Vec<RunFault>,
    pub stuck: Vec<Standstill>,
    /// By operator of the plan: durations of the steps that the recorder counted instead of the worker. Empty
    /// without recorder.
    pub recorded_steps: Vec<Histogram>,
    /// Outcome of the user's limits.
    pub limits: LimitsOutcome,
    /// Faults that neither a part reports nor ended the run.
    pub survived: Vec<FaultRecord>,
    /// Settings requested from the machine, and what was obtained.
    pub obtained: Vec<Obtained>,
    /// Number of times that deadline threads used up their run time.
    pub overruns: Option<u64>,
    /// Threads besides the workers.
    pub helpers: Vec<ThreadRecord>,
}

/// Joins the workers' reports to the record of the run.
pub(crate) fn record(
    name: String,
    config: serde_json::Value,
    plan: &Plan,
    mut threads: Vec<ThreadReport>,
    mut end: RunEnd,
) -> Record {
    let mut reports: Vec<PartReport> = threads.iter_mut().flat_map(|thread| thread.parts.drain(..)).collect();
    let end_ns = end_ns(&reports, &end);
    let duration_ns = end.start_ns.map_or(0, |start_ns| end_ns.saturating_sub(start_ns));
    let (edges, lost) = edges::edges(plan, &reports);
    // The last messages in a cycle do not count: no run would ever read them.
    let forward = edges.iter().zip(&plan.wires).filter(|(_, wire)| !wire.feedback);
    let unprocessed = Unprocessed { lost, unread: forward.map(|(edge, _)| edge.unread).sum() };
    let operators = operators::operators(plan, &mut reports, &end);
    let losses = losses(&operators);
    let paths = paths::paths(plan, &mut reports, &end, duration_ns);
    let (misses, misses_total) =
        BoundedList::join(reports.iter_mut().map(|report| take(&mut report.misses)), |miss| miss.time_ns);
    let (changes, changes_total) =
        BoundedList::join(reports.iter_mut().map(|report| take(&mut report.changes)), |change| {
            change.time_ns
        });
    let (faults, faults_total) = faults(plan, &mut reports, &mut end);
    let notes = notes(plan, &mut reports, &end);
    let of_operators: Vec<Obtained> =
        reports.iter_mut().flat_map(|report| report.obtained.drain(..)).collect();
    let links = reports.iter_mut().flat_map(|report| report.links.drain(..)).collect();
    let isolated = operators.iter().filter(|operator| operator.state == OperatorState::Isolated);
    let isolated: Vec<String> = isolated.map(|operator| format!("`{}`", operator.name)).collect();
    let mut record = Record {
        schema: record::SCHEMA.to_string(),
        version: record::VERSION,
        name,
        build: build(),
        started_unix_ns: end.started_unix_ns,
        machine: Machine::of_this_process().clone(),
        config,
        plan: plan_record(plan, &operators),
        clock: ClockRecord {
            kind: plan.options.clock,
            source: reports.iter().find_map(|report| report.source.clone()),
            read_ns: reports.iter().find_map(|report| report.read_ns),
        },
        threads: threads
            .into_iter()
            .filter_map(|thread| thread.thread)
            .chain(end.helpers.drain(..))
            .collect(),
        operators,
        edges: if plan.recipe.is_some() { copies::edges(edges) } else { edges },
        paths,
        stores: reports.iter_mut().flat_map(|report| report.stores.drain(..)).collect(),
        misses,
        misses_total,
        causes: Vec::new(),
        explained: None,
        changes,
        changes_total,
        faults,
        faults_total,
        obtained: plan.obtained.iter().cloned().chain(end.obtained.drain(..)).chain(of_operators).collect(),
        links,
        deadline_overruns: end.overruns,
        notes,
        result: result::result(plan, end, &isolated, &losses, unprocessed, (end_ns, duration_ns)),
    };
    links::set_dropped_before(&mut record);
    paths::set_worst_cases(plan, &mut record);
    record
}

/// Losses of all operators in words, with their number.
fn losses(operators: &[OperatorRecord]) -> Vec<(u64, String)> {
    let of = |operator: &OperatorRecord| {
        let mut sums: Vec<(u64, &str)> = Vec::new();
        for loss in &operator.losses {
            match sums.iter_mut().find(|(_, unit)| *unit == loss.unit) {
                Some((sum, _)) => *sum = sum.saturating_add(loss.count),
                None => sums.push((loss.count, &loss.unit)),
            }
        }
        let name = &operator.name;
        sums.iter().map(|(count, unit)| (*count, format!("`{name}` lost {count} {unit}"))).collect::<Vec<_>>()
    };
    operators.iter().flat_map(of).collect()
}

/// Time at which the last part ended, on the run's clock.
fn end_ns(reports: &[PartReport], end: &RunEnd) -> u64 {
    // A thread that does not come back reports no end. The last fault, its hang, stands for it.
    let last_fault_ns = end.faults.iter().map(|fault| fault.time_ns).max();
    let given_up_ns = end.start_ns.zip(last_fault_ns).map(|(start_ns, time_ns)| start_ns + time_ns);
    reports.iter().map(|report| report.end_ns).chain(given_up_ns).max().unwrap_or(0)
}

/// Faults by time, and their total number: those that parts report, those survived, and those that ended the
/// run.
fn faults(plan: &Plan, reports: &mut [PartReport], end: &mut RunEnd) -> (Vec<FaultRecord>, u64) {
    let fatal = end.faults.iter().map(|fault| FaultRecord {
        time_ns: fault.time_ns,
        operator: fault.operator.map(|operator| plan.operators[operator].name.clone()),
        what: fault.what,
        text: fault.text.clone(),
        then: FaultAction::Stopped,
        delay_ns: None,
        stack: fault.stack.clone(),
    });
    let fatal = fatal.collect();
    let ending = [take(&mut end.survived), fatal].map(BoundedList::from);
    let of_parts = reports.iter_mut().map(|report| take(&mut report.faults));
    BoundedList::join(of_parts.chain(ending), |fault| fault.time_ns)
}

/// Notes of the plan, of the operators, and on the ticks that sources left out.
fn notes(plan: &Plan, reports: &mut [PartReport], end: &RunEnd) -> Vec<String> {
    let of_operators = reports.iter_mut().flat_map(|report| report.notes.drain(..));
    let left_out = end.limits.skipped.iter().map(|(source, ticks)| {
        format!("{source}: left out {ticks} ticks, because messages of it were late (on_miss = \"skip\")")
    });
    let held_back = plan.paths.iter().zip(&end.limits.in_flight).filter_map(|(path, in_flight)| {
        let held_ns = in_flight.filter(|in_flight| in_flight.held_ns > 0)?.held_ns;
        let PathPlan { from, to, .. } = path;
        let held = wording::time(held_ns);
        Some(format!(
            "{from} → {to}: `max_in_flight` held messages back, up to {held} after they were due: latencies count from then on"
        ))
    });
    plan.notes.iter().cloned().chain(of_operators).chain(left_out).chain(held_back).collect()
}

fn plan_record(plan: &Plan, operators: &[OperatorRecord]) -> PlanRecord {
    PlanRecord {
        scheduler: plan.scheduler,
        workers: plan
            .workers
            .iter()
            .map(|worker| WorkerRecord { name: worker.name.clone(), operators: worker.operators.clone() })
            .collect(),
        order: operators.iter().map(|operator| operator.name.clone()).collect(),
    }
}

fn build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION").to_string(),
        profile: if cfg!(debug_assertions) { "dev" } else { "release" }.to_string(),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
    }
}
