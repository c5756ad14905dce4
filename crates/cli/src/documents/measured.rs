//! Pipelines under each scheduler: measured and predicted speed.

use super::table::{Cell, Column, Table, Unit};
use super::{Document, counted, time};
use onbeat_bench::model::MachineCosts;
use onbeat_bench::{pipeline, shapes};
use serde_json::json;

const SCHEDULER: Column = Column::new("scheduler", "scheduler", Unit::Text);

pub fn bench_pipeline(found: &pipeline::PipelineResults) -> Document {
    let result = &found.result;
    let parameter = |name: &str| match result.parameters.get(name) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let head = vec![
        format!(
            "{}: medians of {} rounds of {} s at most; the schedulers alternate",
            parameter("pipeline"),
            parameter("rounds"),
            parameter("seconds")
        ),
        format!(
            "{}, idle {}; rates are in messages of {}",
            result.machine.cpu_model.as_deref().unwrap_or("unknown processor"),
            parameter("idle"),
            parameter("counted")
        ),
    ];
    let rows = found.schedulers.iter().map(|scheduler| {
        let name = format!("pipeline.{scheduler}");
        let figure = |what: &str| result.figures.get(&format!("{name}.{what}"));
        let value = |what: &str| figure(what).map_or(Cell::Nothing, |figure| Cell::Decimal(figure.value));
        let rate = figure("rate").map_or([Cell::Nothing, Cell::Nothing, Cell::Nothing], |figure| {
            [figure.value, figure.min, figure.max].map(Cell::Decimal)
        });
        let mut cells: Vec<Cell> = vec![scheduler.to_string().into()];
        cells.extend(rate);
        cells.extend(["times_first", "latency.p50", "latency.p99", "cpu"].map(value));
        cells.push(figure("idle").map_or(Cell::Nothing, |figure| Cell::Share(figure.value / 100.0)));
        cells
    });
    let table = Table {
        columns: vec![
            SCHEDULER,
            Column::new("messages_per_s", "messages/s", Unit::Plain),
            Column::new("min", "least", Unit::Plain),
            Column::new("max", "most", Unit::Plain),
            Column::new("times_first", "x first", Unit::Plain),
            Column::new("latency_p50_ns", "latency", Unit::Micros),
            Column::new("latency_p99_ns", "99 %", Unit::Micros),
            Column::new("cpu_ns", "cores per message", Unit::Micros),
            Column::new("idle", "idle", Unit::Percent),
        ],
        rows: rows.collect(),
    };
    let json = serde_json::to_value(result).expect("a result is plain data");
    Document { head, tables: vec![table], tail: result.notes.clone(), json }
}

pub fn measured(
    found: &pipeline::Advised,
    name: &str,
    costs: &MachineCosts,
    written: Option<&str>,
) -> Document {
    let (workload, advice) = (&found.workload, &found.advice);
    let chosen = found.chosen().scheduler;
    let head = vec![
        format!("{name}: {chosen} is recommended"),
        format!("predicted from a short run with one worker; rates are in messages of {}", workload.counted),
    ];
    let mut tail = advice.why.clone();
    tail.extend(found.notes.iter().cloned());
    tail.extend(written.map(str::to_owned));
    let expected = |one: &pipeline::Expected| {
        json!({
            "scheduler": one.scheduler,
            "workers": one.plan.workers.len(),
            "messages_per_s": one.prediction.rate,
            "latency_ns": one.prediction.latency_ns,
        })
    };
    let operators = workload.operators.iter().map(
        |operator| json!({ "name": operator.name, "steps": operator.steps, "step_ns": operator.step_ns }),
    );
    let json = json!({
        "pipeline": name,
        "machine": costs,
        "counted": workload.counted,
        "measured_messages_per_s": workload.rate,
        "hop_ns": workload.hop_ns,
        "idle": workload.idle,
        "operators": operators.collect::<Vec<_>>(),
        "expected": found.expected.iter().map(expected).collect::<Vec<_>>(),
        "recommended": chosen,
        "why": advice.why,
        "notes": found.notes,
        "plan": found.chosen().plan,
    });
    Document { head, tables: vec![schedulers(found), operators_table(found), machine(costs)], tail, json }
}

fn schedulers(found: &pipeline::Advised) -> Table {
    let first = found.expected.first().map_or(1.0, |one| one.prediction.rate);
    let row = |(at, one): (usize, &pipeline::Expected)| {
        vec![
            one.scheduler.to_string().into(),
            (one.plan.workers.len() as u64).into(),
            Cell::Decimal(one.prediction.rate),
            Cell::Decimal(one.prediction.rate / first),
            Cell::Decimal(one.prediction.latency_ns),
            if at == found.advice.chosen { "recommended".into() } else { Cell::Nothing },
        ]
    };
    Table {
        columns: vec![
            SCHEDULER,
            Column::new("workers", "workers", Unit::Count),
            Column::new("messages_per_s", "messages/s", Unit::Plain),
            Column::new("times_first", "x first", Unit::Plain),
            Column::new("latency_ns", "latency", Unit::Micros),
            Column::new("advice", "", Unit::Text).optional(),
        ],
        rows: found.expected.iter().enumerate().map(row).collect(),
    }
}

fn operators_table(found: &pipeline::Advised) -> Table {
    let all_ns = found.workload.work_ns().max(f64::MIN_POSITIVE);
    let row = |operator: &onbeat_bench::model::OperatorLoad| {
        vec![
            operator.name.as_str().into(),
            Cell::Decimal(operator.steps),
            Cell::Decimal(operator.step_ns),
            Cell::Share(operator.work_ns() / all_ns),
        ]
    };
    Table {
        columns: vec![
            Column::new("operator", "operator", Unit::Text),
            Column::new("steps", "steps", Unit::Plain),
            Column::new("step_ns", "step", Unit::Micros),
            Column::new("share", "of the work", Unit::Percent),
        ],
        rows: found.workload.operators.iter().map(row).collect(),
    }
}

fn machine(costs: &MachineCosts) -> Table {
    let rows = [
        ("the engine, per step", costs.hop_ns),
        ("the engine, per step, if workers share operators", costs.shared_hop_ns),
        ("a message to another core", costs.hand_over_ns),
        ("each KiB of its samples", costs.hand_over_per_kib_ns),
        ("waking a worker: the call", costs.wake_call_ns),
        ("waking a worker: until it runs", costs.wake_ns),
        ("reading the clock", costs.clock_ns),
    ];
    Table {
        columns: vec![
            Column::new("what", "on this machine", Unit::Text),
            Column::new("ns", "takes", Unit::Nanos),
        ],
        rows: rows.map(|(what, ns)| vec![what.into(), Cell::Decimal(ns)]).into(),
    }
}

pub fn shapes(found: &shapes::ShapesResults) -> Document {
    let result = &found.result;
    let value = |name: &str| result.value(name).unwrap_or(0.0) as usize;
    let head = vec![
        format!(
            "plan: {}; the recommended scheduler is the fastest or within 5 % of it in {}, and its predicted throughput \
             is within 25 % of the measured one in {}",
            counted(found.shapes.len() as u64, "random graph"),
            value("advice.within_5_percent"),
            value("advice.predicted_within_25_percent")
        ),
        format!("{}, medians", result.machine.cpu_model.as_deref().unwrap_or("unknown processor")),
    ];
    let mut tail = vec![format!(
        "times per message of the source; each run took {}",
        time(
            result
                .parameters
                .get("seconds")
                .and_then(serde_json::Value::as_f64)
                .map_or(0, |seconds| (seconds * 1e9) as u64)
        )
    )];
    tail.extend(result.notes.iter().cloned());
    let json = serde_json::to_value(result).expect("a result is plain data");
    Document { head, tables: vec![predictions(found), graphs(found)], tail, json }
}

/// Returns the predicted and the measured speed of each graph under each scheduler.
fn predictions(found: &shapes::ShapesResults) -> Table {
    let mut rows = Vec::new();
    for tried in &found.shapes {
        for (at, (scheduler, expected, measured)) in tried.under.iter().enumerate() {
            let mut words = Vec::new();
            if at == tried.recommended {
                words.push("recommended");
            }
            if at == tried.fastest {
                words.push("fastest");
            }
            rows.push(vec![
                (tried.number as u64).into(),
                scheduler.to_string().into(),
                Cell::Decimal(1e9 / expected),
                Cell::Decimal(1e9 / measured),
                Cell::Share(expected / measured - 1.0),
                words.join(", ").into(),
            ]);
        }
    }
    Table {
        columns: vec![
            Column::new("graph", "graph", Unit::Count),
            SCHEDULER,
            Column::new("expected_ns", "expected", Unit::Micros),
            Column::new("measured_ns", "measured", Unit::Micros),
            Column::new("error", "error of rate", Unit::Percent),
            Column::new("words", "", Unit::Text).optional(),
        ],
        rows,
    }
}

/// Returns the shape of each graph.
fn graphs(found: &shapes::ShapesResults) -> Table {
    Table {
        columns: vec![
            Column::new("graph", "graph", Unit::Count),
            Column::new("of_fastest", "of fastest", Unit::Percent),
            Column::new(
                "shape",
                "rounds of arithmetic per operator; s: has a state, /n: sends one message for n",
                Unit::Text,
            ),
        ],
        rows: found
            .shapes
            .iter()
            .map(|tried| {
                vec![
                    (tried.number as u64).into(),
                    Cell::Share(tried.of_fastest()),
                    tried.text.as_str().into(),
                ]
            })
            .collect(),
    }
}
