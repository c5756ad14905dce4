//! Numbers handed out in ranges.

use crate::sync::CachePadded;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::ops::Range;

/// The numbers from 0 to a limit, handed out in ranges: each number once.
///
/// One word that only grows. [`claim`](Ranges::claim) adds the width of a range to it and returns the numbers
/// in between. An addition is atomic, so the protocol has no states and nobody waits. With wide ranges the
/// threads seldom meet.
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
    /// Makes the numbers below `limit`, to be claimed `width` at a time.
    ///
    /// # Panics
    /// If `width` is 0 or more than 2^32.
    #[must_use]
    pub fn new(limit: u64, width: u64) -> Self {
        assert!((1..=1 << 32).contains(&width), "ranges of {width} numbers: 1 to 2^32");
        Ranges { next: CachePadded::new(AtomicU64::new(0)), limit, width }
    }

    /// Returns the next range of unclaimed numbers; an empty range when all are claimed.
    #[inline]
    pub fn claim(&self) -> Range<u64> {
        // Relaxed: a number gives the right to produce its value; nothing else is published with it. The word
        // passes the limit by one range for each late claim, and would wrap after 2^32 of those.
        let begin = self.next.fetch_add(self.width, Ordering::Relaxed).min(self.limit);
        begin..begin.saturating_add(self.width).min(self.limit)
    }
}
