//! Results of `onbeat bench saxpy`.

use super::Document;
use super::table::{Cell, Column, Table, Unit};
use onbeat_bench::saxpy::{SaxpyResults, SaxpyRow};
use onbeat_report::BenchResult;
use std::path::Path;

pub fn saxpy(found: &SaxpyResults, plot: Option<&Path>) -> Document {
    let result = &found.result;
    let parameter = |name: &str| result.parameters.get(name).map_or(String::new(), ToString::to_string);
    let cpu = result.machine.cpu_model.as_deref().unwrap_or("unknown processor");
    let cores = result.machine.cores_online.map_or(String::new(), |cores| format!(", {cores} cores"));
    let head = vec![
        format!(
            "saxpy: source, M times y = a · x + b, sink; medians of {} rounds of {} s; the cases alternate",
            parameter("rounds"),
            parameter("seconds")
        ),
        format!("{cpu}{cores}, idle {}", parameter("idle").trim_matches('"')),
    ];
    let mut tail = vec![
        "fair: relative to N/M times the rate of the kernel alone; bare: relative to the same chain in plain loops (greedy: a chain \
         of calls; pinned: the chain split with lock-free rings; replicated: the whole chain on each core)"
            .to_owned(),
        "one core: relative to N times the rate of greedy on one core, measured on each core right before and after; pinned splits \
         the chain and keeps the order (the rule of the published benchmark), replicated does not split it"
            .to_owned(),
    ];
    tail.extend(result.notes.iter().cloned());
    if let Some(path) = plot {
        tail.push(format!("plot written to {}", path.display()));
    }
    let json = serde_json::to_value(result).expect("a result is plain data");
    Document { head, tables: vec![ours(found), limits(result), peers(found)], tail, json }
}

fn rate(result: &BenchResult, name: &str) -> [Cell; 3] {
    result.figures.get(name).map_or([Cell::Nothing, Cell::Nothing, Cell::Nothing], |figure| {
        [figure.value, figure.min, figure.max].map(Cell::Decimal)
    })
}

fn share(result: &BenchResult, name: &str) -> Cell {
    result.value(name).map_or(Cell::Nothing, |percent| Cell::Share(percent / 100.0))
}

const RATE: [Column; 3] = [
    Column::new("gsamples_per_s", "Gsamples/s", Unit::Plain),
    Column::new("min", "least", Unit::Plain),
    Column::new("max", "most", Unit::Plain),
];

fn ours(found: &SaxpyResults) -> Table {
    let result = &found.result;
    let row = |row: &SaxpyRow| {
        let (name, shape) = (&row.name, row.case.shape);
        let form = if name.ends_with(".own") { "in place, own" } else { spaced(shape.form.name()) };
        let mut cells: Vec<Cell> = vec![
            row.case.mode.name().into(),
            (shape.cores as u64).into(),
            (shape.kernels as u64).into(),
            Cell::Decimal(shape.quantum as f64 / 1024.0),
            form.into(),
            row.case.buffers.map(|buffers| buffers as u64).into(),
        ];
        cells.extend(rate(result, &format!("{name}.rate")));
        cells
            .extend(["share", "of_bare", "of_one_core"].map(|what| share(result, &format!("{name}.{what}"))));
        let times = result.value(&format!("{name}.times_best_peer"));
        cells.push(times.map_or(Cell::Nothing, Cell::Decimal));
        cells
    };
    let mut columns = vec![
        Column::new("mode", "mode", Unit::Text),
        Column::new("cores", "N", Unit::Count),
        Column::new("kernels", "M", Unit::Count),
        Column::new("quantum_kib", "KiB", Unit::Plain),
        Column::new("form", "form", Unit::Text),
        Column::new("buffers", "buffers", Unit::Count).optional(),
    ];
    columns.extend(RATE);
    columns.extend([
        Column::new("share", "fair", Unit::Percent),
        Column::new("of_bare", "bare", Unit::Percent),
        Column::new("of_one_core", "one core", Unit::Percent).optional(),
        Column::new("times_best_peer", "x best peer", Unit::Factor).optional(),
    ]);
    Table { columns, rows: found.rows.iter().map(row).collect() }
}

fn spaced(form: &str) -> &str {
    if form == "in_place" { "in place" } else { "out of place" }
}

fn limits(result: &BenchResult) -> Table {
    let names = result.figures.keys().filter_map(|name| name.strip_prefix("bare.")?.strip_suffix(".rate"));
    let row = |name: &str| {
        std::iter::once(Cell::from(name)).chain(rate(result, &format!("bare.{name}.rate"))).collect()
    };
    let columns =
        std::iter::once(Column::new("limit", "without an engine", Unit::Text)).chain(RATE).collect();
    Table { columns, rows: names.map(row).collect() }
}

fn peers(found: &SaxpyResults) -> Table {
    let result = &found.result;
    let row = |row: &onbeat_bench::saxpy::PeerRow| {
        let peer = &row.peer;
        let mut cells: Vec<Cell> = vec![
            format!("{} {}", peer.peer, peer.version).into(),
            peer.variant.as_str().into(),
            (peer.cores as u64).into(),
            (peer.kernels as u64).into(),
            Cell::Decimal(peer.quantum as f64 / 1024.0),
        ];
        cells.extend(rate(result, &format!("{}.rate", row.name)));
        cells.push(share(result, &format!("{}.share", row.name)));
        cells.push(peer.how.as_str().into());
        cells
    };
    let mut columns = vec![
        Column::new("peer", "peer", Unit::Text),
        Column::new("variant", "variant", Unit::Text),
        Column::new("cores", "N", Unit::Count),
        Column::new("kernels", "M", Unit::Count),
        Column::new("quantum_kib", "KiB", Unit::Plain),
    ];
    columns.extend(RATE);
    columns.push(Column::new("share", "fair", Unit::Percent));
    columns.push(Column::new("how", "how", Unit::Text));
    Table { columns, rows: found.peers.iter().map(row).collect() }
}
