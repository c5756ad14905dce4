//! Ticks that sources skip after misses.

use onbeat_queue::sync::atomic::{AtomicU64, Ordering};

/// Ticks that a source should skip because messages of it were late.
#[derive(Debug, Default)]
pub(crate) struct Skips {
    asked: AtomicU64,
    /// Only its worker writes it.
    done: AtomicU64,
}

impl Skips {
    /// Requests one more skip. Called by the worker that finds the miss.
    pub fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of further ticks to skip, and counts them as skipped. Called by the source.
    pub fn take(&self) -> u64 {
        let (asked, done) = (self.asked.load(Ordering::Relaxed), self.done.load(Ordering::Relaxed));
        if asked > done {
            self.done.store(asked, Ordering::Relaxed);
        }
        asked.saturating_sub(done)
    }

    /// Returns the number of ticks skipped so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}
