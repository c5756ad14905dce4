//! Ends of an edge, as a worker knows them.

use super::Probe;
use std::sync::Arc;

/// Operators at the ends of an edge; [`NONE`](crate::operator::context::NONE) for an end on another worker.
pub(crate) struct EdgeEnds {
    /// Number of the edge in the plan.
    pub plan: usize,
    pub from: u32,
    pub to: u32,
    pub probe: Arc<dyn Probe>,
    pub capacity: usize,
    /// Number of queued messages from which on the producer waits.
    pub waits_at: usize,
    pub counted: bool,
    /// Whether the consumer ends when this edge and all others with this flag have ended.
    pub vital: bool,
}
