//! The side that takes items out.

use super::{NOBODY, Spsc, notify};
use crate::owner::Owner;
use crate::sync::atomic::Ordering;
use crate::sync::{full_fence, order};

impl<T> Spsc<T> {
    /// Makes visible what was published, and says how many items are visible.
    #[inline(always)]
    pub fn poll(&self, consumer: &mut Owner) -> usize {
        self.receiver.with(consumer, |receiver| {
            // Acquire: partner is the Release in `publish`. The items are there before we see their count.
            receiver.tail = self.sent.tail.load(Ordering::Acquire);
            let visible = (receiver.tail - receiver.head) as u32;
            receiver.deepest = receiver.deepest.max(visible);
            visible as usize
        })
    }

    /// Whether a [`poll`](Spsc::poll) would find more. A hint: nothing goes by it.
    #[inline(always)]
    pub fn has_come(&self, consumer: &Owner) -> bool {
        // Relaxed: the look does the synchronising.
        self.sent.tail.load(Ordering::Relaxed) != self.receiver.get(consumer).tail
    }

    /// Says that the consumer looks by itself from now on, and need be told of nothing, until it [asks](Spsc::wait_for_item).
    /// (It may be told once all the same.)
    pub fn decline_notifications(&self, consumer: &Owner) {
        self.receiver.check(consumer);
        // Relaxed: whether the producer has seen it makes a word too many, never one too few.
        self.notify.store(notify::NOTHING, Ordering::Relaxed);
    }

    /// Asks to be told of the next item.
    ///
    /// True: there is none that a [`poll`](Spsc::poll) has not found, and [`must_notify`](Spsc::must_notify) after the next one returns
    /// true, once. False: there is one now. (It may be told all the same.)
    pub fn wait_for_item(&self, consumer: &mut Owner) -> bool {
        self.receiver.check(consumer);
        // Relaxed: the fence orders it.
        self.notify.store(notify::NEXT, Ordering::Relaxed);
        // Partner: the fence in `must_notify`. Either we see the new tail, or the producer sees that we ask.
        full_fence("spsc ask fence");
        if !self.has_come(consumer) {
            return true;
        }
        self.decline_notifications(consumer);
        false
    }

    /// Most items that a [`poll`](Spsc::poll) found.
    pub fn most_visible(&self, consumer: &Owner) -> u32 {
        self.receiver.get(consumer).deepest
    }

    /// Visible items, as of the last [`poll`](Spsc::poll).
    #[inline(always)]
    pub fn len(&self, consumer: &Owner) -> usize {
        let receiver = self.receiver.get(consumer);
        (receiver.tail - receiver.head) as usize
    }

    /// Takes the oldest visible item out. Its place is room only after the next [`release`](Spsc::release).
    #[inline(always)]
    pub fn pop(&self, consumer: &mut Owner) -> Option<T> {
        self.receiver.with(consumer, |receiver| {
            if receiver.head == receiver.tail {
                return None;
            }
            let slot = self.slot(receiver.head);
            receiver.head += 1;
            Some(slot.with_mut(|slot| {
                // SAFETY: the slot is the consumer's: its item was published and its place not yet given
                // back.
                let slot = unsafe { &*slot };
                // SAFETY: it held the oldest value and `head` has just moved past it, so it is read once.
                unsafe { slot.assume_init_read() }
            }))
        })
    }

    /// Looks at the oldest visible item.
    pub fn peek<R>(&self, consumer: &Owner, inspect: impl FnOnce(&T) -> R) -> Option<R> {
        let receiver = self.receiver.get(consumer);
        if receiver.head == receiver.tail {
            return None;
        }
        Some(self.slot(receiver.head).with(|slot| {
            // SAFETY: the slot is the consumer's, and while `poll` runs the shared `Owner` excludes its
            // writers.
            let slot = unsafe { &*slot };
            // SAFETY: it holds the oldest visible value. Only this thread looks at it (`Owner` is not `Sync`), so
            // `T: Send` is enough.
            inspect(unsafe { slot.assume_init_ref() })
        }))
    }

    /// Gives the places of all items that were popped back to the producer. True: the producer waits for that
    /// and is to be told (see [`wait_for_room`](Spsc::wait_for_room)). Does nothing when none was popped
    /// since the last time.
    #[inline]
    pub fn release(&self, consumer: &mut Owner) -> bool {
        self.receiver.with(consumer, |receiver| {
            let head = receiver.head;
            if receiver.released == head {
                return false;
            }
            receiver.released = head;
            // Release: partner is the Acquire in `refresh_head`. The items are out before their places are
            // used again.
            self.taken.head.store(head, order("spsc release", Ordering::Release));
            // Partner: the fence in `wait_for_room`. Either the producer sees the new head, or we see what it
            // wants.
            full_fence("spsc release fence");
            // Relaxed: the fences order it.
            let wanted = self.taken.wanted.load(Ordering::Relaxed);
            // Relaxed: only whether it is still the same wish matters. A newer one came after a look at this
            // head.
            head > wanted
                && self
                    .taken
                    .wanted
                    .compare_exchange(wanted, NOBODY, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
        })
    }

    /// Whether the producer has closed. A [`poll`](Spsc::poll) after this returned true sees all that was
    /// sent.
    #[inline]
    pub fn is_closed(&self, consumer: &Owner) -> bool {
        self.receiver.check(consumer);
        // Acquire: partner is the Release in `close`.
        self.sent.closed.load(Ordering::Acquire)
    }

    /// Releases what was popped and says that no more will be taken out. What is inside is dropped with the
    /// ring.
    ///
    /// A producer that waits for room is not told by this: it has to be told in any case.
    pub fn leave(&self, consumer: &mut Owner) {
        self.release(consumer);
        // Release: partner is the Acquire in `is_left`.
        self.taken.left.store(true, Ordering::Release);
    }

    /// Items ever taken out.
    pub fn taken(&self, consumer: &Owner) -> u64 {
        self.receiver.get(consumer).head
    }
}
