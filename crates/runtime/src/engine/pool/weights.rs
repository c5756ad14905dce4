//! Which parts are worth the way to another thread.

use crate::base::idle::Idle;
use crate::base::options::Share;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};

/// Times the least time of a heavy step from which on a step is very heavy.
const VERY_HEAVY: u64 = 10;

/// Weights of parts. All of them are hints for threads, so relaxed orderings suffice.
pub(crate) struct PartWeights {
    /// By part: mean time of a step.
    step_ns: Box<[AtomicU64]>,
    /// Mean time of a step from which on a part is heavy.
    pub heavy_ns: u64,
}

impl PartWeights {
    pub fn new(parts: usize, idle: Idle, share: Share) -> Self {
        let heavy_ns = match (share, idle) {
            (Share::Always, _) => 0,
            (Share::Heavy, Idle::Park | Idle::Early(_)) => 5_000,
            (Share::Heavy, _) => 1_000,
        };
        PartWeights { step_ns: (0..parts).map(|_| AtomicU64::new(0)).collect(), heavy_ns }
    }

    #[inline]
    pub fn is_heavy(&self, part: u32) -> bool {
        self.step_ns(part) >= self.heavy_ns
    }

    /// Whether no other part should wait for a step.
    #[inline]
    pub fn is_very_heavy(&self, part: u32) -> bool {
        self.step_ns(part) >= VERY_HEAVY * self.heavy_ns
    }

    #[inline]
    fn step_ns(&self, part: u32) -> u64 {
        self.step_ns[part as usize].load(Ordering::Relaxed)
    }

    /// Notes the mean time of a part's steps.
    pub fn note_steps(&self, part: u32, step_ns: u64) {
        let noted = &self.step_ns[part as usize];
        // Other threads read it: small changes stay here.
        if noted.load(Ordering::Relaxed).abs_diff(step_ns) > self.heavy_ns / 16 {
            noted.store(step_ns, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_depend_on_how_threads_wait() {
        let noted = |idle, share, step_ns| {
            let weights = PartWeights::new(2, idle, share);
            weights.note_steps(1, step_ns);
            (weights.is_heavy(1), weights.is_very_heavy(1))
        };
        assert_eq!(noted(Idle::Park, Share::Heavy, 4_900), (false, false));
        assert_eq!(noted(Idle::Park, Share::Heavy, 5_400), (true, false));
        assert_eq!(noted(Idle::Spin, Share::Heavy, 1_400), (true, false));
        assert_eq!(noted(Idle::Park, Share::Heavy, 51_000), (true, true));
        assert_eq!(noted(Idle::Park, Share::Always, 0), (true, true));
    }
}
