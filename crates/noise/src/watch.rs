//! Observer of a running measurement.

use onbeat_trace::KernelEvent;
use serde::{Deserialize, Serialize};

/// Observer of a running measurement. `C` is the result for one core, [`CpuNoise`](crate::CpuNoise) or
/// [`CpuLatency`](crate::timerlat::CpuLatency).
pub trait Observer<C> {
    /// Called from time to time with the results so far.
    fn at(&mut self, so_far: &dyn Fn() -> Vec<C>, elapsed_ns: u64);

    /// Whether to stop the measurement.
    fn is_stopped(&self) -> bool;

    /// Called when a limit was hit and measuring goes on, at most once per read of the rings.
    fn hit(&mut self, _stopped: &LimitHit, _events: &[KernelEvent]) {}
}

/// A limit that was hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitHit {
    /// Core on which it was hit.
    pub cpu: u32,
    /// Quantity that was over the limit.
    pub what: String,
    /// Value of the quantity.
    pub value_ns: u64,
    /// The limit.
    pub limit_ns: u64,
}
