//! Whoever looks on while it is measured.

use onbeat_trace::KernelEvent;
use serde::{Deserialize, Serialize};

/// Who looks on while it is measured; `C` is what is known of one core, [`CpuNoise`](crate::CpuNoise) or
/// [`CpuLatency`](crate::timerlat::CpuLatency).
pub trait Watch<C> {
    /// How things stand, from time to time.
    fn at(&mut self, so_far: &dyn Fn() -> Vec<C>, elapsed_ns: u64);

    /// Whether it is enough.
    fn is_stopped(&self) -> bool;

    /// A limit was hit, and it goes on. At most once for each reading of the rings.
    fn hit(&mut self, _stopped: &LimitHit, _events: &[KernelEvent]) {}
}

/// The limit that ended it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitHit {
    /// On which core.
    pub cpu: u32,
    /// What was over it.
    pub what: String,
    /// How much it was.
    pub value_ns: u64,
    /// How much it might have been.
    pub limit_ns: u64,
}
