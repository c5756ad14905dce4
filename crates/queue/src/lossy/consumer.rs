//! The consumer's side.

use super::word::{SlotPosition, SlotWord};
use super::{Lossy, LossyReader};
use crate::owner::Owner;
use crate::sync::atomic::Ordering;
use crate::sync::order;

impl<T> Lossy<T> {
    /// Polls for items, and returns how many can be taken out now: at most the capacity.
    #[inline]
    pub fn poll(&self, consumer: &mut Owner) -> usize {
        self.reader.with(consumer, |reader| {
            // Acquire, partner: the Release in `push`. Items that were counted can be found.
            reader.tail = self.sent.tail.load(Ordering::Acquire);
            self.visible(reader)
        })
    }

    /// Number of items that could be taken out as of the last [`poll`](Lossy::poll), less those popped since.
    /// Newer items do not count. While it is above 0, [`pop`](Lossy::pop) returns an item.
    #[inline]
    pub fn len(&self, consumer: &Owner) -> usize {
        self.visible(&self.reader.get(consumer))
    }

    #[inline(always)]
    fn visible(&self, reader: &LossyReader) -> usize {
        // The item in the consumer's cell counts although it has left its slot: there can be one more than
        // slots.
        let waiting = reader.tail.saturating_sub(reader.head) + u64::from(reader.is_filled);
        waiting.min(self.layout.slots()) as usize
    }

    /// Takes out the oldest item that is still there, whether a [`poll`](Lossy::poll) has counted it or not.
    #[inline]
    pub fn pop(&self, consumer: &mut Owner) -> Option<T> {
        self.reader.with(consumer, |reader| {
            if !self.claim(reader) {
                return None;
            }
            reader.is_filled = false;
            reader.taken += 1;
            // SAFETY: `claim` gave us a cell with an item, and `is_filled` says from here on that it holds
            // none.
            Some(unsafe { self.take(reader.cell) })
        })
    }

    /// Inspects the oldest item that is still there. From then on it cannot be overwritten: it is out of the
    /// ring, and the next [`pop`](Lossy::pop) returns it.
    pub fn peek<R>(&self, consumer: &mut Owner, inspect: impl FnOnce(&T) -> R) -> Option<R> {
        self.reader.with(consumer, |reader| {
            self.claim(reader).then(|| {
                self.cell(reader.cell).with(|cell| {
                    // SAFETY: the cell is ours, and `&mut Owner` excludes other users of this side.
                    let cell = unsafe { &*cell };
                    // SAFETY: `claim` gave us a cell with an item.
                    inspect(unsafe { cell.assume_init_ref() })
                })
            })
        })
    }

    /// Exchanges the consumer's cell for that of the oldest item, unless it holds an item already. False:
    /// there is none.
    #[inline(always)]
    fn claim(&self, reader: &mut LossyReader) -> bool {
        if reader.is_filled {
            return true;
        }
        // Acquire, here and on failure below, partner: the Release in `push`. A thread that sees an item in a
        // slot sees the earlier slots as they were then, or younger.
        let mut bits = self.slots[reader.at.slot as usize].load(Ordering::Acquire);
        loop {
            let word = self.layout.unpack(bits);
            if word.lap < reader.at.lap {
                return false;
            }
            if word.lap > reader.at.lap {
                // Overwritten by an item that is whole laps younger. The oldest that can still be there is
                // one lap older, in the slot after it.
                reader.head += (word.lap - reader.at.lap - 1) * self.layout.slots() + 1;
                reader.at = self.layout.next(SlotPosition { lap: word.lap - 1, ..reader.at });
                bits = self.slots[reader.at.slot as usize].load(Ordering::Acquire);
                continue;
            }
            debug_assert!(word.full, "only the consumer empties a slot, and it moves on then");
            let empty = SlotWord { lap: word.lap, cell: reader.cell, full: false };
            // Acquire, partner: the Release in `push`, for the item. Release, partner: the Acquire in `push`:
            // we no longer use the cell that we give away.
            match self.slots[reader.at.slot as usize].compare_exchange(
                bits,
                self.layout.pack(empty),
                order("lossy claim", Ordering::AcqRel),
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    reader.cell = word.cell;
                    reader.is_filled = true;
                    reader.at = self.layout.next(reader.at);
                    reader.head += 1;
                    // Relaxed: only for the producer's statistics.
                    self.taken.head.store(reader.head, Ordering::Relaxed);
                    return true;
                }
                Err(now) => bits = now,
            }
        }
    }

    /// Whether the producer has closed. If a [`pop`](Lossy::pop) then finds nothing, the end is reached.
    pub fn is_closed(&self, consumer: &Owner) -> bool {
        self.reader.check(consumer);
        // Acquire, partner: the Release in `close`.
        self.sent.closed.load(Ordering::Acquire)
    }

    /// Declares that no more will be taken out. The remaining items are dropped with the ring.
    pub fn leave(&self, consumer: &mut Owner) {
        self.reader.check(consumer);
        // Release, partner: the Acquire in `is_left`.
        self.taken.left.store(true, Ordering::Release);
    }

    /// Number of items that were overwritten before they could be taken, as far as the consumer has come.
    pub fn missed(&self, consumer: &Owner) -> u64 {
        let reader = self.reader.get(consumer);
        reader.head - reader.taken - u64::from(reader.is_filled)
    }

    /// Number of items ever popped.
    pub fn taken(&self, consumer: &Owner) -> u64 {
        self.reader.get(consumer).taken
    }
}
