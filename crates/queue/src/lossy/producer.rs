//! The side that puts items in.

use super::word::SlotWord;
use super::{Lossy, Writer};
use crate::owner::Owner;
use crate::sync::atomic::Ordering;
use crate::sync::order;

impl<T> Lossy<T> {
    /// Puts an item in. When the ring was full, the oldest item comes back.
    #[inline]
    pub fn push(&self, producer: &mut Owner, item: T) -> Option<T> {
        self.sender.with(producer, |sender| {
            self.keep_record(sender);
            // SAFETY: the cell is in our hand and holds no item.
            self.cell(sender.hand).with_mut(|cell| unsafe { (*cell).write(item) });
            let word = SlotWord { lap: sender.at.lap, cell: sender.hand, full: true };
            // Release: partner is the Acquire in `claim`. The item is written before the cell can be taken.
            // Acquire: partner is the Release in `claim`. The consumer has done with the cell that we get.
            let old = self.slots[sender.at.slot as usize]
                .swap(self.layout.pack(word), order("lossy push", Ordering::AcqRel));
            let old = self.layout.unpack(old);
            sender.hand = old.cell;
            sender.at = self.layout.next(sender.at);
            sender.tail += 1;
            // Release: partner is the Acquire in `poll`. Who sees the count finds the item, or a younger one.
            self.sent.tail.store(sender.tail, Ordering::Release);
            old.full.then(|| {
                sender.dropped += 1;
                // SAFETY: the cell came out of its slot full, so it holds an item, and it is in our hand now.
                unsafe { self.take(old.cell) }
            })
        })
    }

    /// Counts the item to come, when that is a new record. A full ring can have no more.
    #[inline(always)]
    fn keep_record(&self, sender: &mut Writer) {
        if u64::from(sender.deepest) < self.layout.slots()
            && sender.tail - sender.head >= u64::from(sender.deepest)
        {
            // Relaxed: only a statistic.
            sender.head = self.taken.head.load(Ordering::Relaxed);
            let inside = (sender.tail + 1 - sender.head).min(self.layout.slots()) as u32;
            sender.deepest = sender.deepest.max(inside);
        }
    }

    /// Says that no more will come.
    pub fn close(&self, producer: &mut Owner) {
        self.sender.check(producer);
        // Release: partner is the Acquire in `is_closed`. Who sees this sees the last count as well.
        self.sent.closed.store(true, order("lossy close", Ordering::Release));
    }

    /// Whether the consumer has left: what is put in is not taken out any more.
    pub fn is_left(&self, producer: &Owner) -> bool {
        self.sender.check(producer);
        // Acquire: partner is the Release in `leave`.
        self.taken.left.load(Ordering::Acquire)
    }

    /// Items ever put in.
    pub fn sent(&self, producer: &Owner) -> u64 {
        self.sender.get(producer).tail
    }

    /// Items that had to make room for others.
    pub fn dropped(&self, producer: &Owner) -> u64 {
        self.sender.get(producer).dropped
    }

    /// Most items that were ever inside at once, as the producer saw it: it looks at the other side before it
    /// sets a new record.
    pub fn deepest(&self, producer: &Owner) -> u32 {
        self.sender.get(producer).deepest
    }
}
