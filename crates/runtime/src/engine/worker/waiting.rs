//! What a worker waits for while no operator can be stepped.

use super::{Pause, Worker};
use crate::engine::team::InboxEvent;
use crate::operator::link::EdgeEnds;

/// Most pauses between two polls; a pause takes 10 to 40 ns.
const PAUSES: usize = 16;

/// Edges, items and chunks that a worker waits for.
pub(crate) struct Waiting {
    /// Edges from other workers that this worker polls instead of being notified, until it arms notifications
    /// before it parks.
    pub watched: Box<[u32]>,
    pub spin_pace: SpinPace,
    /// Whether notifications for `watched` are armed.
    pub has_asked: bool,
    /// By item of the inbox: its meaning.
    pub events: Box<[InboxEvent]>,
    /// Items just taken from the inbox. Has room for all items.
    pub notified: Vec<u32>,
    /// Operators that found too few chunks in a store.
    pub starved: Vec<StarvedOperator>,
    /// Reason why the last pick found no operator.
    pub pause: Pause,
}

impl Waiting {
    /// State before the first step. A worker that shares its thread polls no edges.
    pub fn new(edges: &[EdgeEnds], operators: usize, events: Box<[InboxEvent]>, shares_thread: bool) -> Self {
        Waiting {
            watched: if shares_thread { Box::default() } else { Worker::watchable(edges) },
            spin_pace: SpinPace::for_edges(edges),
            has_asked: false,
            notified: Vec::with_capacity(events.len()),
            events,
            starved: Vec::with_capacity(operators),
            pause: Pause::Over,
        }
    }
}

/// How often a worker polls what others write while it has nothing to do.
///
/// Each poll takes the cache line from its writer, which has to fetch it back for its next message. If
/// messages follow each other closely, the worker therefore polls less often; but not much less if edges have
/// little room, as the other side then waits for this worker.
#[derive(Debug)]
pub(crate) struct SpinPace {
    /// Pauses from one poll to the next while messages follow each other closely.
    pub pauses: u32,
    /// Whether the last wait was short.
    pub is_dense: bool,
}

impl SpinPace {
    /// Pace for the edges to other workers among these.
    pub fn for_edges(edges: &[EdgeEnds]) -> Self {
        let afar = edges.iter().filter(|edge| edge.probe.far().is_some());
        let room = afar.map(|edge| edge.capacity).min().unwrap_or(0);
        SpinPace { pauses: (2 * room).clamp(1, PAUSES) as u32, is_dense: false }
    }
}

/// An operator that found too few chunks in a store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StarvedOperator {
    pub operator: u32,
    pub store: usize,
    /// Number of chunks that the operator needs.
    pub chunks: usize,
}
