//! Results of `onbeat bench realtime`.

use super::Document;
use super::table::{Cell, Column, Table, Unit};
use onbeat_bench::realtime::RealtimeResults;
use onbeat_report::BenchResult;
use std::path::PathBuf;

pub fn realtime(found: &RealtimeResults, files: &[PathBuf]) -> Document {
    let result = &found.result;
    let mut tail = changes(result, &found.passes);
    tail.push(
        "without machine: without the periods before and after a frame that hardware or the hypervisor delayed"
            .to_owned(),
    );
    tail.push(
        "floor: the same work in a plain clock_nanosleep loop, with the same policy and load".to_owned(),
    );
    tail.extend(result.notes.iter().cloned());
    tail.extend(files.iter().map(|path| format!("written to {}", path.display())));
    Document {
        head: configuration(result),
        tables: vec![periods(found), executions(found), causes(found)],
        tail,
        json: serde_json::to_value(result).expect("a result is plain data"),
    }
}

fn configuration(result: &BenchResult) -> Vec<String> {
    let parameter = |name: &str| match result.parameters.get(name) {
        Some(value) => value.as_str().map_or(value.to_string(), str::to_owned),
        None => String::new(),
    };
    let cpu = result.machine.cpu_model.as_deref().unwrap_or("unknown processor");
    let cores = result.machine.cores_online.map_or(String::new(), |cores| format!(", {cores} cores"));
    vec![
        format!(
            "realtime: {} frames per second, passes of {} s, median of {} round(s)",
            parameter("target_fps"),
            parameter("duration_s"),
            parameter("rounds")
        ),
        format!("{cpu}{cores}"),
        format!(
            "frame: {} × {} sines and cosines; {} load operators of {} × {} each on {} workers, all on core {}; priority {}",
            parameter("bm_load_intensity"),
            parameter("bm_workload_size"),
            parameter("dummy_load_number"),
            parameter("bg_load_intensity"),
            parameter("bg_workload_size"),
            parameter("worker_thread_number"),
            parameter("pin_cpu"),
            parameter("priority")
        ),
        format!(
            "waiting for a frame under the real-time policies: {}; in the floor: clock_nanosleep",
            parameter("idle")
        ),
        "under deadline the frame's thread can run on any core: the kernel does not pin such threads"
            .to_owned(),
    ]
}

/// Returns lines "std a → b (+x %)" against the baseline, as published, and against the floor.
fn changes(result: &BenchResult, passes: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let of = |pass: &str, figure: &str| result.value(&format!("{pass}.{figure}"));
    for pass in passes.iter().filter(|pass| !pass.contains("baseline") && !pass.starts_with("floor_")) {
        let against = if pass.starts_with("holoscan_") { "holoscan_baseline" } else { "baseline" };
        let pairs = [("std", "period.std"), ("99 % of the deviations", "deviation.p99")];
        for (name, figure) in pairs {
            if let (Some(before), Some(after)) = (of(against, figure), of(pass, figure)) {
                let percent = (after / before.max(1.0) - 1.0) * 100.0;
                lines.push(format!(
                    "{against} → {pass}: {name} {:.4} → {:.4} ms ({percent:+.1} %)",
                    before / 1e6,
                    after / 1e6
                ));
            }
        }
    }
    for pass in passes {
        let ratio = |figure: &str| result.value(&format!("ratio.floor.{pass}.{figure}"));
        if let (Some(p50), Some(p99)) = (ratio("p50"), ratio("p99")) {
            lines.push(format!(
                "{pass}: deviations relative to its floor: {p50:.2} × (median), {p99:.2} × (99 %)"
            ));
        }
    }
    lines
}

fn row(result: &BenchResult, pass: &str, figures: &[&str]) -> Vec<Cell> {
    let of = |figure: &&str| match result.figures.get(&format!("{pass}.{figure}")) {
        Some(figure) if figure.unit == "1" => Cell::Number(figure.value.round() as u64),
        figure => figure.map_or(Cell::Nothing, |figure| Cell::Decimal(figure.value)),
    };
    [Cell::from(pass)].into_iter().chain(figures.iter().map(of)).collect()
}

fn periods(found: &RealtimeResults) -> Table {
    let figures = [
        "period.mean",
        "period.std",
        "period_without_machine.std",
        "period.min",
        "period.p1",
        "period.p50",
        "period.p99",
        "period.max",
        "over_100us",
        "over_1ms",
        "fps",
        "missed",
    ];
    let ms = |name, head| Column::new(name, head, Unit::Millis);
    let columns = vec![
        Column::new("pass", "period", Unit::Text),
        ms("mean_ns", "mean"),
        ms("std_ns", "std"),
        ms("std_without_machine_ns", "std without machine"),
        ms("min_ns", "least"),
        ms("p1_ns", "1 %"),
        ms("p50_ns", "median"),
        ms("p99_ns", "99 %"),
        ms("max_ns", "most"),
        Column::new("over_100us", "> 0.1 ms off", Unit::Count),
        Column::new("over_1ms", "> 1 ms off", Unit::Count),
        Column::new("fps", "fps", Unit::Rate),
        Column::new("missed", "missed", Unit::Count),
    ];
    Table { columns, rows: found.passes.iter().map(|pass| row(&found.result, pass, &figures)).collect() }
}

fn executions(found: &RealtimeResults) -> Table {
    let names = ["mean", "std", "min", "p1", "p50", "p99", "max"];
    let figures = names.map(|name| format!("execution.{name}"));
    let figures = figures.each_ref().map(String::as_str);
    let ms = |name, head| Column::new(name, head, Unit::Millis);
    let columns = vec![
        Column::new("pass", "execution", Unit::Text),
        ms("mean_ns", "mean"),
        ms("std_ns", "std"),
        ms("min_ns", "least"),
        ms("p1_ns", "1 %"),
        ms("p50_ns", "median"),
        ms("p99_ns", "99 %"),
        ms("max_ns", "most"),
    ];
    Table { columns, rows: found.passes.iter().map(|pass| row(&found.result, pass, &figures)).collect() }
}

fn causes(found: &RealtimeResults) -> Table {
    let mut rows = Vec::new();
    for pass in &found.passes {
        for (cause, frames, most_ns) in found.causes(pass) {
            let most = Cell::Number(most_ns);
            rows.push(vec![pass.as_str().into(), cause.as_str().into(), Cell::Number(frames as u64), most]);
        }
    }
    Table {
        columns: vec![
            Column::new("pass", "late by > 0.1 ms", Unit::Text),
            Column::new("cause", "main cause", Unit::Text),
            Column::new("frames", "frames", Unit::Count),
            Column::new("most_ns", "most", Unit::Millis),
        ],
        rows,
    }
}
