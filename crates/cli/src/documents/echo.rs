//! Results of `onbeat bench echo`.

use super::Document;
use super::table::{Cell, Column, Table, Unit};
use onbeat_report::BenchResult;

pub fn echo(result: &BenchResult) -> Document {
    let parameter = |name: &str| match result.parameters.get(name) {
        Some(value) => value.as_str().map_or(value.to_string(), str::to_owned),
        None => String::new(),
    };
    let cpu = result.machine.cpu_model.as_deref().unwrap_or("unknown processor");
    let head = vec![
        format!(
            "echo: {} bytes, {} s per measurement, median of {} round(s)",
            parameter("bytes"),
            parameter("seconds"),
            parameter("rounds")
        ),
        format!(
            "{cpu}; client ({}) on core {}, servers on core {}",
            parameter("client"),
            parameter("client_core"),
            parameter("server_core")
        ),
    ];
    let mut tail = vec![
        "bare: a loop of one receive and one send; onbeat: source → sink on one worker".to_owned(),
        "own: the client's own cost; seen: what the client measured, less own; off: record less seen".to_owned(),
        "udp counts from the kernel's receive stamp; tcp and pipe count from the read, so own includes the wait \
         for it"
            .to_owned(),
    ];
    tail.extend(result.notes.iter().cloned());
    let cases = cases(result);
    Document {
        head,
        tables: vec![trips(result, &cases), records(result, &cases), silence(result, &cases)],
        tail,
        json: serde_json::to_value(result).expect("a result is plain data"),
    }
}

/// A transport, an interval and a way to wait, as in the names of figures, in the order of the parameters.
fn cases(result: &BenchResult) -> Vec<[String; 3]> {
    let list =
        |name: &str| result.parameters.get(name).and_then(|list| list.as_array()).into_iter().flatten();
    let mut cases = Vec::new();
    for transport in list("transports").filter_map(|name| name.as_str()) {
        for interval_ns in list("intervals_ns").filter_map(serde_json::Value::as_u64) {
            for wait in ["park", "spin"] {
                cases.push([transport.to_owned(), format!("{}us", interval_ns / 1000), wait.to_owned()]);
            }
        }
    }
    cases
}

/// First cells of a row.
fn names([transport, interval, wait]: &[String; 3]) -> Vec<Cell> {
    let us: f64 = interval.trim_end_matches("us").parse().unwrap_or(0.0);
    vec![transport.as_str().into(), format!("{} ms", us / 1000.0).into(), wait.as_str().into()]
}

fn head() -> Vec<Column> {
    vec![
        Column::new("transport", "transport", Unit::Text),
        Column::new("interval", "every", Unit::Text),
        Column::new("wait", "server", Unit::Text),
    ]
}

fn value(result: &BenchResult, name: &str) -> Cell {
    result.value(name).map_or(Cell::Nothing, Cell::Decimal)
}

fn trips(result: &BenchResult, cases: &[[String; 3]]) -> Table {
    let micros = |name, head| Column::new(name, head, Unit::Micros);
    let factor = |name, head| Column::new(name, head, Unit::Factor);
    let columns = [
        micros("bare_p50_ns", "bare median"),
        micros("bare_p99_ns", "99 %"),
        micros("onbeat_p50_ns", "onbeat median"),
        micros("onbeat_p99_ns", "99 %"),
        factor("ratio_p50", "x bare"),
        factor("ratio_p50_min", "least"),
        factor("ratio_p50_max", "most"),
        Column::new("lost", "lost", Unit::Count).optional().alarm(),
        Column::new("wrong", "wrong", Unit::Count).optional().alarm(),
    ];
    let row = |case: &[String; 3]| {
        let case_name = case.join(".");
        let of = |figure: &str| value(result, &format!("{case_name}.{figure}"));
        let ratio = result.figures.get(&format!("{case_name}.ratio.p50"));
        let most = |figure: &str| {
            let of = |kind: &str| result.figures.get(&format!("{case_name}.{kind}.{figure}"));
            let all = ["bare", "onbeat", "stamped"].map(|kind| of(kind).map_or(0.0, |figure| figure.max));
            Cell::Number(all.iter().sum::<f64>() as u64)
        };
        let mut cells = names(case);
        cells.extend(["bare.p50", "bare.p99", "onbeat.p50", "onbeat.p99", "ratio.p50"].map(of));
        cells.push(ratio.map_or(Cell::Nothing, |ratio| Cell::Decimal(ratio.min)));
        cells.push(ratio.map_or(Cell::Nothing, |ratio| Cell::Decimal(ratio.max)));
        cells.extend([most("lost"), most("wrong")]);
        cells
    };
    Table { columns: head().into_iter().chain(columns).collect(), rows: cases.iter().map(row).collect() }
}

fn records(result: &BenchResult, cases: &[[String; 3]]) -> Table {
    let micros = |name, head| Column::new(name, head, Unit::Micros);
    let columns = [
        micros("own_ns", "own"),
        micros("seen_p50_ns", "seen median"),
        micros("record_p50_ns", "record"),
        micros("off_p50_ns", "off"),
        micros("seen_p99_ns", "99 %"),
        micros("record_p99_ns", "record"),
        micros("off_p99_ns", "off"),
    ];
    let figures = ["own", "seen.p50", "record.p50", "off.p50", "seen.p99", "record.p99", "off.p99"];
    let row = |case: &[String; 3]| {
        let of = |figure: &str| value(result, &format!("{}.{figure}", case.join(".")));
        names(case).into_iter().chain(figures.map(of)).collect()
    };
    Table { columns: head().into_iter().chain(columns).collect(), rows: cases.iter().map(row).collect() }
}

fn silence(result: &BenchResult, cases: &[[String; 3]]) -> Table {
    let mut names: Vec<&str> = cases.iter().map(|[transport, ..]| transport.as_str()).collect();
    names.dedup();
    let row = |transport: &str| {
        let of = |threads: &str| {
            let value = result.value(&format!("silence.{transport}.{threads}"));
            value.map_or(Cell::Nothing, |value| Cell::Number(value.round() as u64))
        };
        vec![transport.into(), of("workers"), of("process")]
    };
    Table {
        columns: vec![
            Column::new("transport", "one second of silence", Unit::Text),
            Column::new("workers", "context switches of the worker", Unit::Count),
            Column::new("process", "of all threads", Unit::Count),
        ],
        rows: names.into_iter().map(row).collect(),
    }
}
