//! Results of `onbeat bench queue`.

use super::Document;
use super::table::{Cell, Column, Table, Unit};
use onbeat_bench::queue::Design;
use onbeat_report::BenchResult;
use std::path::Path;

pub fn queue(result: &BenchResult, plot: Option<&Path>) -> Document {
    let parameter = |name: &str| result.parameters.get(name).map_or(String::new(), ToString::to_string);
    let cpu = result.machine.cpu_model.as_deref().unwrap_or("unknown processor");
    let cores = result.machine.cores_online.map_or(String::new(), |cores| format!(", {cores} cores"));
    let head = vec![
        format!(
            "queue: median, minimum and maximum of {} rounds; the designs alternate",
            parameter("repeats")
        ),
        format!("{cpu}{cores}"),
        format!(
            "one producer: {} items; {} producers: {} items; the callback is an indirect call and one locked add",
            parameter("single"),
            parameter("producers"),
            parameter("multi")
        ),
        match parameter("placement").trim_matches('"') {
            "apart" => "the worker has the first core, the producers the others".to_owned(),
            _ => "the kernel places all threads".to_owned(),
        },
    ];
    let tables = vec![load(result), costs(result), bursts(result), latencies(result), lost(result)];
    let mut tail = vec![
        "/ before, / after: time relative to the models of a kernel's queue, before and after its batching change"
            .to_owned(),
        "locked: locked instructions per item by construction, without retries, passes and wake-ups".to_owned(),
    ];
    tail.extend(result.notes.iter().cloned());
    if let Some(path) = plot {
        tail.push(format!("plot written to {}", path.display()));
    }
    let json = serde_json::to_value(result).expect("a result is plain data");
    Document { head, tables, tail, json }
}

fn value(result: &BenchResult, name: &str) -> Cell {
    result.value(name).map_or(Cell::Nothing, Cell::Decimal)
}

const DESIGN: Column = Column::new("design", "design", Unit::Text);

fn load(result: &BenchResult) -> Table {
    let mut rows = Vec::new();
    for (case, text) in [("single", "one producer"), ("multi", "several")] {
        for design in Design::ALL {
            let name = design.name();
            let Some(figure) = result.figures.get(&format!("{case}.{name}")) else { continue };
            let ratio = |model: &str| value(result, &format!("ratio.{case}.{model}.{name}"));
            let mut row: Vec<Cell> = vec![text.into(), name.into()];
            row.extend([figure.value, figure.min, figure.max].map(Cell::Decimal));
            row.extend([ratio("before"), ratio("after")]);
            rows.push(row);
        }
    }
    let columns = vec![
        Column::new("case", "case", Unit::Text),
        DESIGN,
        Column::new("item_ns", "item", Unit::Nanos),
        Column::new("min_ns", "least", Unit::Nanos),
        Column::new("max_ns", "most", Unit::Nanos),
        Column::new("of_before", "/ before", Unit::Factor),
        Column::new("of_after", "/ after", Unit::Factor),
    ];
    Table { columns, rows }
}

fn costs(result: &BenchResult) -> Table {
    let rows =
        Design::ALL.into_iter().filter(|design| result.value(&format!("single.{}", design.name())).is_some());
    let cells = |design: Design| {
        let of = |kind: &str| value(result, &format!("{kind}.{}", design.name()));
        vec![
            design.name().into(),
            of("cpu.single"),
            of("cpu.multi"),
            of("wakeups.single"),
            of("wakeups.multi"),
            of("locked"),
        ]
    };
    Table {
        columns: vec![
            DESIGN,
            Column::new("cpu_single_ns", "cpu, one", Unit::Nanos),
            Column::new("cpu_multi_ns", "cpu, several", Unit::Nanos),
            Column::new("wakeups_single", "wake-ups, one", Unit::Rate),
            Column::new("wakeups_multi", "wake-ups, several", Unit::Rate),
            Column::new("locked", "locked", Unit::Rate),
        ],
        rows: rows.map(cells).collect(),
    }
}

/// Returns the rest of the name of every figure with this prefix.
fn named<'r>(result: &'r BenchResult, prefix: &str) -> Vec<&'r str> {
    result.figures.keys().filter_map(|name| name.strip_prefix(prefix)).collect()
}

fn bursts(result: &BenchResult) -> Table {
    let row = |name: &str| {
        let of = |kind: &str| value(result, &format!("{kind}.burst.{name}"));
        let (place, design) = name.split_once('.').unwrap_or(("", name));
        vec![place.into(), design.into(), of("wakeups"), of("cpu")]
    };
    Table {
        columns: vec![
            Column::new("place", "bursts", Unit::Text),
            Column::new("design", "design", Unit::Text),
            Column::new("wakeups_per_burst", "wake-ups per burst", Unit::Rate),
            Column::new("cpu_ns", "cpu per item", Unit::Nanos),
        ],
        rows: named(result, "cpu.burst.").into_iter().map(row).collect(),
    }
}

fn latencies(result: &BenchResult) -> Table {
    let names = named(result, "latency.");
    let row = |name: &str| {
        let of = |kind: &str| value(result, &format!("latency.{name}.{kind}"));
        vec![name.into(), of("p50"), of("p99"), of("max")]
    };
    Table {
        columns: vec![
            Column::new("way", "a sleeping worker", Unit::Text),
            Column::new("p50_ns", "median", Unit::Micros),
            Column::new("p99_ns", "99 %", Unit::Micros),
            Column::new("max_ns", "latest", Unit::Micros),
        ],
        rows: names.into_iter().filter_map(|name| name.strip_suffix(".p50")).map(row).collect(),
    }
}

fn lost(result: &BenchResult) -> Table {
    let names = named(result, "lost.");
    let count = |name: &str| result.value(name).map_or(Cell::Nothing, |count| Cell::Number(count as u64));
    let row = |name: &str| {
        let of = |kind: &str| count(&format!("lost.{name}.{kind}"));
        vec![name.into(), of("rounds"), of("events")]
    };
    Table {
        columns: vec![
            Column::new("design", "events", Unit::Text),
            Column::new("rounds", "rounds", Unit::Count),
            Column::new("lost", "lost", Unit::Count),
        ],
        rows: names.into_iter().filter_map(|name| name.strip_suffix(".events")).map(row).collect(),
    }
}
