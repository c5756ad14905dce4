//! The producer's side.

use super::word::SlotWord;
use super::{Lossy, LossyWriter};
use crate::owner::Owner;
use crate::sync::atomic::Ordering;
use crate::sync::order;

impl<T> Lossy<T> {
    /// Puts an item in. Returns the oldest item if the ring was full.
    #[inline]
    pub fn push(&self, producer: &mut Owner, item: T) -> Option<T> {
        self.writer.with(producer, |writer| {
            self.keep_record(writer);
            // SAFETY: the cell is ours and has no item.
            self.cell(writer.cell).with_mut(|cell| unsafe { (*cell).write(item) });
            let word = SlotWord { lap: writer.at.lap, cell: writer.cell, full: true };
            // Release, partner: the Acquire in `claim`: the item is written before the cell can be taken.
            // Acquire, partner: the Release in `claim`: the consumer no longer uses the cell that we get.
            let old = self.slots[writer.at.slot as usize]
                .swap(self.layout.pack(word), order("lossy push", Ordering::AcqRel));
            let old = self.layout.unpack(old);
            writer.cell = old.cell;
            writer.at = self.layout.next(writer.at);
            writer.tail += 1;
            // Release, partner: the Acquire in `poll`. A consumer that sees the count finds the item, or a
            // younger one.
            self.sent.tail.store(writer.tail, Ordering::Release);
            old.full.then(|| {
                writer.dropped += 1;
                // SAFETY: the cell came out of its slot full, so it has an item, and it is ours now.
                unsafe { self.take(old.cell) }
            })
        })
    }

    /// Counts the next item if it sets a record. A full ring cannot set one.
    #[inline(always)]
    fn keep_record(&self, writer: &mut LossyWriter) {
        if u64::from(writer.deepest) < self.layout.slots()
            && writer.tail - writer.head >= u64::from(writer.deepest)
        {
            // Relaxed: only a statistic.
            writer.head = self.taken.head.load(Ordering::Relaxed);
            let inside = (writer.tail + 1 - writer.head).min(self.layout.slots()) as u32;
            writer.deepest = writer.deepest.max(inside);
        }
    }

    /// Declares that no more items will come.
    pub fn close(&self, producer: &mut Owner) {
        self.writer.check(producer);
        // Release, partner: the Acquire in `is_closed`. A consumer that sees this also sees the last count.
        self.sent.closed.store(true, order("lossy close", Ordering::Release));
    }

    /// Whether the consumer has left: it takes no more items out.
    pub fn is_left(&self, producer: &Owner) -> bool {
        self.writer.check(producer);
        // Acquire, partner: the Release in `leave`.
        self.taken.left.load(Ordering::Acquire)
    }

    /// Number of items ever put in.
    pub fn sent(&self, producer: &Owner) -> u64 {
        self.writer.get(producer).tail
    }

    /// Number of items that were overwritten.
    pub fn dropped(&self, producer: &Owner) -> u64 {
        self.writer.get(producer).dropped
    }

    /// Most items that were inside at once, as the producer saw it: it polls the other side before it sets a
    /// record.
    pub fn deepest(&self, producer: &Owner) -> u32 {
        self.writer.get(producer).deepest
    }
}
