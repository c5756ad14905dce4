//! Waiting until everything has run.

use super::QueueCore;
use super::turn::{DrainPass, Finish, ItemNode};
use crate::list::Sleeper;
use crate::sync::atomic::{AtomicU32, Ordering, fence};
use crate::sync::{self, planted};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// Error: the worker cannot wait for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnWorker;

impl fmt::Display for OnWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a callback waits for the queue that runs it, which would never end; let another thread flush or stop it",
        )
    }
}

impl std::error::Error for OnWorker {}

/// Passes slot 0, and has its flusher notified at the end of that pass.
#[repr(C)]
struct Sentinel {
    /// First: a pointer to the node is one to the sentinel.
    node: ItemNode,
    /// `None`: only wakes the worker.
    signal: Option<Arc<dyn Finish>>,
}

struct FlushSignal<W> {
    /// Passes that have ended.
    ended: AtomicU32,
    waker: W,
}

impl<W: Sleeper> Finish for FlushSignal<W> {
    fn finish(&self) {
        // Release, partner: the Acquire of `flush`, for the effects of all runs.
        self.ended.fetch_add(1, Ordering::Release);
        self.waker.wake();
    }
}

/// # Safety
/// As `RunFn`, for a `Sentinel` that was leaked from its box.
unsafe fn call(node: NonNull<ItemNode>, pass: Option<&DrainPass>) {
    // SAFETY: this function is only in sentinels, and the thread that takes one off the list has it alone.
    let sentinel = unsafe { Box::from_raw(node.cast::<Sentinel>().as_ptr()) };
    if let (Some(pass), Some(signal)) = (pass, sentinel.signal) {
        if planted("notified before the pass is over") {
            return signal.finish();
        }
        pass.wait(signal);
    }
}

impl<S: Sleeper> QueueCore<S> {
    /// Waits until everything has run that was scheduled before, and everything that those runs schedule. Any
    /// number of threads can do so at once. While it waits it calls `wait` repeatedly, which may block until
    /// `waker` is called, and may return early. On a closed queue it returns at once.
    ///
    /// # Errors
    /// [`OnWorker`] in a callback of this queue.
    pub fn flush<W: Sleeper + 'static>(&self, waker: W, mut wait: impl FnMut()) -> Result<(), OnWorker> {
        if self.is_running_here() {
            return Err(OnWorker);
        }
        let signal = Arc::new(FlushSignal { ended: AtomicU32::new(0), waker });
        // The first sentinel for items scheduled before, the second for items scheduled by those.
        let sentinels = if planted("one sentinel") { 1 } else { 2 };
        for ended in 1..=sentinels {
            if !self.send(Some(signal.clone())) {
                return Ok(());
            }
            // Acquire, partner: the Release of `finish`.
            while signal.ended.load(Ordering::Acquire) < ended {
                wait();
            }
        }
        Ok(())
    }

    /// Pushes a sentinel. False if the queue is closed and everything has run.
    fn send(&self, signal: Option<Arc<dyn Finish>>) -> bool {
        let sentinel = Box::leak(Box::new(Sentinel { node: ItemNode::new(call), signal }));
        let link = NonNull::from(sentinel).cast();
        // Slot 0, because it is taken first: items pushed to any slot before the sentinel are taken in the
        // sentinel's pass at the latest.
        // SAFETY: it is ours alone, and valid until it has run.
        while !unsafe { self.list.push(0, link, link) } {
            // Acquire, partner: the Release of `ListHead::close`, so that `closed` is not that of an earlier
            // close.
            fence(Ordering::Acquire);
            if self.is_closed() {
                // SAFETY: it was not pushed.
                unsafe { ItemNode::give_back(link.cast()) };
                return false;
            }
            // The queue is closing: its last items run now.
            sync::yield_now();
        }
        true
    }
}

/// Wakes the worker with nothing to run.
pub(super) fn prod<S: Sleeper>(queue: &QueueCore<S>) {
    queue.send(None);
}
