//! Results of `onbeat bench explain`.

use super::Document;
use super::table::{Cell, Column, Table, Unit};
use onbeat_report::BenchResult;

pub fn explain(result: &BenchResult) -> Document {
    let parameter = |name: &str| result.parameters.get(name).map_or(String::new(), ToString::to_string);
    let cpu = result.machine.cpu_model.as_deref().unwrap_or("unknown processor");
    let head = vec![
        format!(
            "explain: median of {} pairs of runs, alternately with and without explaining",
            parameter("pairs")
        ),
        format!(
            "{cpu}; all threads on core {}, chunks of {} bytes",
            parameter("core"),
            parameter("quantum_bytes")
        ),
    ];
    let rows = result.figures.keys().filter_map(|name| name.strip_suffix(".cost")).map(|chain| {
        let figure = |what: &str| result.figures.get(&format!("{chain}.{what}"));
        let value = |what: &str| figure(what).map_or(Cell::Nothing, |figure| Cell::Decimal(figure.value));
        let cost = figure("cost");
        vec![
            chain.into(),
            value("off"),
            value("on"),
            value("cost"),
            cost.map_or(Cell::Nothing, |figure| Cell::Decimal(figure.min)),
            cost.map_or(Cell::Nothing, |figure| Cell::Decimal(figure.max)),
            figure("allocations").map_or(Cell::Nothing, |figure| Cell::Number(figure.value as u64)),
        ]
    });
    let tables = vec![Table {
        columns: vec![
            Column::new("chain", "chain", Unit::Text),
            Column::new("off", "without 1/s", Unit::Plain),
            Column::new("on", "with 1/s", Unit::Plain),
            Column::new("cost", "costs %", Unit::Plain),
            Column::new("cost_min", "least %", Unit::Plain),
            Column::new("cost_max", "most %", Unit::Plain),
            Column::new("allocations", "allocations", Unit::Count),
        ],
        rows: rows.collect(),
    }];
    let mut tail = Vec::new();
    if let Some(stamp) = result.figures.get("stamp") {
        tail.push(format!(
            "timestamp of a step, if every step is timed: {:.1} ns (pairs: {:.1} to {:.1})",
            stamp.value, stamp.min, stamp.max
        ));
    }
    tail.extend(result.notes.iter().cloned());
    let json = serde_json::to_value(result).expect("a result is plain data");
    Document { head, tables, tail, json }
}
