//! What a run does at the moment, for people and programs.

use super::handle::{Named, Position};
use crate::base::slot::within;
use crate::engine::control::Control;
use crate::engine::control::board::Doing;
use crate::plan::Plan;
use crate::run::record::join;
use onbeat_queue::sync::atomic::Ordering;
use onbeat_trace::record::{ClockKind, Obtained};
use onbeat_trace::{Buckets, Cause};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::PoisonError;

/// Causes that are shown.
const CAUSES: usize = 32;

/// What a run does at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatus {
    /// Name of the pipeline.
    pub name: String,
    /// In a word.
    pub state: RunState,
    /// Time since the first step, on the run's clock; of a virtual one, when a worker last looked.
    pub elapsed_ns: u64,
    /// Source time of the latest message that was looked at.
    pub position_ns: u64,
    /// Source time at the end, where a source knows it.
    pub length_ns: Option<u64>,
    /// In the plan's order.
    pub operators: Vec<OperatorStatus>,
    /// In the graph's order.
    pub edges: Vec<EdgeStatus>,
    /// Those whose latency is measured.
    #[serde(default)]
    pub paths: Vec<PathStatus>,
    /// What made messages late so far, what cost most first: at most 32.
    #[serde(default)]
    pub causes: Vec<Cause>,
    /// What was asked of the machine, and what it gave.
    #[serde(default)]
    pub obtained: Vec<Obtained>,
    /// Those that have a name, in the order of their names.
    pub gates: Vec<GateStatus>,
    /// Those that have a name, in the order of their names.
    pub events: Vec<EventStatus>,
}

/// What an operator does at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorStatus {
    /// Its name.
    pub name: String,
    /// The worker that steps it, or the pool whose workers do.
    pub worker: String,
    /// In a word.
    pub state: Activity,
    /// What it waits for, where it does.
    pub waits_for: Option<String>,
    /// Steps that it has made.
    pub steps: u64,
    /// Time in them, in nanoseconds, projected from those that were timed.
    #[serde(default)]
    pub busy_ns: u64,
    /// Steps that ended after its deadline.
    #[serde(default)]
    pub late: u64,
}

/// What a path has measured until now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStatus {
    /// Its source.
    pub from: String,
    /// Its sink.
    pub to: String,
    /// The limit in nanoseconds, if it has one.
    pub max_latency_ns: Option<u64>,
    /// Latencies above it.
    pub misses: u64,
    /// The longest latency, in nanoseconds.
    pub max_ns: u64,
    /// All of them together, in nanoseconds.
    pub sum_ns: u64,
    /// The latencies by length, each bucket an eighth of its octave wide from 1 µs to 137 s; what is longer has `u64::MAX`.
    pub latency: Buckets,
}

/// What is in an edge at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeStatus {
    /// Sending "operator.port".
    pub from: String,
    /// Receiving "operator.port".
    pub to: String,
    /// Messages in it.
    pub depth: u64,
    /// Messages that it holds.
    pub capacity: u64,
    /// Messages that its producer has sent.
    pub sent: u64,
    /// Messages dropped by its `when_full`.
    pub dropped: u64,
}

/// A gate at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateStatus {
    /// Its name.
    pub name: String,
    /// Whether operators may pass.
    pub open: bool,
}

/// An event at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventStatus {
    /// Its name.
    pub name: String,
    /// How often it was rung.
    pub rung: u64,
}

/// How far a run is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Operators are started.
    Starting,
    /// It runs.
    Running,
    /// All of its sources are paused.
    Paused,
    /// It was told to stop, and works off what is under way.
    Stopping,
    /// No operator is stepped any more.
    Ended,
}

/// What an operator does at the moment, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Its first step is still to come.
    NotStarted,
    /// It has work.
    Running,
    /// It waits.
    Waiting,
    /// It is paused.
    Paused,
    /// Its code has not returned for long.
    Hangs,
    /// It has failed, and is started anew in a while.
    Restarting,
    /// It has ended, or the run has.
    Done,
    /// It has failed, and the run goes on without it.
    Isolated,
    /// It has failed, and the run with it.
    Failed,
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RunState::Starting => "starting",
            RunState::Running => "running",
            RunState::Paused => "paused",
            RunState::Stopping => "stopping",
            RunState::Ended => "ended",
        })
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Activity::NotStarted => "not started",
            Activity::Running => "running",
            Activity::Waiting => "waiting",
            Activity::Paused => "paused",
            Activity::Hangs => "hangs",
            Activity::Restarting => "restarting",
            Activity::Done => "done",
            Activity::Isolated => "isolated",
            Activity::Failed => "failed",
        })
    }
}

/// From what the board has.
pub(super) fn status(plan: &Plan, control: &Control, named: &Named, at: Position) -> RunStatus {
    let failed: Vec<usize> = {
        let faults = control.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.iter().filter_map(|fault| fault.operator).collect()
    };
    let hangs: Vec<usize> = control.hangs.current().into_iter().map(|(number, _)| number).collect();
    let edge_name = |edge: u32| {
        plan.edges.get(edge as usize).map_or(String::new(), |edge| format!("{} → {}", edge.from, edge.to))
    };
    let operators = plan.operators.iter().zip(&control.board.operators).enumerate();
    // Of each part the operator that it is in a step of, which it cannot paint meanwhile.
    let in_step: Vec<Option<usize>> = (0..plan.parts.len())
        .map(|part| {
            let within = control.board.parts[part].within();
            let is_step = within & (within::START | within::STOP) == 0;
            let mut here = plan.operators.iter().enumerate().filter(|(_, operator)| operator.part == part);
            is_step.then(|| here.nth(within as usize).map(|(number, _)| number)).flatten()
        })
        .collect();
    let operators = operators.map(|(number, (operator, slot))| {
        let wait = |what: String| (Activity::Waiting, Some(what));
        let (state, waits_for) = match slot.doing() {
            _ if hangs.contains(&number) => (Activity::Hangs, None),
            _ if failed.contains(&number) => (Activity::Failed, None),
            _ if in_step[operator.part] == Some(number) => (Activity::Running, None),
            Doing::NotStarted => (Activity::NotStarted, None),
            Doing::Ready => (Activity::Running, None),
            Doing::AwaitsMessage(edge) => wait(format!("a message on {}", edge_name(edge))),
            Doing::AwaitsRoom(edge) => wait(format!("room on {}", edge_name(edge))),
            Doing::AwaitsTime => wait("a time".to_string()),
            Doing::AwaitsChunk => wait("a chunk from a store that has none left".to_string()),
            Doing::AwaitsCondition(place) => wait(slot.condition(place)),
            Doing::Awaits => (Activity::Waiting, None),
            Doing::Paused => (Activity::Paused, None),
            Doing::Restarts => (Activity::Restarting, None),
            Doing::Done => (Activity::Done, None),
            Doing::Isolated => (Activity::Isolated, None),
        };
        OperatorStatus {
            name: operator.name.clone(),
            worker: plan.pools[plan.parts[operator.part].pool].name.clone(),
            state,
            waits_for,
            steps: slot.steps.load(Ordering::Relaxed),
            busy_ns: slot.busy_ns.load(Ordering::Relaxed),
            late: slot.late.load(Ordering::Relaxed),
        }
    });
    let edges = plan.edges.iter().zip(&control.board.edges).map(|(edge, slot)| {
        let taken = slot.taken.load(Ordering::Relaxed);
        EdgeStatus {
            from: edge.from.clone(),
            to: edge.to.clone(),
            // The ends may have been looked at one after the other.
            depth: slot.put.load(Ordering::Relaxed).saturating_sub(taken).min(edge.capacity as u64),
            capacity: edge.capacity as u64,
            sent: slot.sent.load(Ordering::Relaxed),
            dropped: slot.dropped.load(Ordering::Relaxed),
        }
    });
    let has_copies = plan.recipe.is_some();
    RunStatus {
        name: plan.name.clone(),
        state: state(control),
        elapsed_ns: elapsed_ns(plan, control, at),
        position_ns: at.position_ns,
        length_ns: at.length_ns,
        operators: if has_copies { joined_operators(operators) } else { operators.collect() },
        edges: if has_copies { joined_edges(edges) } else { edges.collect() },
        paths: joined_paths(plan.paths.iter().zip(&control.board.paths).map(|(path, slot)| PathStatus {
            from: path.from.clone(),
            to: path.to.clone(),
            max_latency_ns: path.max_latency_ns,
            misses: slot.misses.load(Ordering::Relaxed),
            max_ns: slot.latency.max_ns(),
            sum_ns: slot.latency.sum_ns(),
            latency: slot.latency.buckets(),
        })),
        causes: control.misses.so_far().causes.into_iter().take(CAUSES).collect(),
        obtained: named.obtained.clone(),
        gates: named
            .gates
            .iter()
            .map(|(name, gate)| GateStatus { name: name.clone(), open: gate.is_open() })
            .collect(),
        events: named
            .events
            .iter()
            .map(|(name, event)| EventStatus { name: name.clone(), rung: event.rung() })
            .collect(),
    }
}

/// Copies of an operator are told as one: what it does is what the busiest of them does.
fn joined_operators(all: impl Iterator<Item = OperatorStatus>) -> Vec<OperatorStatus> {
    let rank = |state: Activity| match state {
        Activity::Failed => 0,
        Activity::Hangs => 1,
        Activity::Running => 2,
        Activity::Waiting => 3,
        Activity::Done => 5,
        _ => 4,
    };
    join(
        all,
        |one| one.name.clone(),
        |sum, one| {
            sum.steps += one.steps;
            sum.busy_ns += one.busy_ns;
            sum.late += one.late;
            if rank(one.state) < rank(sum.state) {
                (sum.state, sum.waits_for, sum.worker) = (one.state, one.waits_for, one.worker);
            }
        },
    )
}

/// The same of edges.
fn joined_edges(all: impl Iterator<Item = EdgeStatus>) -> Vec<EdgeStatus> {
    let key = |one: &EdgeStatus| (one.from.clone(), one.to.clone());
    join(all, key, |sum, one| {
        sum.depth += one.depth;
        sum.capacity += one.capacity;
        sum.sent += one.sent;
        sum.dropped += one.dropped;
    })
}

/// The same of paths.
fn joined_paths(all: impl Iterator<Item = PathStatus>) -> Vec<PathStatus> {
    let key = |path: &PathStatus| (path.from.clone(), path.to.clone(), path.max_latency_ns);
    join(all, key, |sum, one| {
        sum.misses += one.misses;
        sum.max_ns = sum.max_ns.max(one.max_ns);
        sum.sum_ns = sum.sum_ns.saturating_add(one.sum_ns);
        let mut counts: BTreeMap<u64, u64> = sum.latency.iter().collect();
        one.latency.iter().for_each(|(up_to_ns, count)| *counts.entry(up_to_ns).or_default() += count);
        let (up_to_ns, count) = counts.into_iter().unzip();
        sum.latency = Buckets { up_to_ns, count };
    })
}

/// Workers look at the clock when they have something to do; a real one goes on meanwhile.
fn elapsed_ns(plan: &Plan, control: &Control, at: Position) -> u64 {
    let start_ns = control.start_ns.get().copied().filter(|_| !control.board.is_closed());
    let (Some(start_ns), ClockKind::Real) = (start_ns, plan.options.clock) else { return at.elapsed_ns };
    let since_ns = onbeat_os::clock::monotonic_ns().saturating_sub(control.origin_ns);
    let now_ns = control.origin_ns.saturating_add((since_ns as f64 * plan.options.scale) as u64);
    at.elapsed_ns.max(now_ns.saturating_sub(start_ns))
}

fn state(control: &Control) -> RunState {
    if control.board.is_closed() {
        RunState::Ended
    } else if control.is_stop_requested() {
        RunState::Stopping
    } else if control.start_ns.get().is_none() {
        RunState::Starting
    } else if control.paused.load(Ordering::Relaxed) {
        RunState::Paused
    } else {
        RunState::Running
    }
}
