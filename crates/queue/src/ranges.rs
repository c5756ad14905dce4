//! Numbers that are shared out in ranges.

use crate::sync::CachePadded;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::ops::Range;

/// The numbers from 0 to a limit, shared out in ranges: no number is given out twice, and none is left out.
///
/// One word that only goes up. Whoever [claims](Ranges::claim) adds the width of a range to it and has the numbers that it went
/// past: an addition that nobody can come between, so there are no states and nothing to wait for. With wide ranges the
/// threads that share it hardly ever meet.
///
/// ```
/// use onbeat_queue::Ranges;
/// let ranges = Ranges::new(5, 2);
/// assert_eq!([(); 4].map(|()| ranges.claim()), [0..2, 2..4, 4..5, 5..5]);
/// ```
#[derive(Debug)]
pub struct Ranges {
    next: CachePadded<AtomicU64>,
    limit: u64,
    width: u64,
}

impl Ranges {
    /// The numbers below `limit`, `width` at a time.
    ///
    /// # Panics
    /// When `width` is 0 or more than 2^32.
    #[must_use]
    pub fn new(limit: u64, width: u64) -> Self {
        assert!((1..=1 << 32).contains(&width), "ranges of {width} numbers: 1 to 2^32");
        Ranges { next: CachePadded::new(AtomicU64::new(0)), limit, width }
    }

    /// The next numbers that nobody has; none when all are given out.
    #[inline]
    pub fn claim(&self) -> Range<u64> {
        // Relaxed: who has a number may make what belongs to it, and nothing else goes by it. It goes past the limit by one
        // range for each claim that comes too late: it would come round after 2^32 of those.
        let begin = self.next.fetch_add(self.width, Ordering::Relaxed).min(self.limit);
        begin..begin.saturating_add(self.width).min(self.limit)
    }
}
