//! Results of a run.

use super::table::{Cell, Column, Table, Unit};
use super::{Document, counted, late, machine, time};
use onbeat::Record;
use onbeat::trace::Summary;
use onbeat::trace::record::{
    FaultAction, FaultRecord, LinkRecord, LossRecord, Obtained, OperatorRecord, OperatorState, Outcome,
};
use std::path::Path;

/// Facts about a run that its record does not have.
pub struct RunFacts<'a> {
    /// Source time that was processed; 0 if no source has a time.
    pub position_ns: u64,
    /// Output folder of the sinks.
    pub output: &'a Path,
    /// File of the record.
    pub record: Option<&'a Path>,
    /// Lines that were printed at the start of the run, to the same place: they are not printed again.
    pub said: &'a [String],
}

pub fn run(record: &Record, facts: &RunFacts<'_>) -> Document {
    let mut tables = vec![outcome(record, facts)];
    // A run that failed before its first step has no figures.
    if record.operators.iter().any(|operator| operator.steps > 0) || record.result.outcome != Outcome::Failed
    {
        tables.extend([
            operators(record),
            edges(record),
            links(record),
            paths(record),
            late::causes(record),
            stores(record),
        ]);
        tables.push(machine::threads(record));
    }
    tables.push(machine::settings(&record.obtained));
    Document {
        head: head(record, facts),
        tables,
        tail: tail(record, facts),
        json: serde_json::to_value(record).expect("a record is plain data"),
    }
}

fn head(record: &Record, facts: &RunFacts<'_>) -> Vec<String> {
    let result = &record.result;
    let mut title = format!("{}: {} after {}", record.name, result.outcome, time(result.duration_ns));
    if facts.position_ns > 0 && result.duration_ns > 0 {
        let times = facts.position_ns as f64 / result.duration_ns as f64;
        title += &format!(", {times:.2} x real time");
    }
    let mut lines = vec![title];
    // The reason of a failure is printed as an error.
    if result.outcome != Outcome::Failed {
        lines.push(result.reason.clone());
    }
    let messages = record.paths.iter().map(|path| path.misses).fold(0, u64::saturating_add);
    if messages > 0 {
        lines.push(format!("{} later than the limit", counted(messages, "message")));
    }
    let steps = record.misses_total.saturating_sub(messages);
    if steps > 0 {
        lines.push(format!("{} later than the deadline", counted(steps, "step")));
    }
    if result.lost > 0 {
        lines.extend(losses(record));
    }
    lines
}

/// Returns lines about data lost unintentionally: by operators, and in queues.
fn losses(record: &Record) -> Vec<String> {
    let of = |operator: &OperatorRecord| {
        let line = |loss: &LossRecord| {
            format!("lost: {}: {} {}: {}", operator.name, loss.count, loss.unit, loss.reason)
        };
        operator.losses.iter().map(line).collect::<Vec<_>>()
    };
    let by_operators = record.operators.iter().flat_map(|operator| &operator.losses);
    let by_operators = by_operators.map(|loss| loss.count).fold(0, u64::saturating_add);
    let mut lines: Vec<String> = record.operators.iter().flat_map(of).collect();
    let in_queues = record.result.lost.saturating_sub(by_operators);
    if in_queues > 0 {
        lines.push(format!("lost: {} in queues at the end", counted(in_queues, "message")));
    }
    lines
}

/// Returns the outcome as a table, for programs. The text has it in the title.
fn outcome(record: &Record, facts: &RunFacts<'_>) -> Table {
    let columns = [
        ("run", Unit::Text),
        ("outcome", Unit::Text),
        ("duration_ns", Unit::Millis),
        ("position_ns", Unit::Millis),
        ("misses_total", Unit::Count),
        ("lost", Unit::Count),
        ("exit_status", Unit::Count),
    ];
    Table {
        columns: columns.map(|(name, unit)| Column::new(name, "", unit)).into(),
        rows: vec![vec![
            record.name.as_str().into(),
            record.result.outcome.to_string().into(),
            record.result.duration_ns.into(),
            facts.position_ns.into(),
            record.misses_total.into(),
            record.result.lost.into(),
            u64::from(record.result.exit_status).into(),
        ]],
    }
}

/// Returns a quantile; nothing if the summary is empty.
fn of(summary: &Summary, ns: u64) -> Cell {
    if summary.count > 0 { Cell::Number(ns) } else { Cell::Nothing }
}

fn operators(record: &Record) -> Table {
    let row = |operator: &OperatorRecord| {
        let step = &operator.step;
        vec![
            operator.name.as_str().into(),
            operator.kind.as_str().into(),
            operator.steps.into(),
            of(step, step.median_ns),
            of(step, step.p99_ns),
            of(step, step.max_ns),
            Cell::Share(operator.share),
            operator.deadline_ns.into(),
            if operator.deadline_ns.is_some() { operator.late.into() } else { Cell::Nothing },
            operator.copies.into(),
            operator.restarts.into(),
            operator.losses.iter().map(|loss| loss.count).fold(0, u64::saturating_add).into(),
            (operator.workers > 1).then_some(operator.workers).into(),
            match operator.state {
                OperatorState::Done => Cell::Usual(operator.state.to_string()),
                other => other.to_string().into(),
            },
        ]
    };
    Table {
        columns: vec![
            Column::new("operator", "operator", Unit::Text),
            Column::new("kind", "kind", Unit::Text).spare(1),
            Column::new("steps", "steps", Unit::Count),
            Column::new("step_median_ns", "median", Unit::Micros),
            Column::new("step_p99_ns", "p99", Unit::Micros).spare(3),
            Column::new("step_max_ns", "max", Unit::Micros),
            Column::new("share", "core", Unit::Percent).spare(2),
            Column::new("deadline_ns", "deadline", Unit::Millis).optional(),
            Column::new("late", "late", Unit::Count).optional().alarm(),
            Column::new("copies", "copies", Unit::Count).optional(),
            Column::new("restarts", "restarts", Unit::Count).optional().alarm(),
            Column::new("lost", "lost", Unit::Count).optional().alarm(),
            Column::new("workers", "on workers", Unit::Count).optional(),
            Column::new("state", "state", Unit::Text).optional().alarm(),
        ],
        rows: record.operators.iter().map(row).collect(),
    }
}

fn edges(record: &Record) -> Table {
    let row = |edge: &onbeat::trace::record::EdgeRecord| {
        vec![
            format!("{} → {}", edge.from, edge.to).into(),
            edge.depth_max.into(),
            edge.capacity.into(),
            edge.sent.into(),
            edge.dropped.into(),
            edge.unread.into(),
        ]
    };
    Table {
        columns: vec![
            Column::new("edge", "edge", Unit::Text),
            Column::new("depth_max", "deepest", Unit::Count),
            Column::new("capacity", "of", Unit::Count),
            Column::new("sent", "sent", Unit::Count),
            Column::new("dropped", "dropped", Unit::Count).alarm(),
            Column::new("unread", "unread", Unit::Count).optional().alarm(),
        ],
        rows: record.edges.iter().map(row).collect(),
    }
}

fn links(record: &Record) -> Table {
    let row = |link: &LinkRecord| {
        vec![
            link.name.as_str().into(),
            link.peer.as_deref().unwrap_or("nobody").into(),
            link.messages.into(),
            link.bytes.into(),
            link.round_trip.map(|time| time.median_ns).into(),
            link.transit.map(|time| time.median_ns).into(),
            link.transit.map(|time| time.p99_ns).into(),
            link.uncertainty_ns.into(),
            link.held_ns.into(),
            link.not_copied.into(),
            link.repeated.into(),
            link.dropped.into(),
            link.dropped_before.into(),
            link.in_flight.into(),
            link.cuts.into(),
            link.cut_ns.into(),
        ]
    };
    Table {
        columns: vec![
            Column::new("link", "link", Unit::Text),
            Column::new("peer", "other end", Unit::Text),
            Column::new("messages", "messages", Unit::Count),
            Column::new("bytes", "bytes", Unit::Bytes).spare(2),
            Column::new("round_trip_median_ns", "there and back", Unit::Micros),
            Column::new("transit_median_ns", "transit", Unit::Micros).optional(),
            Column::new("transit_p99_ns", "p99", Unit::Micros).optional().spare(3),
            Column::new("uncertainty_ns", "±", Unit::Micros),
            Column::new("held_ns", "held", Unit::Millis).optional().spare(1),
            Column::new("not_copied", "not copied", Unit::Count).optional(),
            Column::new("repeated", "repeated", Unit::Count).optional(),
            Column::new("dropped", "dropped", Unit::Count).optional().alarm(),
            Column::new("dropped_before", "dropped before", Unit::Count).optional().alarm(),
            Column::new("in_flight", "in flight", Unit::Count).optional().alarm(),
            Column::new("cuts", "cuts", Unit::Count).optional().alarm(),
            Column::new("cut_ns", "cut for", Unit::Millis).optional().alarm(),
        ],
        rows: record.links.iter().map(row).collect(),
    }
}

fn paths(record: &Record) -> Table {
    let row = |path: &onbeat::trace::record::PathRecord| {
        let latency = &path.latency;
        vec![
            format!("{} → {}", path.from, path.to).into(),
            latency.count.into(),
            of(latency, latency.median_ns),
            of(latency, latency.p99_ns),
            of(latency, latency.p99_9_ns),
            of(latency, latency.max_ns),
            path.worst_ns.into(),
            path.max_latency_ns.into(),
            if path.max_latency_ns.is_some() { path.misses.into() } else { Cell::Nothing },
        ]
    };
    // The messages of some sources end in operators that answer those of others.
    let is_shown = |path: &&onbeat::trace::record::PathRecord| {
        let others = || record.paths.iter().any(|other| other.to == path.to && other.latency.count > 0);
        path.latency.count > 0 || path.max_latency_ns.is_some() || !others()
    };
    let count = if has_sampled(record) { "timed" } else { "messages" };
    Table {
        columns: vec![
            Column::new("path", "path", Unit::Text),
            Column::new("count", count, Unit::Count),
            Column::new("latency_median_ns", "median", Unit::Millis),
            Column::new("latency_p99_ns", "p99", Unit::Millis).spare(2),
            Column::new("latency_p99_9_ns", "p99.9", Unit::Millis).spare(3),
            Column::new("latency_max_ns", "max", Unit::Millis),
            Column::new("worst_ns", "at worst", Unit::Millis).optional().spare(1),
            Column::new("max_latency_ns", "limit", Unit::Millis),
            Column::new("misses", "misses", Unit::Count).alarm(),
        ],
        rows: record.paths.iter().filter(is_shown).map(row).collect(),
    }
}

/// Whether only a sample of the messages of some path was timed: they are not due.
fn has_sampled(record: &Record) -> bool {
    let is_fast = |operator: &serde_json::Value| {
        operator["pace"] == "fast" && record.paths.iter().any(|path| operator["name"] == path.from)
    };
    match &record.config["pace"] {
        serde_json::Value::Null => {
            record.config["operator"].as_array().is_some_and(|all| all.iter().any(is_fast))
        }
        pace => pace == "fast",
    }
}

fn stores(record: &Record) -> Table {
    let row = |store: &onbeat::trace::record::StoreRecord| {
        vec![
            store.worker.as_str().into(),
            store.quantum_bytes.into(),
            store.in_use_max.into(),
            store.chunks.into(),
            store.copies.into(),
            store.refused.into(),
        ]
    };
    Table {
        columns: vec![
            Column::new("store", "chunks of", Unit::Text),
            Column::new("quantum_bytes", "quantum", Unit::Bytes),
            Column::new("in_use_max", "most in use", Unit::Count),
            Column::new("chunks", "of", Unit::Count),
            Column::new("copies", "copies", Unit::Count).optional(),
            Column::new("refused", "refused", Unit::Count).optional(),
        ],
        rows: record.stores.iter().map(row).collect(),
    }
}

fn tail(record: &Record, facts: &RunFacts<'_>) -> Vec<String> {
    let mut lines = late::sentences(record);
    lines.extend(not_obtained(record.obtained.iter()));
    lines.extend(machine::interruptions(record));
    lines.extend(faults(record));
    lines.extend(record.notes.iter().map(|note| format!("note: {note}")));
    lines.retain(|line| !facts.said.contains(line));
    let output = facts.output.display();
    match (facts.record, record.result.outcome) {
        // Output files of a failed run are missing or incomplete.
        (Some(record), Outcome::Failed) => lines.push(format!("record in {}", record.display())),
        (None, Outcome::Failed) => {}
        (Some(record), _) => lines.push(format!("files in {output}, record in {}", record.display())),
        (None, _) if facts.output.exists() => lines.push(format!("files in {output}")),
        (None, _) => {}
    }
    lines
}

/// Failures that are listed one by one. The record has more.
const FAULTS: usize = 10;

/// Returns lines about failures that did not end the run. One that did is printed as an error.
fn faults(record: &Record) -> Vec<String> {
    let survived = record.faults.iter().filter(|fault| fault.then != FaultAction::Stopped);
    let mut lines: Vec<String> = survived.clone().take(FAULTS).map(fault_line).collect();
    let kept = record.faults.len() as u64;
    let more = survived.count().saturating_sub(FAULTS) as u64
        + (record.faults_total - kept.min(record.faults_total));
    if more > 0 {
        lines.push(format!("failed: {more} more failures; the record lists the first {kept}"));
    }
    lines
}

fn fault_line(fault: &FaultRecord) -> String {
    let FaultRecord { time_ns, operator, text, then, delay_ns, .. } = fault;
    let operator = operator.as_deref().unwrap_or("the run");
    let then = match (then, delay_ns) {
        (FaultAction::Restarted, Some(delay_ns)) => format!("restarted after {}", time(*delay_ns)),
        (FaultAction::Isolated, _) => "the run went on without it".to_string(),
        (then, _) => then.to_string(),
    };
    format!("failed: {operator} at {}: {text}; {then}", time(*time_ns))
}

/// Returns lines about settings that were not obtained as requested.
pub fn not_obtained<'o>(settings: impl Iterator<Item = &'o Obtained>) -> impl Iterator<Item = String> {
    settings.filter(|setting| setting.asked != setting.obtained).map(|setting| {
        let Obtained { what, asked, obtained, reason } = setting;
        let reason = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        format!("not obtained: {what}: requested {asked}, got {obtained}{reason}")
    })
}
