//! Waiting until everything has run.

use super::QueueCore;
use super::turn::{DrainPass, Finish, Node};
use crate::list::Sleeper;
use crate::sync::atomic::{AtomicU32, Ordering, fence};
use crate::sync::{self, planted};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// The worker cannot wait for itself.
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

/// Goes through slot 0 and asks to be told of the end of the pass that it runs in.
#[repr(C)]
struct Sentinel {
    /// First: a pointer to the node is one to the sentinel.
    node: Node,
    /// `None` only wakes the worker.
    signal: Option<Arc<dyn Finish>>,
}

struct FlushSignal<W> {
    /// Passes that have ended.
    ended: AtomicU32,
    waker: W,
}

impl<W: Sleeper> Finish for FlushSignal<W> {
    fn finish(&self) {
        // Release, partner: the Acquire of `flush`: what all the runs did.
        self.ended.fetch_add(1, Ordering::Release);
        self.waker.wake();
    }
}

/// # Safety
/// As `RunFn`, for a `Sentinel` that was leaked from its box.
unsafe fn call(node: NonNull<Node>, hand: Option<&DrainPass>) {
    // SAFETY: this function is only in sentinels, and who takes one off the list has it alone.
    let sentinel = unsafe { Box::from_raw(node.cast::<Sentinel>().as_ptr()) };
    if let (Some(hand), Some(signal)) = (hand, sentinel.signal) {
        if planted("notified before the pass is over") {
            return signal.finish();
        }
        hand.wait(signal);
    }
}

impl<S: Sleeper> QueueCore<S> {
    /// Waits until everything has run that was scheduled before, and everything that those runs schedule. Any number of
    /// threads may do so at once. While it waits it calls `wait` again and again, which may block until `waker` is
    /// told, and may return early. On an queue that is closed there is nothing to wait for.
    ///
    /// # Errors
    /// [`OnWorker`] in a callback of this queue.
    pub fn flush<W: Sleeper + 'static>(&self, waker: W, mut wait: impl FnMut()) -> Result<(), OnWorker> {
        if self.is_running_here() {
            return Err(OnWorker);
        }
        let signal = Arc::new(FlushSignal { ended: AtomicU32::new(0), waker });
        // The first for what was scheduled before, the second for what that has scheduled.
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

    /// False when the queue is closed and everything has run.
    fn send(&self, signal: Option<Arc<dyn Finish>>) -> bool {
        let sentinel = Box::leak(Box::new(Sentinel { node: Node::new(call), signal }));
        let link = NonNull::from(sentinel).cast();
        // Slot 0, for it is taken first: whatever was pushed to any slot before the sentinel is taken in the pass of
        // the sentinel at the latest.
        // SAFETY: it is ours alone, and valid until it has run.
        while !unsafe { self.list.push(0, link, link) } {
            // Acquire, partner: the Release of `Head::close`: `closed` is not that of an earlier time.
            fence(Ordering::Acquire);
            if self.is_closed() {
                // SAFETY: it was not pushed.
                unsafe { Node::give_back(link.cast()) };
                return false;
            }
            // It is being closed: what was promised runs now.
            sync::yield_now();
        }
        true
    }
}

/// Wakes the worker with nothing to run.
pub(super) fn prod<S: Sleeper>(queue: &QueueCore<S>) {
    queue.send(None);
}
