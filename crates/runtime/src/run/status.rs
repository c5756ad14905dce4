//! What a run does at the moment, for people and programs.

use super::board::Doing;
use super::control::Control;
use super::handle::{Named, Position};
use crate::plan::Plan;
use onbeat_queue::sync::atomic::Ordering;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::PoisonError;

/// What a run does at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatus {
    /// Name of the pipeline.
    pub name: String,
    /// In a word.
    pub state: RunState,
    /// Time since the first step, on the run's clock, when a worker last looked.
    pub elapsed_ns: u64,
    /// Source time of the latest message that was looked at.
    pub position_ns: u64,
    /// Source time at the end, where a source knows it.
    pub length_ns: Option<u64>,
    /// In the plan's order.
    pub operators: Vec<OperatorStatus>,
    /// In the graph's order.
    pub edges: Vec<EdgeStatus>,
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
    let operators = operators.map(|(number, (operator, slot))| {
        let wait = |what: String| (Activity::Waiting, Some(what));
        let (state, waits_for) = match slot.doing() {
            _ if hangs.contains(&number) => (Activity::Hangs, None),
            _ if failed.contains(&number) => (Activity::Failed, None),
            Doing::NotStarted => (Activity::NotStarted, None),
            Doing::Ready => (Activity::Running, None),
            Doing::AwaitsMessage(edge) => wait(format!("a message on {}", edge_name(edge))),
            Doing::AwaitsRoom(edge) => wait(format!("room on {}", edge_name(edge))),
            Doing::AwaitsTime => wait("a time".to_string()),
            Doing::AwaitsChunk => wait("a chunk from a store that has none left".to_string()),
            Doing::AwaitsConditions => wait("its conditions (`when`)".to_string()),
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
    RunStatus {
        name: plan.name.clone(),
        state: state(control),
        elapsed_ns: at.elapsed_ns,
        position_ns: at.position_ns,
        length_ns: at.length_ns,
        operators: operators.collect(),
        edges: edges.collect(),
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

fn state(control: &Control) -> RunState {
    if control.board.is_closed() {
        RunState::Ended
    } else if control.stop_asked() {
        RunState::Stopping
    } else if control.start_ns.get().is_none() {
        RunState::Starting
    } else if control.paused.load(Ordering::Relaxed) {
        RunState::Paused
    } else {
        RunState::Running
    }
}
