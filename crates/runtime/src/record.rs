//! What a run has measured, as the record that all views read.

use crate::context::Context;
use crate::operator::Ending;
use crate::plan::Plan;
use crate::worker::Worker;
use onbeat_trace::record::{
    Build, ClockKind, ClockRecord, EdgeRecord, OperatorRecord, OperatorState, Outcome, PathRecord,
    PlanRecord, RunResult, StoreRecord, ThreadRecord, WorkerRecord,
};
use onbeat_trace::{Machine, Record, record};

/// How the work came to its end.
pub(crate) struct Finished {
    pub started_unix_ns: u64,
    /// Operators whose `start` succeeded.
    pub started: usize,
    pub end_ns: u64,
    pub ending: Ending,
    /// The operator that failed, and what it said.
    pub failure: Option<(u32, String)>,
    /// Why nothing could go on.
    pub reason: Option<String>,
}

pub(crate) fn record(
    name: &str,
    config: serde_json::Value,
    plan: &Plan,
    worker: &Worker,
    cx: &Context,
    finished: Finished,
) -> Record {
    let duration_ns = finished.end_ns.saturating_sub(cx.start_ns);
    let operators = operators(plan, worker, cx, &finished, duration_ns);
    let edges = edges(plan, worker, cx);
    let worker_name = plan.workers[0].name.clone();
    let machine = Machine::read();
    Record {
        schema: record::SCHEMA.to_string(),
        version: record::VERSION,
        name: name.to_string(),
        build: build(),
        started_unix_ns: finished.started_unix_ns,
        machine,
        config,
        plan: PlanRecord {
            scheduler: plan.scheduler,
            workers: plan
                .workers
                .iter()
                .map(|worker| WorkerRecord { name: worker.name.clone(), operators: worker.operators.clone() })
                .collect(),
            order: plan.operators.iter().map(|operator| operator.name.clone()).collect(),
        },
        clock: ClockRecord { kind: plan.options.clock, read_ns: clock_read_ns(plan.options.clock) },
        threads: vec![ThreadRecord {
            name: worker_name.clone(),
            purpose: "steps the operators".to_string(),
            tid: onbeat_os::thread::current_id(),
            cpu_ns: onbeat_os::clock::thread_cpu_ns(),
            busy_ns: duration_ns.saturating_sub(worker.idle_ns),
            idle_ns: worker.idle_ns,
        }],
        operators,
        edges,
        paths: worker
            .tracker
            .paths
            .iter()
            .zip(&plan.paths)
            .map(|(path, asked)| PathRecord {
                from: asked.from.clone(),
                to: asked.to.clone(),
                max_latency_ns: path.limit_ns,
                latency: path.latency.summary(),
                misses: path.misses,
            })
            .collect(),
        stores: cx
            .stores
            .iter()
            .map(|store| StoreRecord {
                worker: worker_name.clone(),
                quantum_bytes: store.block_bytes() as u64,
                chunks: store.blocks() as u64,
                in_use_max: store.in_use_max() as u64,
                refused: store.refused(),
                copies: store.copies(),
            })
            .collect(),
        misses: worker.tracker.misses.clone(),
        misses_total: worker.tracker.misses_total,
        obtained: plan.obtained.clone(),
        notes: cx.notes.clone(),
        result: result(plan, worker, cx, finished, duration_ns),
    }
}

fn operators(
    plan: &Plan,
    worker: &Worker,
    cx: &Context,
    finished: &Finished,
    duration_ns: u64,
) -> Vec<OperatorRecord> {
    let failed = finished.failure.as_ref().map(|&(operator, _)| operator as usize);
    plan.operators
        .iter()
        .enumerate()
        .map(|(number, operator)| {
            let (meter, hot) = (&worker.meters[number], &cx.hot[number]);
            let steps = meter.steps(hot.every.saturating_sub(hot.left));
            let busy_ns = meter.busy_ns(steps);
            OperatorRecord {
                name: operator.name.clone(),
                kind: operator.kind.clone(),
                worker: plan.workers[operator.worker].name.clone(),
                steps,
                timed_steps: meter.timed_steps(),
                step: meter.histogram.summary(),
                busy_ns,
                share: if duration_ns > 0 { busy_ns as f64 / duration_ns as f64 } else { 0.0 },
                deadline_ns: operator.deadline_ns,
                late: worker
                    .tracker
                    .deadlines
                    .iter()
                    .find(|deadline| deadline.operator as usize == number)
                    .map_or(0, |deadline| deadline.late),
                copies: cx.copies[number].get(),
                state: if failed == Some(number) {
                    OperatorState::Failed
                } else if number >= finished.started {
                    OperatorState::NotStarted
                } else if worker.nodes[number].done {
                    OperatorState::Done
                } else {
                    OperatorState::Waiting
                },
            }
        })
        .collect()
}

fn edges(plan: &Plan, worker: &Worker, cx: &Context) -> Vec<EdgeRecord> {
    plan.edges
        .iter()
        .zip(&worker.edges)
        .zip(&cx.edges)
        .map(|((edge, ends), state)| {
            let (queued, taken) = (ends.probe.sent(&cx.owner), ends.probe.taken(&cx.owner));
            let left = ends.probe.len(&cx.owner) as u64;
            EdgeRecord {
                from: edge.from.clone(),
                to: edge.to.clone(),
                message: edge.message.clone(),
                capacity: edge.capacity as u64,
                when_full: edge.when_full,
                quantum_bytes: edge.quantum_bytes.map(u64::from),
                sent: queued + state.refused + (state.unread - state.cleared),
                received: taken - state.cleared - (state.dropped - state.refused),
                dropped: state.dropped,
                unread: state.unread + left,
                depth_max: u64::from(ends.probe.deepest(&cx.owner)),
                depth_mean: None,
            }
        })
        .collect()
}

fn result(plan: &Plan, worker: &Worker, cx: &Context, finished: Finished, duration_ns: u64) -> RunResult {
    // A failed run leaves messages behind; a good one does not.
    let left: u64 = worker.edges.iter().map(|edge| edge.probe.len(&cx.owner) as u64).sum();
    let (outcome, reason) = match (finished.failure, finished.reason, finished.ending) {
        (Some((operator, text)), ..) => {
            (Outcome::Failed, format!("operator `{}`: {text}", plan.operators[operator as usize].name))
        }
        (None, Some(reason), _) => (Outcome::Failed, reason),
        (None, None, Ending::Stopped) => {
            let limit = worker.end_ns.is_some_and(|end_ns| finished.end_ns >= end_ns);
            let why = if limit { "the duration was over" } else { "a stop was asked for" };
            (Outcome::Stopped, format!("{why}; what was under way was worked off"))
        }
        (None, None, _) => (Outcome::Ended, "all sources ended and everything was worked off".to_string()),
    };
    let exit_status = match outcome {
        Outcome::Failed => 1,
        _ if left > 0 => 3,
        _ => 0,
    };
    RunResult { outcome, reason, duration_ns, lost: left, exit_status }
}

fn build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION").to_string(),
        profile: if cfg!(debug_assertions) { "dev" } else { "release" }.to_string(),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
    }
}

/// What one look at the clock costs here, in nanoseconds.
fn clock_read_ns(kind: ClockKind) -> Option<f64> {
    const LOOKS: u32 = 1000;
    (kind == ClockKind::Real).then(|| {
        let begin_ns = onbeat_os::clock::monotonic_ns();
        let mut last_ns = begin_ns;
        for _ in 0..LOOKS {
            last_ns = onbeat_os::clock::monotonic_ns();
        }
        (last_ns - begin_ns) as f64 / f64::from(LOOKS)
    })
}
