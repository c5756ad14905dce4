//! The head word of one slot: empty, a list of links (newest first), the mark of a sleeper, or closed.
//! Numbers refer to the diagram in `README.md`.

use super::{Link, Sleeper};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{load_before_rmw, order, planted};
use std::ptr::{NonNull, null_mut};

#[derive(Debug)]
pub(super) struct ListHead(AtomicPtr<Link>);

/// Value of a head: empty, and the consumer sleeps.
fn mark() -> *mut Link {
    std::ptr::without_provenance_mut(1)
}

/// Value of a head: nothing can be pushed.
fn closed() -> *mut Link {
    std::ptr::without_provenance_mut(2)
}

fn is_link(top: *mut Link) -> bool {
    top.addr() > closed().addr()
}

impl ListHead {
    pub(super) fn new() -> Self {
        ListHead(AtomicPtr::new(null_mut()))
    }

    /// Transition 1, or 4 if the consumer sleeps; false if the head is closed. Any thread. `oldest` is
    /// reached from `newest` through `next`, and its own `next` is free; a single link is both.
    ///
    /// # Safety
    /// The caller set the pending flag of these links, or owns them otherwise. They stay valid until they are
    /// handed out.
    #[inline]
    pub(super) unsafe fn push(
        &self,
        newest: NonNull<Link>,
        oldest: NonNull<Link>,
        sleeper: &impl Sleeper,
    ) -> bool {
        let mut claimed = false;
        // Relaxed: only the value is compared; the list is not read here.
        let mut top = load_before_rmw(&self.0);
        loop {
            if top == closed() {
                if claimed {
                    sleeper.unclaim();
                }
                return false;
            }
            let asleep = top == mark();
            if asleep && !claimed && !planted("claim after the push") {
                sleeper.claim();
                claimed = true;
            }
            let next = if asleep { null_mut() } else { top };
            // SAFETY: valid, as promised by the caller.
            unsafe { oldest.as_ref() }.next.with_mut(|field| {
                // SAFETY: the thread that set the pending flag has the link to itself until the exchange
                // below succeeds.
                unsafe { *field = next }
            });
            // Release, partner: the Acquire of `take`, which reads `next` and the caller's writes; and the
            // Acquire of `unmark`, which sees the claim.
            let release = order("relaxed push", Ordering::Release);
            // Relaxed on failure: as for the load.
            match self.0.compare_exchange_weak(top, newest.as_ptr(), release, Ordering::Relaxed) {
                Ok(_) if asleep => {
                    if planted("claim after the push") {
                        sleeper.claim();
                    }
                    sleeper.wake();
                    return true;
                }
                Ok(_) if claimed => {
                    sleeper.unclaim();
                    return true;
                }
                Ok(_) => return true,
                Err(now) => top = now,
            }
        }
    }

    /// Transition 2: returns all links, newest first; null if there is none. A mark stays.
    #[inline]
    pub(super) fn take(&self) -> *mut Link {
        // Relaxed: a check before the exchange, which would take the cache line away from the producers. A
        // link that it misses is found by the next call, or by the exchange in `mark`.
        if !self.has_links() {
            return null_mut();
        }
        // Acquire, partner: the Release of the pushes. Later pushes are read-modify-writes, so this reads the
        // end of a chain that reaches back to each of them.
        let top = self.0.swap(null_mut(), Ordering::Acquire);
        if is_link(top) { top } else { null_mut() }
    }

    /// Transition 6: returns all links, newest first; nothing can be pushed from here on. Consumer only, not
    /// while it sleeps.
    pub(super) fn close(&self) -> *mut Link {
        if planted("closed by load and store") {
            let top = self.take();
            self.0.store(closed(), Ordering::Relaxed);
            return top;
        }
        // Acquire: as in `take`. Release, partner: the fence of a refused thread that checks `closed`
        // (`work_queue/flush.rs`).
        let top = self.0.swap(closed(), Ordering::AcqRel);
        if is_link(top) { top } else { null_mut() }
    }

    /// Transition 7. Consumer only, after [`close`](Self::close).
    pub(super) fn open(&self) {
        // Relaxed: no data goes with it, and other threads do not change a closed head.
        self.0.store(null_mut(), Ordering::Relaxed);
    }

    /// Whether the head is closed. A hint.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // Relaxed: nothing is read through it.
        load_before_rmw(&self.0) == closed()
    }

    /// Whether the head has links. A hint.
    #[inline]
    pub(super) fn has_links(&self) -> bool {
        // Relaxed: nothing is read through it.
        is_link(load_before_rmw(&self.0))
    }

    /// Transition 3; false if there are links. Consumer only.
    #[must_use]
    pub(super) fn mark(&self) -> bool {
        if planted("mark by load and store") {
            let empty = self.0.load(Ordering::Relaxed).is_null();
            if empty {
                self.0.store(mark(), Ordering::Relaxed);
            }
            return empty;
        }
        // Relaxed: the mark carries no data. Mark and push are read-modify-writes of one word: either the
        // push came first and this fails, or it comes later and finds the mark.
        self.0.compare_exchange(null_mut(), mark(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether the consumer's mark is still there. A hint.
    #[inline]
    pub(super) fn is_marked(&self) -> bool {
        // Relaxed: nothing is read through it.
        load_before_rmw(&self.0) == mark()
    }

    /// Transition 5; false if a push has replaced the mark. Consumer only, after [`mark`](Self::mark).
    #[must_use]
    pub(super) fn unmark(&self) -> bool {
        if planted("mark taken back by load and store") {
            let marked = self.is_marked();
            if marked {
                self.0.store(null_mut(), Ordering::Relaxed);
            }
            return marked;
        }
        // Acquire on failure, partner: the Release of the push that replaced the mark, so that its claim
        // comes before the consumer's next steps. Relaxed on success: no data.
        self.0.compare_exchange(mark(), null_mut(), Ordering::Relaxed, Ordering::Acquire).is_ok()
    }
}
