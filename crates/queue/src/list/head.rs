//! The head word of one slot: empty, a list of links (newest first), the mark of a sleeper, or closed. The numbers are
//! those of the diagram in `README.md`.

use super::{Link, Sleeper};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{load_before_rmw, order, planted};
use std::ptr::{NonNull, null_mut};

#[derive(Debug)]
pub(super) struct Head(AtomicPtr<Link>);

/// Says in a head: nothing here, and the consumer sleeps.
fn mark() -> *mut Link {
    std::ptr::without_provenance_mut(1)
}

/// Says in a head: nothing is taken any more.
fn closed() -> *mut Link {
    std::ptr::without_provenance_mut(2)
}

fn is_link(top: *mut Link) -> bool {
    top.addr() > closed().addr()
}

impl Head {
    pub(super) fn new() -> Self {
        Head(AtomicPtr::new(null_mut()))
    }

    /// 1, or 4 where the consumer sleeps, or false where the head is closed. Any thread. `oldest` leads through `next`
    /// to nobody yet and is reached from `newest`; a single link is both.
    ///
    /// # Safety
    /// The caller set the pending flag of these links, or has them for itself in another way; they stay valid until
    /// they are handed out.
    #[inline]
    pub(super) unsafe fn push(
        &self,
        newest: NonNull<Link>,
        oldest: NonNull<Link>,
        sleeper: &impl Sleeper,
    ) -> bool {
        let mut claimed = false;
        // Relaxed: only the value is compared; what the list points to is not read here.
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
                // SAFETY: who set the pending flag has the link for itself until the exchange below succeeds.
                unsafe { *field = next }
            });
            // Release, partner: the Acquire of `take`, which reads `next` and what the caller wrote before; and the
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

    /// 2: all links, newest first; null when there is none. A mark stays.
    #[inline]
    pub(super) fn take(&self) -> *mut Link {
        // Relaxed: a look before the exchange, which would take the cache line away from the producers. A link that it
        // misses is found by the next call, or by the exchange in `mark`.
        if !self.has_links() {
            return null_mut();
        }
        // Acquire, partner: the Release of the pushes. Later pushes are read-modify-writes, so this reads the end of
        // a chain that reaches back to each of them.
        let top = self.0.swap(null_mut(), Ordering::Acquire);
        if is_link(top) { top } else { null_mut() }
    }

    /// 6: all links, newest first, and nothing can be pushed from here on. Consumer only, not while it sleeps.
    pub(super) fn close(&self) -> *mut Link {
        if planted("closed by load and store") {
            let top = self.take();
            self.0.store(closed(), Ordering::Relaxed);
            return top;
        }
        // Acquire: as in `take`. Release, partner: the fence of who was refused and asks why (`work_queue/flush.rs`).
        let top = self.0.swap(closed(), Ordering::AcqRel);
        if is_link(top) { top } else { null_mut() }
    }

    /// 7. Consumer only, after [`close`](Self::close).
    pub(super) fn open(&self) {
        // Relaxed: no data goes with it, and nobody changes a closed head.
        self.0.store(null_mut(), Ordering::Relaxed);
    }

    /// A hint: it may be closed or opened right after.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // Relaxed: nothing is read through it.
        load_before_rmw(&self.0) == closed()
    }

    /// A hint.
    #[inline]
    pub(super) fn has_links(&self) -> bool {
        // Relaxed: nothing is read through it.
        is_link(load_before_rmw(&self.0))
    }

    /// 3; false when there are links. Consumer only.
    #[must_use]
    pub(super) fn mark(&self) -> bool {
        if planted("mark by load and store") {
            let empty = self.0.load(Ordering::Relaxed).is_null();
            if empty {
                self.0.store(mark(), Ordering::Relaxed);
            }
            return empty;
        }
        // Relaxed: the mark carries no data. A push either changed the word before, and this fails, or comes after
        // and finds the mark, because both are read-modify-writes of one word.
        self.0.compare_exchange(null_mut(), mark(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether the mark that the consumer put here is there still. A hint.
    #[inline]
    pub(super) fn is_marked(&self) -> bool {
        // Relaxed: nothing is read through it.
        load_before_rmw(&self.0) == mark()
    }

    /// 5; false when a push had replaced the mark. Consumer only, after [`mark`](Self::mark).
    #[must_use]
    pub(super) fn unmark(&self) -> bool {
        if planted("mark taken back by load and store") {
            let marked = self.is_marked();
            if marked {
                self.0.store(null_mut(), Ordering::Relaxed);
            }
            return marked;
        }
        // Acquire on failure, partner: the Release of the push that replaced the mark, so that its claim comes before
        // what the consumer does now. Relaxed on success: no data.
        self.0.compare_exchange(mark(), null_mut(), Ordering::Relaxed, Ordering::Acquire).is_ok()
    }
}
