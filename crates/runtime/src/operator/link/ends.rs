//! What a worker knows of an edge beside its queue.

use super::Probe;
use std::sync::Arc;

/// Who is at the ends of an edge; [`NONE`](crate::operator::context::NONE) for an end on another worker.
pub(crate) struct EdgeEnds {
    /// Its number in the plan.
    pub plan: usize,
    pub from: u32,
    pub to: u32,
    pub probe: Arc<dyn Probe>,
    pub capacity: usize,
    /// Messages from which on its producer waits.
    pub waits_at: usize,
    pub counted: bool,
    /// Its end is one of those that together end its consumer.
    pub vital: bool,
}
