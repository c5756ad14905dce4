//! Which parts are worth the way to another thread.

use crate::base::idle::Idle;
use crate::base::options::Share;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Times the least time of a heavy step from which on a step is very heavy.
const VERY_HEAVY: u64 = 10;

/// Time of a part after which older times count half.
const RECENT_NS: u64 = 20_000_000;

/// Weights of parts. All of them are hints for threads, so relaxed orderings suffice.
pub(crate) struct PartWeights {
    /// By part: whether steps are worth the way.
    is_heavy: Box<[AtomicBool]>,
    /// By part: recent time on any thread.
    busy_ns: Box<[AtomicU64]>,
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
        PartWeights {
            is_heavy: (0..parts).map(|_| AtomicBool::new(heavy_ns == 0)).collect(),
            busy_ns: (0..parts).map(|_| AtomicU64::new(0)).collect(),
            heavy_ns,
        }
    }

    #[inline]
    pub fn is_heavy(&self, part: u32) -> bool {
        self.is_heavy[part as usize].load(Ordering::Relaxed)
    }

    /// Notes the mean time of a part's steps.
    pub fn note_steps(&self, part: u32, step_ns: u64) {
        let noted = &self.is_heavy[part as usize];
        // A part with nearly all the work is not made faster by another thread that waits for it, but
        // slower by the way of its chunks. If its steps are very long, the others are not to wait for
        // them.
        let is_heavy = step_ns >= self.heavy_ns
            && (step_ns >= VERY_HEAVY * self.heavy_ns || self.leaves_work(part as usize));
        // Read first: it rarely changes, and other threads read it.
        if noted.load(Ordering::Relaxed) != is_heavy {
            noted.store(is_heavy, Ordering::Relaxed);
        }
    }

    /// Whether the others have at least a quarter of the work.
    fn leaves_work(&self, part: usize) -> bool {
        let all: u64 = self.busy_ns.iter().map(|busy| busy.load(Ordering::Relaxed)).sum();
        4 * self.busy_ns[part].load(Ordering::Relaxed) <= 3 * all
    }

    /// Notes the time for which a part ran.
    pub fn note_time(&self, part: u32, time_ns: u64) {
        let busy = &self.busy_ns[part as usize];
        if busy.fetch_add(time_ns, Ordering::Relaxed) > RECENT_NS {
            for busy in &self.busy_ns {
                busy.store(busy.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_with_all_the_work_stays() {
        let weights = PartWeights::new(3, Idle::Park, Share::Heavy);
        let noted = |part: u32, step_ns: u64| {
            weights.note_steps(part, step_ns);
            weights.is_heavy(part)
        };
        (0..3).zip([700_000, 200_000, 100_000]).for_each(|(part, time_ns)| weights.note_time(part, time_ns));
        assert!(noted(0, 6_000) && !noted(0, 4_000) && noted(1, 5_000));
        weights.note_time(0, 5_000_000);
        assert!(!noted(0, 6_000), "it has 95 %");
        assert!(noted(0, 60_000), "others would wait for it");
        (0..4).for_each(|_| weights.note_time(1, 20_000_000));
        assert!(noted(0, 6_000), "older times count less");
    }
}
