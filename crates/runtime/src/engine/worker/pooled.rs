//! Parts that the threads of a pool share.

use super::Worker;
use crate::engine::pool::ThreadPool;
use crate::engine::team::ParkState;
use crate::operator::context::Context;
use onbeat_queue::Identity;

/// Threads that share the part of a worker.
pub(crate) type WorkerPool = ThreadPool<PooledPart>;

/// A part that goes from thread to thread.
pub(crate) struct PooledPart {
    pub worker: Worker,
    pub cx: Context,
    /// Owner of the part's chunk stores.
    pub identity: Identity,
    /// State while the part is parked.
    pub parked: Option<ParkState>,
    /// Number of operators that were started.
    pub started: usize,
    /// End of the part, on the run's clock.
    pub end_ns: u64,
}
