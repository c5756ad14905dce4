//! What a run has measured, as the record that all views read: each part reports at its end, and the reports are joined.

mod copies;
mod report;

pub(crate) use copies::join;
pub(crate) use report::{ThreadReport, Time, report};

use crate::base::bounded_list::BoundedList;
use crate::engine::control::RunFault;
use crate::engine::control::standstill::Standstill;
use crate::engine::limits::LimitsOutcome;
use crate::plan::Plan;
use crate::plan::response::{Host, responses};
use onbeat_trace::record::{
    Build, ClockKind, ClockRecord, EdgeRecord, FaultAction, FaultRecord, Obtained, OperatorRecord,
    OperatorState, Outcome, PlanRecord, RunResult, ThreadRecord, WorkerRecord,
};
use onbeat_trace::{Histogram, Machine, Record, Summary, record};
use report::{InEnd, OutEnd, PartReport};
use std::mem::take;

/// How the run came to its end.
pub(crate) struct Ended {
    pub started_unix_ns: u64,
    /// `None` when it did not come to the first step.
    pub start_ns: Option<u64>,
    pub was_stopped: bool,
    pub faults: Vec<RunFault>,
    pub stuck: Vec<Standstill>,
    /// What the steps took that were noted and not counted, by number in the plan; empty where none were.
    pub noted: Vec<Histogram>,
    /// What came of the user's limits.
    pub limits: LimitsOutcome,
    /// Failures beside those that parts tell and those that ended the run.
    pub survived: Vec<FaultRecord>,
    /// What was asked of the machine, and what it gave.
    pub obtained: Vec<Obtained>,
    /// How often deadline threads used up their run time.
    pub overruns: Option<u64>,
    /// Threads beside the workers.
    pub helpers: Vec<ThreadRecord>,
}

/// An operator of which nothing is known.
fn untold(plan: &Plan, number: usize) -> OperatorRecord {
    let operator = &plan.operators[number];
    OperatorRecord {
        name: operator.name.clone(),
        kind: operator.kind.clone(),
        worker: plan.pools[plan.parts[operator.part].pool].name.clone(),
        steps: 0,
        timed_steps: 0,
        step: Histogram::new().summary(),
        steps_by_time: None,
        busy_ns: 0,
        share: 0.0,
        deadline_ns: operator.deadline_ns,
        late: 0,
        copies: 0,
        restarts: 0,
        workers: 1,
        state: OperatorState::Waiting,
    }
}

/// The record of the run, from what its workers report.
pub(crate) fn record(
    name: String,
    config: serde_json::Value,
    plan: &Plan,
    mut threads: Vec<ThreadReport>,
    mut ended: Ended,
) -> Record {
    let mut reports: Vec<PartReport> = threads.iter_mut().flat_map(|thread| thread.parts.drain(..)).collect();
    // A thread that does not come back has no end; what is known of it last is that it hangs.
    let last_fault_ns = ended.faults.iter().map(|fault| fault.time_ns).max();
    let given_up_ns = ended.start_ns.zip(last_fault_ns).map(|(start_ns, time_ns)| start_ns + time_ns);
    let end_ns = reports.iter().map(|report| report.end_ns).chain(given_up_ns).max().unwrap_or(0);
    let duration_ns = ended.start_ns.map_or(0, |start_ns| end_ns.saturating_sub(start_ns));
    let has_copies = plan.recipe.is_some();
    let (edges, left) = edges(plan, &reports);
    // What is on its way round a cycle at the end was never to be read.
    let ahead = edges.iter().zip(&plan.wires).filter(|(_, wire)| !wire.feedback);
    let unread: u64 = ahead.map(|(edge, _)| edge.unread).sum();
    let mut operators: Vec<_> = reports.iter_mut().flat_map(|report| report.operators.drain(..)).collect();
    // Parts whose thread does not come back tell nothing.
    let mut is_told = vec![false; plan.operators.len()];
    operators.iter().for_each(|&(number, ..)| is_told[number] = true);
    let untold = |it| (it, untold(plan, it), None);
    operators.extend((0..is_told.len()).filter(|&number| !is_told[number]).map(untold));
    operators.sort_by_key(|&(number, ..)| number);
    let operators =
        operators.into_iter().map(|(number, record, steps)| match steps.zip(ended.noted.get(number)) {
            None => (record, None),
            Some((mut steps, noted)) => {
                steps.merge(noted);
                (copies::whole_operator(record, &steps), Some(steps))
            }
        });
    let mut operators = match has_copies {
        true => copies::operators(operators.map(|(record, steps)| (record, steps.unwrap_or_default()))),
        false => operators.map(|(record, _)| record).collect(),
    };
    for fault in ended.faults.iter().filter_map(|fault| fault.operator).take(1) {
        let name = &plan.operators[fault].name;
        let Some(OperatorRecord { state, .. }) = operators.iter_mut().find(|it| it.name == *name) else {
            break;
        };
        if *state != OperatorState::NotStarted {
            *state = OperatorState::Failed;
        }
    }
    let mut paths: Vec<_> = reports.iter_mut().flat_map(|report| report.paths.drain(..)).collect();
    paths.sort_by_key(|&(number, ..)| number);
    let sent: Vec<(usize, u64)> = reports.iter_mut().flat_map(|report| report.sent.drain(..)).collect();
    for (number, path, _) in &mut paths {
        let source = plan.paths[*number].source;
        let sent: u64 = sent.iter().filter(|(number, _)| *number == source).map(|(_, sent)| sent).sum();
        path.in_flight_mean = in_flight(&path.latency, sent, duration_ns);
        path.in_flight_most = ended.limits.most.get(*number).copied().flatten();
    }
    let paths = paths.into_iter().map(|(_, record, measured)| (record, measured));
    let paths = match has_copies {
        true => copies::paths(paths.map(|(record, measured)| (record, measured.unwrap_or_default()))),
        false => paths.map(|(record, _)| record).collect(),
    };
    let (misses, misses_total) =
        BoundedList::join(reports.iter_mut().map(|report| take(&mut report.misses)), |miss| miss.time_ns);
    let (changes, changes_total) =
        BoundedList::join(reports.iter_mut().map(|report| take(&mut report.changes)), |change| {
            change.time_ns
        });
    let fatal = ended.faults.iter().map(|fault| FaultRecord {
        time_ns: fault.time_ns,
        operator: fault.operator.map(|operator| plan.operators[operator].name.clone()),
        what: fault.what,
        text: fault.text.clone(),
        then: FaultAction::Stopped,
        delay_ns: None,
        stack: fault.stack.clone(),
    });
    let ending = [take(&mut ended.survived), fatal.collect()].map(BoundedList::from);
    let of_parts = reports.iter_mut().map(|report| take(&mut report.faults));
    let (faults, faults_total) = BoundedList::join(of_parts.chain(ending), |fault| fault.time_ns);
    let said = reports.iter_mut().flat_map(|report| report.notes.drain(..));
    let left_out = ended.limits.skipped.iter().map(|(source, ticks)| {
        format!("{source}: left out {ticks} ticks, because messages of it were late (on_miss = \"skip\")")
    });
    let notes = plan.notes.iter().cloned().chain(said).chain(left_out).collect();
    let isolated = operators.iter().filter(|operator| operator.state == OperatorState::Isolated);
    let isolated: Vec<String> = isolated.map(|operator| format!("`{}`", operator.name)).collect();
    let mut record = Record {
        schema: record::SCHEMA.to_string(),
        version: record::VERSION,
        name,
        build: build(),
        started_unix_ns: ended.started_unix_ns,
        machine: Machine::of_this_process().clone(),
        config,
        plan: PlanRecord {
            scheduler: plan.scheduler,
            workers: plan
                .workers
                .iter()
                .map(|worker| WorkerRecord { name: worker.name.clone(), operators: worker.operators.clone() })
                .collect(),
            order: operators.iter().map(|operator| operator.name.clone()).collect(),
        },
        clock: ClockRecord {
            kind: plan.options.clock,
            source: reports.iter().find_map(|report| report.source.clone()),
            read_ns: reports.iter().find_map(|report| report.read_ns),
        },
        threads: threads
            .into_iter()
            .filter_map(|thread| thread.thread)
            .chain(ended.helpers.drain(..))
            .collect(),
        operators,
        edges: if has_copies { copies::edges(edges) } else { edges },
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
        obtained: plan.obtained.iter().cloned().chain(ended.obtained.drain(..)).collect(),
        deadline_overruns: ended.overruns,
        notes,
        result: result(plan, ended, left, &isolated, unread, end_ns, duration_ns),
    };
    // Copies have no order of their own that could be reckoned with, and in virtual time nothing takes any.
    if !has_copies && plan.options.clock == ClockKind::Real {
        let worst = responses(plan, &record, &Host::default()).paths;
        for (path, bound) in record.paths.iter_mut().zip(worst) {
            path.worst_ns = bound.worst_ns;
        }
    }
    record
}

/// Every edge, and how many messages were left behind that somebody still wanted.
fn edges(plan: &Plan, reports: &[PartReport]) -> (Vec<EdgeRecord>, u64) {
    let mut ends = vec![(OutEnd::default(), InEnd::default()); plan.edges.len()];
    for report in reports {
        for &(edge, end) in &report.outs {
            ends[edge].0 = end;
        }
        for &(edge, end) in &report.inputs {
            ends[edge].1 = end;
        }
    }
    let mut lost = 0;
    let records = plan.edges.iter().zip(ends).map(|(edge, (out, input))| {
        let dropped_inside = out.dropped - out.refused - out.dropped_taken;
        // Of an end whose thread does not come back nothing is known.
        let left = out.sent.saturating_sub(input.taken + dropped_inside);
        if !input.gone {
            lost += left;
        }
        EdgeRecord {
            from: edge.from.clone(),
            to: edge.to.clone(),
            message: edge.message.clone(),
            capacity: edge.capacity as u64,
            when_full: edge.when_full,
            quantum_bytes: edge.quantum_bytes.map(u64::from),
            sent: out.sent + out.refused + out.ignored,
            received: input.taken - input.cleared - out.dropped_taken,
            dropped: out.dropped,
            unread: out.ignored + input.cleared + left,
            depth_max: u64::from(out.deepest.max(input.deepest)),
            depth_mean: None,
        }
    });
    (records.collect(), lost)
}

fn result(
    plan: &Plan,
    ended: Ended,
    left: u64,
    isolated: &[String],
    unread: u64,
    end_ns: u64,
    duration_ns: u64,
) -> RunResult {
    let was_cut = ended.limits.stopped.is_some();
    let dead_lock = ended.stuck.iter().any(|stuck| stuck.serious);
    let (outcome, mut reason) = if let Some(fault) = ended.faults.into_iter().next() {
        let reason = match fault.operator {
            Some(operator) => format!("operator `{}`: {}", plan.operators[operator].name, fault.text),
            None => fault.text,
        };
        (Outcome::Failed, reason)
    } else if dead_lock {
        let reasons: Vec<String> = ended.stuck.into_iter().flat_map(|stuck| stuck.reasons).collect();
        (Outcome::Failed, format!("dead-lock: {}", reasons.join("; ")))
    } else if ended.was_stopped {
        let over = |duration_ns: u64| ended.start_ns.is_some_and(|start_ns| end_ns - start_ns >= duration_ns);
        let limit = plan.options.duration_ns.is_some_and(over);
        let why = match &ended.limits.stopped {
            Some(miss) => miss,
            None if limit => "the duration was over",
            None => "a stop was asked for",
        };
        (Outcome::Stopped, format!("{why}; {}", worked_off("what was under way", unread)))
    } else {
        (Outcome::Ended, format!("all sources ended and {}", worked_off("everything", unread)))
    };
    if outcome != Outcome::Failed && !isolated.is_empty() {
        reason += &format!("; without {}, which failed", isolated.join(" and "));
    }
    // A failed run leaves messages behind; a good one does not.
    let exit_status = match outcome {
        Outcome::Failed => 1,
        _ if left > 0 => 3,
        // A limit was hit that was to end it.
        _ if was_cut => 2,
        _ => 0,
    };
    RunResult { outcome, reason, duration_ns, lost: left, exit_status }
}

/// How many messages were under way on average: as many as came per second, times their mean latency.
fn in_flight(latency: &Summary, sent: u64, duration_ns: u64) -> Option<f64> {
    (latency.count > 0 && duration_ns > 0).then(|| latency.mean_ns * sent as f64 / duration_ns as f64)
}

/// What became of the last messages. Those that were not read were not wanted: their consumers had ended.
fn worked_off(what: &str, unread: u64) -> String {
    match unread {
        0 => format!("{what} was worked off"),
        1 => format!("{what} was worked off but one message, whose consumer had ended"),
        unread => format!("{what} was worked off but {unread} messages, whose consumers had ended"),
    }
}

fn build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION").to_string(),
        profile: if cfg!(debug_assertions) { "dev" } else { "release" }.to_string(),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
    }
}
