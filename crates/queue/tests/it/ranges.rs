//! Ranges of numbers, with threads.
#![cfg(not(loom))]

use onbeat_queue::Ranges;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

#[test]
#[allow(clippy::disallowed_methods, reason = "a test outside the workspace's layers")]
fn every_number_is_claimed_once() {
    for (limit, width) in [(0, 1), (1, 64), (10_007, 1), (10_007, 64)] {
        let ranges = Arc::new(Ranges::new(limit, width));
        let (sum, count) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (ranges, sum, count) = (Arc::clone(&ranges), Arc::clone(&sum), Arc::clone(&count));
                std::thread::spawn(move || {
                    loop {
                        let range = ranges.claim();
                        if range.is_empty() {
                            return;
                        }
                        count.fetch_add(range.end - range.start, Ordering::Relaxed);
                        sum.fetch_add(range.sum::<u64>(), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(count.load(Ordering::Relaxed), limit);
        assert_eq!(sum.load(Ordering::Relaxed), (0..limit).sum::<u64>());
    }
}
