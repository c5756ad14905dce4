//! The consumer's side.

use super::{NOBODY, Spsc, notify};
use crate::owner::Owner;
use crate::sync::atomic::Ordering;
use crate::sync::{full_fence, order};

impl<T> Spsc<T> {
    /// Makes published items visible, and returns the number of visible items.
    #[inline(always)]
    pub fn poll(&self, consumer: &mut Owner) -> usize {
        self.receiver.with(consumer, |receiver| {
            // Acquire, partner: the Release in `publish`. The items are written before we see their count.
            receiver.tail = self.sent.tail.load(Ordering::Acquire);
            let visible = (receiver.tail - receiver.head) as u32;
            receiver.deepest = receiver.deepest.max(visible);
            visible as usize
        })
    }

    /// Whether a [`poll`](Spsc::poll) would find more. A hint.
    #[inline(always)]
    pub fn has_come(&self, consumer: &Owner) -> bool {
        // Relaxed: `poll` synchronises.
        self.sent.tail.load(Ordering::Relaxed) != self.receiver.get(consumer).tail
    }

    /// Turns notifications off until the consumer [asks](Spsc::wait_for_item) for one: it polls. One more
    /// notification can still come.
    pub fn decline_notifications(&self, consumer: &Owner) {
        self.receiver.check(consumer);
        // Relaxed: if the producer sees this late, there is one notification too many, never one too few.
        self.notify.store(notify::NOTHING, Ordering::Relaxed);
    }

    /// Asks for a notification of the next item.
    ///
    /// True: the last [`poll`](Spsc::poll) has found all items, and [`must_notify`](Spsc::must_notify) after
    /// the next item returns true, once. False: a new item is there. (A notification can come anyway.)
    pub fn wait_for_item(&self, consumer: &mut Owner) -> bool {
        self.receiver.check(consumer);
        // Relaxed: the fence orders it.
        self.notify.store(notify::NEXT, Ordering::Relaxed);
        // Partner: the fence in `must_notify`. Either we see the new tail, or the producer sees the request.
        full_fence("spsc ask fence");
        if !self.has_come(consumer) {
            return true;
        }
        self.decline_notifications(consumer);
        false
    }

    /// Returns the largest number of items that a [`poll`](Spsc::poll) found.
    pub fn most_visible(&self, consumer: &Owner) -> u32 {
        self.receiver.get(consumer).deepest
    }

    /// Number of visible items, as of the last [`poll`](Spsc::poll).
    #[inline(always)]
    pub fn len(&self, consumer: &Owner) -> usize {
        let receiver = self.receiver.get(consumer);
        (receiver.tail - receiver.head) as usize
    }

    /// Takes the oldest visible item out. Its place becomes room with the next [`release`](Spsc::release).
    #[inline(always)]
    pub fn pop(&self, consumer: &mut Owner) -> Option<T> {
        self.receiver.with(consumer, |receiver| {
            if receiver.head == receiver.tail {
                return None;
            }
            let slot = self.slot(receiver.head);
            receiver.head += 1;
            Some(slot.with_mut(|slot| {
                // SAFETY: the slot is the consumer's: its item was published and its place not yet released.
                let slot = unsafe { &*slot };
                // SAFETY: it held the oldest value and `head` has just moved past it, so it is read once.
                unsafe { slot.assume_init_read() }
            }))
        })
    }

    /// Inspects the oldest visible item.
    pub fn peek<R>(&self, consumer: &Owner, inspect: impl FnOnce(&T) -> R) -> Option<R> {
        let receiver = self.receiver.get(consumer);
        if receiver.head == receiver.tail {
            return None;
        }
        Some(self.slot(receiver.head).with(|slot| {
            // SAFETY: the slot is the consumer's, and while `inspect` runs the shared `Owner` excludes
            // writers of this side.
            let slot = unsafe { &*slot };
            // SAFETY: it holds the oldest visible value. Only this thread inspects it (`Owner` is not
            // `Sync`), so `T: Send` is enough.
            inspect(unsafe { slot.assume_init_ref() })
        }))
    }

    /// Releases the places of all popped items to the producer. True: the producer waits for this, and the
    /// caller must notify it (see [`wait_for_room`](Spsc::wait_for_room)). Does nothing if no item was popped
    /// since the last release.
    #[inline]
    pub fn release(&self, consumer: &mut Owner) -> bool {
        self.receiver.with(consumer, |receiver| {
            let head = receiver.head;
            if receiver.released == head {
                return false;
            }
            receiver.released = head;
            // Release, partner: the Acquire in `refresh_head`. The items are out before their slots are used
            // again.
            self.taken.head.store(head, order("spsc release", Ordering::Release));
            // Partner: the fence in `wait_for_room`. Either the producer sees the new head, or we see its
            // request.
            full_fence("spsc release fence");
            // Relaxed: the fences order it.
            let wanted = self.taken.wanted.load(Ordering::Relaxed);
            // Relaxed: it only matters whether it is still the same request. A newer one was made after a
            // poll that saw this head.
            head > wanted
                && self
                    .taken
                    .wanted
                    .compare_exchange(wanted, NOBODY, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
        })
    }

    /// Whether the producer has closed. A [`poll`](Spsc::poll) after a true answer sees all items.
    #[inline]
    pub fn is_closed(&self, consumer: &Owner) -> bool {
        self.receiver.check(consumer);
        // Acquire, partner: the Release in `close`.
        self.sent.closed.load(Ordering::Acquire)
    }

    /// Releases popped items and declares that no more will be taken out. The remaining items are dropped
    /// with the ring.
    ///
    /// This does not notify a producer that waits for room: the caller must do so in any case.
    pub fn leave(&self, consumer: &mut Owner) {
        self.release(consumer);
        // Release, partner: the Acquire in `is_left`.
        self.taken.left.store(true, Ordering::Release);
    }

    /// Number of items ever taken out.
    pub fn taken(&self, consumer: &Owner) -> u64 {
        self.receiver.get(consumer).head
    }
}
