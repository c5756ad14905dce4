//! The side that takes items out.

use super::word::{Position, SlotWord};
use super::{Lossy, Reader};
use crate::owner::Owner;
use crate::sync::atomic::Ordering;
use crate::sync::order;

impl<T> Lossy<T> {
    /// Looks how many items can be taken out now, and says so: at most the capacity.
    #[inline]
    pub fn poll(&self, consumer: &mut Owner) -> usize {
        self.receiver.with(consumer, |receiver| {
            // Acquire: partner is the Release in `push`. What was counted can be found.
            receiver.tail = self.sent.tail.load(Ordering::Acquire);
            self.visible(receiver)
        })
    }

    /// Items that could be taken out as of the last [`poll`](Lossy::poll), less what was popped since: 0
    /// although newer ones came, if that is so. What is above 0 is true in so far as [`pop`](Lossy::pop)
    /// gives an item.
    #[inline]
    pub fn len(&self, consumer: &Owner) -> usize {
        self.visible(&self.receiver.get(consumer))
    }

    #[inline(always)]
    fn visible(&self, receiver: &Reader) -> usize {
        // The item that lies in the hand counts, and it has left its slot: there may be one more than slots.
        let waiting = receiver.tail.saturating_sub(receiver.head) + u64::from(receiver.held);
        waiting.min(self.layout.slots()) as usize
    }

    /// Takes the oldest item out that is still there, whether a [`poll`](Lossy::poll) has seen it or not.
    #[inline]
    pub fn pop(&self, consumer: &mut Owner) -> Option<T> {
        self.receiver.with(consumer, |receiver| {
            if !self.claim(receiver) {
                return None;
            }
            receiver.held = false;
            receiver.taken += 1;
            // SAFETY: `claim` put a cell with an item into our hand, and `held` says that it holds none from
            // here on.
            Some(unsafe { self.take(receiver.hand) })
        })
    }

    /// Looks at the oldest item that is still there. From then on it does not make room any more: it is out
    /// of the ring and the next [`pop`](Lossy::pop) gives it.
    pub fn peek<R>(&self, consumer: &mut Owner, inspect: impl FnOnce(&T) -> R) -> Option<R> {
        self.receiver.with(consumer, |receiver| {
            self.claim(receiver).then(|| {
                self.cell(receiver.hand).with(|cell| {
                    // SAFETY: the cell is in our hand, and `&mut Owner` keeps everybody else of our side out.
                    let cell = unsafe { &*cell };
                    // SAFETY: `claim` put a cell with an item into our hand.
                    inspect(unsafe { cell.assume_init_ref() })
                })
            })
        })
    }

    /// Takes the oldest item into the hand, unless one is there already. False: there is none.
    #[inline(always)]
    fn claim(&self, receiver: &mut Reader) -> bool {
        if receiver.held {
            return true;
        }
        // Acquire, here and on failure below: partner is the Release in `push`. Who sees an item in a slot
        // sees the slots before it as they were then, or younger.
        let mut bits = self.slots[receiver.at.slot as usize].load(Ordering::Acquire);
        loop {
            let word = self.layout.unpack(bits);
            if word.lap < receiver.at.lap {
                return false;
            }
            if word.lap > receiver.at.lap {
                // Overwritten by an item that is whole laps younger. The oldest that can still be there is
                // that of the slot after it, one lap before.
                receiver.head += (word.lap - receiver.at.lap - 1) * self.layout.slots() + 1;
                receiver.at = self.layout.next(Position { lap: word.lap - 1, ..receiver.at });
                bits = self.slots[receiver.at.slot as usize].load(Ordering::Acquire);
                continue;
            }
            debug_assert!(word.full, "only the consumer empties a slot, and it moves on then");
            let empty = SlotWord { lap: word.lap, cell: receiver.hand, full: false };
            // Acquire: partner is the Release in `push`, for the item. Release: partner is the Acquire in
            // `push`. We have done with the cell that we give away.
            match self.slots[receiver.at.slot as usize].compare_exchange(
                bits,
                self.layout.pack(empty),
                order("lossy claim", Ordering::AcqRel),
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    receiver.hand = word.cell;
                    receiver.held = true;
                    receiver.at = self.layout.next(receiver.at);
                    receiver.head += 1;
                    // Relaxed: only for the producer's statistics.
                    self.taken.head.store(receiver.head, Ordering::Relaxed);
                    return true;
                }
                Err(now) => bits = now,
            }
        }
    }

    /// Whether the producer has closed. Who then finds nothing to [`pop`](Lossy::pop) has come to the end.
    pub fn is_closed(&self, consumer: &Owner) -> bool {
        self.receiver.check(consumer);
        // Acquire: partner is the Release in `close`.
        self.sent.closed.load(Ordering::Acquire)
    }

    /// Says that no more will be taken out. What is inside is dropped with the ring.
    pub fn leave(&self, consumer: &mut Owner) {
        self.receiver.check(consumer);
        // Release: partner is the Acquire in `is_left`.
        self.taken.left.store(true, Ordering::Release);
    }

    /// Items that made room before they could be taken, as far as the consumer has come.
    pub fn missed(&self, consumer: &Owner) -> u64 {
        let receiver = self.receiver.get(consumer);
        receiver.head - receiver.taken - u64::from(receiver.held)
    }

    /// Items ever popped.
    pub fn taken(&self, consumer: &Owner) -> u64 {
        self.receiver.get(consumer).taken
    }
}
