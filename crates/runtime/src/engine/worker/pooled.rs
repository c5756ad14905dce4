//! A part of the graph that the threads of a pool share.

use super::Worker;
use crate::engine::pool::{Pool, Weighed};
use crate::engine::team::Lying;
use crate::operator::context::Context;
use onbeat_queue::Identity;

/// The threads that share the part of a worker.
pub(crate) type WorkerPool = Pool<Pooled>;

/// A part that goes from thread to thread.
pub(crate) struct Pooled {
    pub worker: Worker,
    pub cx: Context,
    /// Its chunk stores belong to this.
    pub identity: Identity,
    pub lying: Option<Lying>,
    /// Operators that were started.
    pub started: usize,
    /// When it was over, on the run's clock.
    pub end_ns: u64,
}

impl Weighed for Pooled {
    fn is_heavy(&self) -> bool {
        self.worker.heavy
    }
}
