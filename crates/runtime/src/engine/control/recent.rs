//! Latencies of a path in a run in progress: a histogram coarse enough to be copied between two steps.

use super::board::PathSlot;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_trace::Buckets;

/// Number of buckets: each octave from 2^10 to 2^37 ns (1 µs to 137 s) in eight parts, so a quantile is at
/// most an eighth too high. Shorter latencies share the first bucket, longer ones the last.
const BUCKETS: usize = 2 + 27 * 8;
const FIRST_OCTAVE: u32 = 10;

/// Histogram of latencies.
#[derive(Debug, Clone)]
pub(crate) struct Recent {
    counts: Box<[u64; BUCKETS]>,
    /// Range of the buckets that are not empty: first, and one after the last.
    used: (u32, u32),
    sum_ns: u64,
    max_ns: u64,
}

/// The same histogram for other threads to read. Relaxed throughout:
/// [`Board::answer`](super::board::Board::answer) publishes it.
pub(crate) struct SharedLatencies {
    counts: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Default for Recent {
    fn default() -> Self {
        Recent { counts: Box::new([0; BUCKETS]), used: (BUCKETS as u32, 0), sum_ns: 0, max_ns: 0 }
    }
}

impl Recent {
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let bucket = bucket_of(ns);
        self.counts[bucket] += 1;
        self.used = (self.used.0.min(bucket as u32), self.used.1.max(bucket as u32 + 1));
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Copies the histogram to the board.
    pub fn publish(&self, misses: u64, slot: &PathSlot) {
        let shown = &slot.latency;
        for at in self.used.0..self.used.1 {
            shown.counts[at as usize].store(self.counts[at as usize], Ordering::Relaxed);
        }
        shown.sum_ns.store(self.sum_ns, Ordering::Relaxed);
        shown.max_ns.store(self.max_ns, Ordering::Relaxed);
        slot.misses.store(misses, Ordering::Relaxed);
    }
}

impl Default for SharedLatencies {
    fn default() -> Self {
        SharedLatencies {
            counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            sum_ns: AtomicU64::new(0),
            max_ns: AtomicU64::new(0),
        }
    }
}

impl SharedLatencies {
    /// The buckets that are not empty.
    pub fn buckets(&self) -> Buckets {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).enumerate();
        let (up_to_ns, count) =
            counts.filter(|&(_, count)| count > 0).map(|(it, count)| (up_to_ns(it), count)).unzip();
        Buckets { up_to_ns, count }
    }

    pub fn sum_ns(&self) -> u64 {
        self.sum_ns.load(Ordering::Relaxed)
    }

    pub fn max_ns(&self) -> u64 {
        self.max_ns.load(Ordering::Relaxed)
    }
}

fn bucket_of(ns: u64) -> usize {
    if ns >> FIRST_OCTAVE == 0 {
        return 0;
    }
    let octave = ns.ilog2();
    let eighth = (ns >> (octave - 3)) & 7;
    let bucket = 1 + u64::from(octave - FIRST_OCTAVE) * 8 + eighth;
    bucket.min(BUCKETS as u64 - 1) as usize
}

/// Longest latency of a bucket; [`u64::MAX`] for the last one.
fn up_to_ns(place: usize) -> u64 {
    match place {
        0 => (1 << FIRST_OCTAVE) - 1,
        place if place == BUCKETS - 1 => u64::MAX,
        place => {
            let (octave, eighth) = ((place as u64 - 1) / 8, (place as u64 - 1) % 8);
            ((9 + eighth) << (octave + u64::from(FIRST_OCTAVE) - 3)) - 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_is_in_a_bucket_that_is_an_eighth_wide() {
        for ns in (0..40)
            .flat_map(|octave| [1u64 << octave, (1 << octave) + 1, (3 << octave) - 1])
            .chain([0, u64::MAX])
        {
            let at = bucket_of(ns);
            assert!(up_to_ns(at) >= ns, "{ns}");
            assert!(at == 0 || up_to_ns(at - 1) < ns, "{ns}");
            let is_inside = (1_024..1 << 37).contains(&ns);
            assert!(!is_inside || up_to_ns(at) as f64 <= ns as f64 * 1.125, "{ns} {}", up_to_ns(at));
        }
    }

    #[test]
    fn published_values_are_those_recorded() {
        let (mut recent, slot) = (Recent::default(), PathSlot::default());
        assert_eq!(slot.latency.buckets(), Buckets::default());
        for ns in [5, 2_000, 2_001, 1 << 50] {
            recent.record(ns);
        }
        recent.publish(2, &slot);
        let buckets = slot.latency.buckets();
        assert_eq!(buckets.count, [1, 2, 1]);
        assert_eq!(buckets.up_to_ns, [1_023, 2_047, u64::MAX]);
        assert_eq!((slot.latency.sum_ns(), slot.latency.max_ns()), (5 + 2_000 + 2_001 + (1 << 50), 1 << 50));
        assert_eq!(slot.misses.load(Ordering::Relaxed), 2);
    }
}
