//! Current state of a run.

use super::table::{Cell, Column, Table, Unit};
use super::{Document, time};
use onbeat::{Activity, RunStatus};

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
