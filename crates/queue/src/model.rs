//! Helpers of the loom models: a value that loom watches, and a parked thread that counts its wake-ups.

use crate::list::Sleeper;
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicIsize, Ordering};
use loom::sync::Notify;

/// A value that one thread writes and another reads. The protocol under test must order the two; loom reports
/// accesses that it leaves unordered.
pub(crate) struct LoomEvent(UnsafeCell<u32>);

// SAFETY: the protocol under test keeps the accesses apart; loom watches them.
unsafe impl Send for LoomEvent {}
// SAFETY: as above.
unsafe impl Sync for LoomEvent {}

impl LoomEvent {
    pub fn new() -> Self {
        LoomEvent(UnsafeCell::new(0))
    }

    /// Writes the event. No other thread touches it before it was announced.
    pub fn write(&self) {
        self.0.with_mut(|event| {
            // SAFETY: only the writer has access before the announcement.
            unsafe { *event = 7 }
        });
    }

    /// Checks that the event was written, and clears it.
    pub fn take(&self) {
        self.0.with_mut(|event| {
            // SAFETY: the writer has announced the event and does not touch it again.
            assert_eq!(std::mem::take(unsafe { &mut *event }), 7);
        });
    }
}

/// A parked thread. Counts claims that were not taken back, and wake-ups.
pub(crate) struct ParkedThread {
    pub parker: Notify,
    pub claims: AtomicIsize,
    pub wakes: AtomicIsize,
}

impl ParkedThread {
    pub fn new() -> Self {
        ParkedThread { parker: Notify::new(), claims: AtomicIsize::new(0), wakes: AtomicIsize::new(0) }
    }
}

impl Sleeper for ParkedThread {
    fn claim(&self) {
        self.claims.fetch_add(1, Ordering::Relaxed);
    }

    fn unclaim(&self) {
        self.claims.fetch_sub(1, Ordering::Relaxed);
    }

    fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.parker.notify();
    }
}
