//! Ticks that sources leave out after misses.

use onbeat_queue::sync::atomic::{AtomicU64, Ordering};

/// Ticks that a source is to leave out because messages of it were late.
#[derive(Debug, Default)]
pub(crate) struct Skips {
    asked: AtomicU64,
    /// Only its worker writes it.
    done: AtomicU64,
}

impl Skips {
    /// By whoever missed.
    pub fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// By the source: how many more it is to leave out, which it does now.
    pub fn take(&self) -> u64 {
        let (asked, done) = (self.asked.load(Ordering::Relaxed), self.done.load(Ordering::Relaxed));
        if asked > done {
            self.done.store(asked, Ordering::Relaxed);
        }
        asked.saturating_sub(done)
    }

    /// How many it has left out.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}
