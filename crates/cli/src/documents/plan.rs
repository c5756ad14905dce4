//! Plan of a pipeline.

use super::run::not_obtained;
use super::table::{Cell, Column, Table, Unit};
use super::{Document, counted, size};
use onbeat::Plan;
use onbeat::response::Responses;

pub fn plan(plan: &Plan, responses: Option<&Responses>) -> Document {
    let bytes: u64 =
        plan.stores.iter().map(|store| u64::from(store.quantum_bytes) * store.chunks as u64).sum();
    let title = format!(
        "{}: scheduler {}, {}, {}, {}, chunk stores of {}",
        plan.name,
        plan.scheduler,
        counted(plan.workers.len() as u64, "worker"),
        counted(plan.operators.len() as u64, "operator"),
        counted(plan.edges.len() as u64, "edge"),
        size(bytes)
    );
    let mut json = serde_json::to_value(plan).expect("a plan is plain data");
    if let Some(responses) = responses {
        json["responses"] = serde_json::to_value(responses).expect("responses are plain data");
    }
    Document {
        head: vec![title],
        tables: vec![workers(plan), operators(plan), edges(plan), stores(plan), paths(plan, responses)]
            .into_iter()
            .chain(responses.map(admission))
            .collect(),
        tail: not_obtained(plan.obtained.iter())
            .chain(plan.notes.iter().map(|note| format!("note: {note}")))
            .chain(responses.into_iter().flat_map(Responses::refusals))
            .chain(responses.into_iter().flat_map(caveats))
            .collect(),
        json,
    }
}

fn workers(plan: &Plan) -> Table {
    let row = |worker: &onbeat::WorkerPlan| {
        // As text, since 0 would count as an empty cell.
        let core = worker.core.map(|core| core.to_string());
        let pool = plan.pools.get(worker.pool);
        let policy = pool.and_then(|pool| pool.policy).map(|policy| policy.to_string());
        let idle = pool.map_or(Cell::Nothing, |pool| match pool.idle {
            onbeat::Idle::Park => Cell::Usual(pool.idle.to_string()),
            other => other.to_string().into(),
        });
        vec![
            worker.name.as_str().into(),
            core.into(),
            policy.into(),
            idle,
            worker.operators.join(", ").into(),
        ]
    };
    Table {
        columns: vec![
            Column::new("worker", "worker", Unit::Text),
            Column::new("core", "core", Unit::Text).optional(),
            Column::new("policy", "policy", Unit::Text).optional(),
            Column::new("idle", "idle", Unit::Text).optional(),
            Column::new("operators", "operators in order", Unit::Text),
        ],
        rows: plan.workers.iter().map(row).collect(),
    }
}

fn operators(plan: &Plan) -> Table {
    let row = |operator: &onbeat::OperatorPlan| {
        vec![
            operator.name.as_str().into(),
            operator.kind.as_str().into(),
            pool(plan, operator.part),
            if operator.source { "source".into() } else { Cell::Nothing },
            operator.period_ns.into(),
            operator.deadline_ns.into(),
        ]
    };
    Table {
        columns: vec![
            Column::new("operator", "operator", Unit::Text),
            Column::new("kind", "kind", Unit::Text),
            Column::new("worker", "worker or pool", Unit::Text),
            Column::new("role", "role", Unit::Text),
            Column::new("period_ns", "period", Unit::Millis).optional(),
            Column::new("deadline_ns", "deadline", Unit::Millis).optional(),
        ],
        rows: plan.operators.iter().map(row).collect(),
    }
}

fn edges(plan: &Plan) -> Table {
    let row = |edge: &onbeat::EdgePlan| {
        vec![
            format!("{} → {}", edge.from, edge.to).into(),
            edge.message.as_str().into(),
            edge.queue.into(),
            (edge.capacity as u64).into(),
            edge.when_full.to_string().into(),
            edge.quantum_bytes.map(u64::from).into(),
        ]
    };
    Table {
        columns: vec![
            Column::new("edge", "edge", Unit::Text),
            Column::new("message", "message", Unit::Text),
            Column::new("queue", "queue", Unit::Text),
            Column::new("capacity", "capacity", Unit::Count),
            Column::new("when_full", "when full", Unit::Text),
            Column::new("quantum_bytes", "quantum", Unit::Bytes).optional(),
        ],
        rows: plan.edges.iter().map(row).collect(),
    }
}

fn stores(plan: &Plan) -> Table {
    let row = |store: &onbeat::StorePlan| {
        let part = plan.parts.get(store.part).map(|part| part.name.as_str());
        vec![part.into(), u64::from(store.quantum_bytes).into(), (store.chunks as u64).into()]
    };
    Table {
        columns: vec![
            Column::new("store", "chunks of", Unit::Text),
            Column::new("quantum_bytes", "quantum", Unit::Bytes),
            Column::new("chunks", "chunks", Unit::Count),
        ],
        rows: plan.stores.iter().map(row).collect(),
    }
}

fn paths(plan: &Plan, responses: Option<&Responses>) -> Table {
    let bounds = responses.map_or(&[][..], |responses| &responses.paths);
    let row = |(at, path): (usize, &onbeat::PathPlan)| {
        let worst_ns = bounds.get(at).and_then(|bound| bound.worst_ns);
        vec![format!("{} → {}", path.from, path.to).into(), worst_ns.into(), path.max_latency_ns.into()]
    };
    Table {
        columns: vec![
            Column::new("path", "path", Unit::Text),
            Column::new("worst_ns", "at worst", Unit::Millis).optional(),
            Column::new("max_latency_ns", "limit", Unit::Millis),
        ],
        rows: plan.paths.iter().enumerate().map(row).collect(),
    }
}

/// Returns the table of workers with their utilisation, and whether it is admissible.
fn admission(responses: &Responses) -> Table {
    let row = |thread: &onbeat::response::Admission| {
        let share = |share: Option<f64>| share.map_or(Cell::Nothing, Cell::Share);
        vec![
            thread.worker.as_str().into(),
            share(thread.mean),
            share(thread.most),
            Cell::Share(thread.there),
            match (thread.mean, &thread.refused) {
                (None, _) => Cell::Nothing,
                (_, None) => "yes".into(),
                (_, Some(_)) => "no".into(),
            },
        ]
    };
    Table {
        columns: vec![
            Column::new("worker", "load of", Unit::Text),
            Column::new("mean", "mean", Unit::Percent),
            Column::new("most", "longest steps", Unit::Percent),
            Column::new("there", "available", Unit::Percent),
            Column::new("admitted", "admitted", Unit::Text),
        ],
        rows: responses.threads.iter().map(row).collect(),
    }
}

/// Returns the assumptions of bounds, and the reasons for missing bounds, each once.
fn caveats(responses: &Responses) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for path in &responses.paths {
        let Some(why) = &path.why else { continue };
        let text = match path.worst_ns {
            Some(_) => format!("note: at worst {why}"),
            None => format!("note: no bound for {} → {}: {why}", path.from, path.to),
        };
        if !lines.contains(&text) {
            lines.push(text);
        }
    }
    lines
}

/// Returns the worker of a part, or the pool that shares it.
fn pool(plan: &Plan, part: usize) -> Cell {
    let pool = plan.parts.get(part).and_then(|part| plan.pools.get(part.pool));
    pool.map(|pool| pool.name.as_str()).into()
}
