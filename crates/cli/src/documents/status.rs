//! Current state of a run.

use super::table::{Cell, Column, Table, Unit};
use super::{Document, time};
use onbeat::{Activity, Bytes, Decibels, Hertz, OperatorStatus, ParameterStatus, RunStatus, Seconds};
use serde_json::json;

pub fn status(status: &RunStatus) -> Document {
    Document {
        head: vec![title(status)],
        tables: vec![run(status), operators(status), edges(status), gates(status), events(status)],
        tail: Vec::new(),
        json: serde_json::to_value(status).expect("a status is plain data"),
    }
}

fn title(status: &RunStatus) -> String {
    let mut title = format!("{}: {}, {} elapsed", status.name, status.state, time(status.elapsed_ns));
    match status.length_ns {
        Some(length_ns) => title += &format!(", at {} of {}", time(status.position_ns), time(length_ns)),
        None if status.position_ns > 0 => title += &format!(", at {}", time(status.position_ns)),
        None => {}
    }
    title
}

/// Returns the state as a table, for programs. The text has it in the title.
fn run(status: &RunStatus) -> Table {
    let columns = [
        ("run", Unit::Text),
        ("state", Unit::Text),
        ("elapsed_ns", Unit::Millis),
        ("position_ns", Unit::Millis),
        ("length_ns", Unit::Millis),
    ];
    Table {
        columns: columns.map(|(name, unit)| Column::new(name, "", unit)).into(),
        rows: vec![vec![
            status.name.as_str().into(),
            status.state.to_string().into(),
            status.elapsed_ns.into(),
            status.position_ns.into(),
            status.length_ns.into(),
        ]],
    }
}

fn operators(status: &RunStatus) -> Table {
    let rows = status.operators.iter().map(|operator| {
        vec![
            operator.name.as_str().into(),
            operator.worker.as_str().into(),
            match operator.state {
                state @ (Activity::Failed | Activity::Hangs | Activity::Isolated | Activity::Restarting) => {
                    state.to_string().into()
                }
                state => Cell::Usual(state.to_string()),
            },
            operator.steps.into(),
            operator.waits_for.as_deref().map_or(Cell::Nothing, Cell::from),
        ]
    });
    Table {
        columns: vec![
            Column::new("operator", "operator", Unit::Text),
            Column::new("worker", "worker", Unit::Text),
            Column::new("state", "state", Unit::Text).alarm(),
            Column::new("steps", "steps", Unit::Count),
            Column::new("waits_for", "waits for", Unit::Text),
        ],
        rows: rows.collect(),
    }
}

fn edges(status: &RunStatus) -> Table {
    let rows = status.edges.iter().map(|edge| {
        vec![
            format!("{} → {}", edge.from, edge.to).into(),
            edge.depth.into(),
            edge.capacity.into(),
            edge.sent.into(),
            edge.dropped.into(),
        ]
    });
    Table {
        columns: vec![
            Column::new("edge", "edge", Unit::Text),
            Column::new("depth", "depth", Unit::Count),
            Column::new("capacity", "of", Unit::Count),
            Column::new("sent", "sent", Unit::Count),
            Column::new("dropped", "dropped", Unit::Count).alarm(),
        ],
        rows: rows.collect(),
    }
}

/// Parameters that can be changed, and their values: of all operators, of one, or a single one.
pub fn current(status: &RunStatus, operator: Option<&str>, parameter: Option<&str>) -> Document {
    let operators =
        status.operators.iter().filter(|one| operator.is_none_or(|operator| one.name == operator));
    let all = operators.flat_map(|one| one.parameters.iter().map(move |parameter| (one, parameter)));
    let asked: Vec<_> =
        all.filter(|(_, one)| parameter.is_none_or(|parameter| one.name == parameter)).collect();
    let row = |(operator, one): &(&OperatorStatus, &ParameterStatus)| {
        vec![format!("{}.{}", operator.name, one.name).into(), value_words(one).into()]
    };
    let json = asked.iter().map(|(operator, one)| {
        let ParameterStatus { name, value, unit, sample, before } = one;
        json!({ "operator": operator.name, "parameter": name, "value": value, "unit": unit, "sample": sample, "before": before })
    });
    Document {
        head: Vec::new(),
        tables: vec![Table {
            columns: vec![
                Column::new("parameter", "parameter", Unit::Text),
                Column::new("value", "value", Unit::Text),
            ],
            rows: asked.iter().map(row).collect(),
        }],
        tail: Vec::new(),
        json: json.collect(),
    }
}

/// A value as it is written in a file.
fn value_words(parameter: &ParameterStatus) -> String {
    let ParameterStatus { value, unit, sample, before, .. } = parameter;
    let words = |value: &serde_json::Value| match (value.as_f64(), unit.as_deref()) {
        (Some(number), Some("Hz")) => Hertz(number).to_string(),
        (Some(number), Some("s")) => Seconds(number).to_string(),
        (Some(number), Some("B")) => Bytes(number).to_string(),
        (Some(number), Some("dB")) => Decibels(number).to_string(),
        (Some(number), _) => number.to_string(),
        (None, _) if value.is_null() => String::new(),
        _ => value.as_str().map_or_else(|| value.to_string(), str::to_string),
    };
    let now = words(value);
    match (sample, before) {
        (Some(sample), Some(before)) => {
            format!("{} up to sample {sample}, {now} from there on", words(before))
        }
        (Some(sample), None) => format!("{now} from sample {sample} on"),
        (None, _) => now,
    }
}

fn gates(status: &RunStatus) -> Table {
    let state = |open| if open { "open" } else { "closed" };
    Table {
        columns: vec![Column::new("gate", "gate", Unit::Text), Column::new("state", "state", Unit::Text)],
        rows: status
            .gates
            .iter()
            .map(|gate| vec![gate.name.as_str().into(), state(gate.open).into()])
            .collect(),
    }
}

fn events(status: &RunStatus) -> Table {
    Table {
        columns: vec![
            Column::new("event", "event", Unit::Text),
            Column::new("rung", "triggered", Unit::Count),
        ],
        rows: status.events.iter().map(|event| vec![event.name.as_str().into(), event.rung.into()]).collect(),
    }
}
