//! Rows of a plan as plain data, and the plan as text.

use super::Plan;
use crate::base::idle::Idle;
use crate::base::on_error::OnError;
use crate::graph::limits::OnMiss;
use onbeat_os::Policy;
use onbeat_trace::record::{InFlightLimit, WhenFull};
use serde::Serialize;
use std::fmt;

/// One thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerPlan {
    /// Thread name.
    pub name: String,
    /// The core that it runs on; `None` for wherever the kernel puts it.
    pub core: Option<usize>,
    /// Place of its pool in [`Plan::pools`].
    pub pool: usize,
    /// Names of the operators that it may step, in their order down the graph.
    pub operators: Vec<String>,
}

/// Workers that share operators. A worker that shares none has a pool of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PoolPlan {
    /// Name of the pool. A pool with one worker has the worker's name.
    pub name: String,
    /// Scheduling policy of its workers; `None` for the policy of the process.
    #[serde(serialize_with = "crate::base::options::as_text")]
    pub policy: Option<Policy>,
    /// How idle workers of the pool wait.
    pub idle: Idle,
    /// Places of its workers.
    pub workers: Vec<usize>,
}

/// Operators that move between workers together. One worker at a time steps them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartPlan {
    /// Name of the part: that of its worker, or of its first operator if workers share it.
    pub name: String,
    /// Place of its pool in [`Plan::pools`].
    pub pool: usize,
    /// Whether it is a further copy of some operators, which gets every second block of chunks or so.
    #[serde(skip)]
    pub(crate) is_lane: bool,
}

/// One operator.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperatorPlan {
    /// Name of the operator.
    pub name: String,
    /// Kind of the operator.
    pub kind: String,
    /// Place of its part in [`Plan::parts`].
    pub part: usize,
    /// Whether it is a source: it waits for no input, and takes turns with other sources.
    pub source: bool,
    /// Time between two of its messages, in nanoseconds; `None` unless it keeps time and knows it before the
    /// run.
    pub period_ns: Option<u64>,
    /// Time limit from the source's due time to the end of its step, in nanoseconds.
    pub deadline_ns: Option<u64>,
    /// Limit for the computing time of one step, in nanoseconds.
    pub budget_ns: Option<u64>,
    /// Reaction to a missed `deadline_ns`.
    pub on_miss: OnMiss,
    /// Reaction of the run to a failure of this operator.
    pub on_error: OnError,
}

/// One edge.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EdgePlan {
    /// Sending "operator.port".
    pub from: String,
    /// Receiving "operator.port".
    pub to: String,
    /// Message type.
    pub message: String,
    /// Most messages in its queue.
    pub capacity: usize,
    /// Reaction to a message for which there is no room.
    pub when_full: WhenFull,
    /// Most bytes of samples in a chunk; `None` for other messages.
    pub quantum_bytes: Option<u32>,
    /// Rows, columns and planes of the largest frame, if operators know it before the run; 0 for axes that
    /// are not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<[u32; 3]>,
    /// "ring" within a part, "spsc ring" or "overwriting ring" between two.
    pub queue: &'static str,
    /// Number of messages that it holds from the start.
    pub initial: usize,
}

/// One chunk store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StorePlan {
    /// Place of the part whose operators fill its chunks.
    pub part: usize,
    /// Bytes of samples in one chunk.
    pub quantum_bytes: u32,
    /// Number of chunks.
    pub chunks: usize,
    /// Whether other processes can map it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_shared: bool,
}

/// One path whose latency is measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathPlan {
    /// The source.
    pub from: String,
    /// The operator where it ends.
    pub to: String,
    /// Latency limit from the source's due time to the end of the step at the path's end, in nanoseconds.
    pub max_latency_ns: Option<u64>,
    /// Limit for messages in flight.
    pub max_in_flight: Option<InFlightLimit>,
    /// Reaction to a missed `max_latency_ns`.
    pub on_miss: OnMiss,
    /// Place of the source among the sources.
    #[serde(skip)]
    pub(crate) source: usize,
    /// Number of the operator where it ends.
    #[serde(skip)]
    pub(crate) end: usize,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} under {}", self.name, self.scheduler)?;
        for pool in &self.pools {
            let kind = if pool.workers.len() > 1 { "workers" } else { "worker" };
            let operators = pool.workers.first().map(|&first| self.workers[first].operators.join(", "));
            write!(f, "{kind} {}", self.workers_of(pool).join(" and "))?;
            if let Some(policy) = pool.policy {
                write!(f, " under {policy}")?;
            }
            writeln!(f, ": {}", operators.unwrap_or_default())?;
        }
        for edge in &self.edges {
            write!(
                f,
                "edge {} → {}: {}, {} of {}",
                edge.from, edge.to, edge.queue, edge.capacity, edge.message
            )?;
            if let Some(quantum) = edge.quantum_bytes {
                write!(f, " up to {quantum} bytes")?;
            }
            if let Some(frame) = edge.frame {
                write!(f, ", frames of {}", super::frames::text(frame))?;
            }
            write!(f, ", when full {}", edge.when_full)?;
            if edge.initial > 0 {
                write!(f, ", {} initial", edge.initial)?;
            }
            writeln!(f)?;
        }
        for run in &self.passes {
            let names: Vec<&str> = run.iter().map(|&number| self.operators[number].name.as_str()).collect();
            let waves = if self.waves.contains(run) { " (in waves where that is faster)" } else { "" };
            writeln!(f, "as one step: {}{waves}", names.join(", "))?;
        }
        for store in &self.stores {
            let part = &self.parts[store.part].name;
            writeln!(f, "store of {part}: {} chunks of {} bytes", store.chunks, store.quantum_bytes)?;
        }
        for path in &self.paths {
            write!(f, "path {} → {}", path.from, path.to)?;
            if let Some(limit_ns) = path.max_latency_ns {
                write!(f, ": at most {} µs", limit_ns as f64 / 1e3)?;
            }
            match path.max_in_flight {
                Some(InFlightLimit::Messages(most)) => write!(f, ", at most {most} messages in flight")?,
                Some(InFlightLimit::Time(most_ns)) => {
                    write!(f, ", at most {} µs in flight", most_ns as f64 / 1e3)?;
                }
                None => {}
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
