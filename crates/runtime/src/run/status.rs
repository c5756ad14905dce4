//! Status of a run at one moment, for people and programs.

use super::handle::{Position, RunFixtures};
use crate::base::slot::within;
use crate::engine::control::Control;
use crate::engine::control::board::{Doing, EdgeSlot, OperatorSlot, PathSlot};
use crate::graph::values::ParameterStatus;
use crate::plan::{EdgePlan, PathPlan, Plan};
use crate::run::record::join;
use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::Ordering;
use onbeat_trace::record::{ClockKind, Obtained};
use onbeat_trace::{Buckets, Cause};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::PoisonError;

/// Largest number of causes in a status.
const CAUSES: usize = 32;

/// Status of a run at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatus {
    /// Name of the pipeline.
    pub name: String,
    /// Phase of the run.
    pub state: RunState,
    /// Time since the first step, on the run's clock, in nanoseconds. A virtual clock shows a worker's last
    /// reading.
    pub elapsed_ns: u64,
    /// Source time of the latest message that a worker reported, in nanoseconds.
    pub position_ns: u64,
    /// Source time at the end, in nanoseconds, if a source knows it.
    pub length_ns: Option<u64>,
    /// Operators, in the plan's order.
    pub operators: Vec<OperatorStatus>,
    /// Edges, in the graph's order.
    pub edges: Vec<EdgeStatus>,
    /// Paths whose latency is measured.
    #[serde(default)]
    pub paths: Vec<PathStatus>,
    /// Causes that made messages late so far, by falling cost: at most 32.
    #[serde(default)]
    pub causes: Vec<Cause>,
    /// Settings requested from the machine, and what was obtained.
    #[serde(default)]
    pub obtained: Vec<Obtained>,
    /// Named gates, by name.
    pub gates: Vec<GateStatus>,
    /// Named events, by name.
    pub events: Vec<EventStatus>,
}

/// Status of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorStatus {
    /// Name of the operator.
    pub name: String,
    /// Worker that steps the operator, or the pool whose workers do.
    pub worker: String,
    /// Present activity.
    pub state: Activity,
    /// The awaited message, room, time or condition in words, while the operator waits.
    pub waits_for: Option<String>,
    /// Number of steps so far.
    pub steps: u64,
    /// Time spent in steps, in nanoseconds, projected from the timed ones.
    #[serde(default)]
    pub busy_ns: u64,
    /// Number of steps that ended after the operator's deadline.
    #[serde(default)]
    pub late: u64,
    /// Number of lost things (datagrams, bytes) although no setting permits a loss. The record has their
    /// units.
    #[serde(default)]
    pub lost: u64,
    /// Parameters that can be changed during the run.
    #[serde(default)]
    pub parameters: Vec<ParameterStatus>,
}

/// Latency of a path so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStatus {
    /// Source of the path.
    pub from: String,
    /// Sink of the path.
    pub to: String,
    /// Limit on the latency, in nanoseconds, if there is one.
    pub max_latency_ns: Option<u64>,
    /// Number of latencies above the limit.
    pub misses: u64,
    /// Longest latency, in nanoseconds.
    pub max_ns: u64,
    /// Sum of all latencies, in nanoseconds.
    pub sum_ns: u64,
    /// Distribution of the latencies. From 1 µs to 137 s each bucket is an eighth of its octave wide; longer
    /// latencies are in the bucket `u64::MAX`.
    pub latency: Buckets,
}

/// Status of an edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeStatus {
    /// Sending "operator.port".
    pub from: String,
    /// Receiving "operator.port".
    pub to: String,
    /// Number of queued messages.
    pub depth: u64,
    /// Capacity in messages.
    pub capacity: u64,
    /// Number of messages that the producer has sent.
    pub sent: u64,
    /// Number of messages dropped by the edge's `when_full`.
    pub dropped: u64,
}

/// Status of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateStatus {
    /// Name of the gate.
    pub name: String,
    /// Whether operators may pass.
    pub open: bool,
}

/// Status of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventStatus {
    /// Name of the event.
    pub name: String,
    /// Number of times that the event was rung.
    pub rung: u64,
}

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Operators start.
    Starting,
    /// Operators are stepped.
    Running,
    /// All sources are paused.
    Paused,
    /// A stop was requested. Messages in flight are processed.
    Stopping,
    /// No operator is stepped any more.
    Ended,
}

/// Present activity of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// The operator has made no step yet.
    NotStarted,
    /// The operator has work.
    Running,
    /// The operator waits: [`OperatorStatus::waits_for`] says for what.
    Waiting,
    /// The operator is paused.
    Paused,
    /// The operator's code has not returned within [`Options::watchdog_ns`](crate::Options::watchdog_ns).
    Hangs,
    /// The operator has failed and will be restarted.
    Restarting,
    /// The operator has ended, or the run has.
    Done,
    /// The operator has failed. The run continues without it.
    Isolated,
    /// The operator has failed, and the run with it.
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

/// Reads the status from the board, which the workers have filled.
pub(super) fn status(plan: &Plan, control: &Control, fixtures: &RunFixtures, at: Position) -> RunStatus {
    let operators = operators(plan, control);
    let edges = plan.edges.iter().zip(&control.board.edges).map(edge);
    let has_copies = plan.recipe.is_some();
    RunStatus {
        name: plan.name.clone(),
        state: state(control),
        elapsed_ns: elapsed_ns(plan, control, at),
        position_ns: at.position_ns,
        length_ns: at.length_ns,
        operators: if has_copies { joined_operators(operators) } else { operators.collect() },
        edges: if has_copies { joined_edges(edges) } else { edges.collect() },
        paths: joined_paths(plan.paths.iter().zip(&control.board.paths).map(path)),
        causes: control.misses.so_far().causes.into_iter().take(CAUSES).collect(),
        obtained: fixtures.obtained.clone(),
        gates: fixtures
            .gates
            .iter()
            .map(|(name, gate)| GateStatus { name: name.clone(), open: gate.is_open() })
            .collect(),
        events: fixtures
            .events
            .iter()
            .map(|(name, event)| EventStatus { name: name.clone(), rung: event.rung() })
            .collect(),
    }
}

fn operators(plan: &Plan, control: &Control) -> impl Iterator<Item = OperatorStatus> {
    let failed: Vec<usize> = {
        let faults = control.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.iter().filter_map(|fault| fault.operator).collect()
    };
    let hangs: Vec<usize> = control.hangs.current().into_iter().map(|(number, _)| number).collect();
    let in_step = in_step(plan, control);
    plan.operators.iter().zip(&control.board.operators).enumerate().map(move |(number, (operator, slot))| {
        let (state, waits_for) = match slot.doing() {
            _ if hangs.contains(&number) => (Activity::Hangs, None),
            _ if failed.contains(&number) => (Activity::Failed, None),
            _ if in_step[operator.part] == Some(number) => (Activity::Running, None),
            doing => activity(plan, slot, doing),
        };
        OperatorStatus {
            name: operator.name.clone(),
            worker: plan.pools[plan.parts[operator.part].pool].name.clone(),
            state,
            waits_for,
            steps: slot.steps.load(Ordering::Relaxed),
            busy_ns: slot.busy_ns.load(Ordering::Relaxed),
            late: slot.late.load(Ordering::Relaxed),
            lost: slot.lost.load(Ordering::Relaxed),
            parameters: control.values.of(&operator.name),
        }
    })
}

/// By part: the operator that is inside a step. Its part cannot fill the board meanwhile.
fn in_step(plan: &Plan, control: &Control) -> Vec<Option<usize>> {
    let in_part = |part: usize| {
        let within = control.board.parts[part].within();
        let is_step = within & (within::START | within::STOP) == 0;
        let mut here = plan.operators.iter().enumerate().filter(|(_, operator)| operator.part == part);
        is_step.then(|| here.nth(within as usize).map(|(number, _)| number)).flatten()
    };
    (0..plan.parts.len()).map(in_part).collect()
}

/// Activity that a part has shown of an operator, and the awaited thing in words.
fn activity(plan: &Plan, slot: &OperatorSlot, doing: Doing) -> (Activity, Option<String>) {
    let edge_name = |edge: u32| {
        plan.edges.get(edge as usize).map_or(String::new(), |edge| format!("{} → {}", edge.from, edge.to))
    };
    let wait = |what: String| (Activity::Waiting, Some(what));
    match doing {
        Doing::NotStarted => (Activity::NotStarted, None),
        Doing::Ready => (Activity::Running, None),
        Doing::AwaitsMessage(edge) => wait(format!("a message on {}", edge_name(edge))),
        Doing::AwaitsRoom(edge) => wait(format!("room on {}", edge_name(edge))),
        Doing::AwaitsTime => wait("a time".to_string()),
        Doing::AwaitsDescriptor => wait("its file or socket".to_string()),
        Doing::AwaitsChunk => wait("a chunk from a store that has none left".to_string()),
        Doing::AwaitsCondition(place) => wait(slot.condition(place)),
        Doing::Awaits => (Activity::Waiting, None),
        Doing::Paused => (Activity::Paused, None),
        Doing::Restarts => (Activity::Restarting, None),
        Doing::Done => (Activity::Done, None),
        Doing::Isolated => (Activity::Isolated, None),
    }
}

fn edge((edge, slot): (&EdgePlan, &CachePadded<EdgeSlot>)) -> EdgeStatus {
    let taken = slot.taken.load(Ordering::Relaxed);
    EdgeStatus {
        from: edge.from.clone(),
        to: edge.to.clone(),
        // The workers may have shown the two ends at different times.
        depth: slot.put.load(Ordering::Relaxed).saturating_sub(taken).min(edge.capacity as u64),
        capacity: edge.capacity as u64,
        sent: slot.sent.load(Ordering::Relaxed),
        dropped: slot.dropped.load(Ordering::Relaxed),
    }
}

fn path((path, slot): (&PathPlan, &PathSlot)) -> PathStatus {
    PathStatus {
        from: path.from.clone(),
        to: path.to.clone(),
        max_latency_ns: path.max_latency_ns,
        misses: slot.misses.load(Ordering::Relaxed),
        max_ns: slot.latency.max_ns(),
        sum_ns: slot.latency.sum_ns(),
        latency: slot.latency.buckets(),
    }
}

/// Adds up the replicas of each operator. The state is that of the busiest replica.
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
            sum.lost = sum.lost.saturating_add(one.lost);
            if rank(one.state) < rank(sum.state) {
                (sum.state, sum.waits_for, sum.worker) = (one.state, one.waits_for, one.worker);
            }
        },
    )
}

/// Adds up the replicas of each edge.
fn joined_edges(all: impl Iterator<Item = EdgeStatus>) -> Vec<EdgeStatus> {
    let key = |one: &EdgeStatus| (one.from.clone(), one.to.clone());
    join(all, key, |sum, one| {
        sum.depth += one.depth;
        sum.capacity += one.capacity;
        sum.sent += one.sent;
        sum.dropped += one.dropped;
    })
}

/// Adds up the replicas of each path.
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

/// Time since the start. Workers read the clock only while they have work, so a real clock is read here
/// again.
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
