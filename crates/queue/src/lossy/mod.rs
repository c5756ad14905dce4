//! A ring from one worker to another that never refuses: the oldest item makes room. See `README.md` beside
//! this file for the protocol.

mod consumer;
#[cfg(all(loom, test))]
mod model;
mod producer;
mod word;

use crate::owner::Owner;
use crate::side::Side;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{CachePadded, UnsafeCell};
use std::fmt;
use std::mem::MaybeUninit;
use word::{SlotPosition, SlotWord, WordLayout};

/// A first-in-first-out ring from one worker (the producer) to another (the consumer). When it is full, the
/// oldest item makes room for a new one. With a capacity of 1 it holds the latest item.
///
/// Each side is opened by its own [`Owner`], as with [`Spsc`](crate::Spsc). A push never waits: it is one
/// exchange, whatever the consumer does. [`push`](Lossy::push) returns the overwritten item, so it is dropped
/// where it was made. The consumer tries again when the producer was faster; each failed try means an
/// overwritten item.
///
/// Every method panics if it is called with an owner other than that of its side.
///
/// ```
/// use onbeat_queue::{Lossy, Owner};
/// let (mut producer, mut consumer) = (Owner::new(), Owner::new());
/// let ring = Lossy::new(&producer, &consumer, 2);
/// assert_eq!(ring.push(&mut producer, 'a'), None);
/// assert_eq!(ring.push(&mut producer, 'b'), None);
/// assert_eq!(ring.push(&mut producer, 'c'), Some('a'));
/// assert_eq!(ring.poll(&mut consumer), 2);
/// assert_eq!(ring.pop(&mut consumer), Some('b'));
/// assert_eq!((ring.sent(&producer), ring.dropped(&producer), ring.taken(&consumer)), (3, 1, 1));
/// ```
pub struct Lossy<T> {
    /// Layout of the words in `slots`.
    layout: WordLayout,
    /// One [`SlotWord`] per slot.
    slots: Box<[AtomicU64]>,
    /// Two more than slots: each side holds one.
    cells: Box<[UnsafeCell<MaybeUninit<T>>]>,
    writer: CachePadded<Side<LossyWriter>>,
    reader: CachePadded<Side<LossyReader>>,
    sent: CachePadded<WriterShared>,
    taken: CachePadded<ReaderShared>,
}

/// Private to the producer.
#[derive(Clone, Copy)]
struct LossyWriter {
    /// Position of the next item.
    at: SlotPosition,
    /// The cell that the producer holds, without an item.
    cell: u32,
    /// Items ever put in.
    tail: u64,
    /// Items that were overwritten.
    dropped: u64,
    /// [`ReaderShared::head`] as of the last poll.
    head: u64,
    /// Most items that were inside at once.
    deepest: u32,
}

/// Private to the consumer.
#[derive(Clone, Copy)]
struct LossyReader {
    /// Position of the oldest item that can still be there.
    at: SlotPosition,
    /// The cell that the consumer holds.
    cell: u32,
    /// Whether that cell has an item, which was peeked at and not yet popped.
    is_filled: bool,
    /// Items that were put in before `at`.
    head: u64,
    /// Items ever popped.
    taken: u64,
    /// [`WriterShared::tail`] as of the last poll.
    tail: u64,
}

/// Written by the producer, read by the consumer.
struct WriterShared {
    /// Items ever put in.
    tail: AtomicU64,
    /// Whether no more items will come.
    closed: AtomicBool,
}

/// Written by the consumer, read by the producer.
struct ReaderShared {
    /// [`LossyReader::head`], for the producer's statistics.
    head: AtomicU64,
    /// Whether the consumer takes no more.
    left: AtomicBool,
}

// SAFETY: only the producer's `Owner` opens the writer, only the consumer's the reader, and writes take
// `&mut`. Only the side that holds an item's cell touches it (README.md). Items cross threads, hence `T:
// Send`; only one thread at a time inspects an item, hence not `T: Sync`.
unsafe impl<T: Send> Sync for Lossy<T> {}
// SAFETY: as above; a ring owns its items.
unsafe impl<T: Send> Send for Lossy<T> {}

impl<T> Lossy<T> {
    /// Makes a ring for at most `capacity` items from the owner `producer` to the owner `consumer`.
    ///
    /// # Panics
    /// If `capacity` is 0 or above 2^24.
    #[must_use]
    pub fn new(producer: &Owner, consumer: &Owner, capacity: usize) -> Self {
        assert!((1..=1 << 24).contains(&capacity), "a ring holds 1 to 2^24 items, not {capacity}");
        let slots = capacity as u32;
        let layout = WordLayout::new(slots);
        let at = SlotPosition { lap: 1, slot: 0 };
        let writer = LossyWriter { at, cell: slots, tail: 0, dropped: 0, head: 0, deepest: 0 };
        let reader = LossyReader { at, cell: slots + 1, is_filled: false, head: 0, taken: 0, tail: 0 };
        Lossy {
            layout,
            slots: (0..slots)
                .map(|cell| AtomicU64::new(layout.pack(SlotWord { lap: 0, cell, full: false })))
                .collect(),
            cells: (0..slots + 2).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
            writer: CachePadded::new(Side::new(producer, writer)),
            reader: CachePadded::new(Side::new(consumer, reader)),
            sent: CachePadded::new(WriterShared { tail: AtomicU64::new(0), closed: AtomicBool::new(false) }),
            taken: CachePadded::new(ReaderShared { head: AtomicU64::new(0), left: AtomicBool::new(false) }),
        }
    }

    /// Number of items that fit.
    pub fn capacity(&self) -> usize {
        self.layout.slots() as usize
    }

    /// Reads the item out of a cell.
    ///
    /// # Safety
    /// The caller holds the cell, which has an item that must not be read again.
    #[inline(always)]
    unsafe fn take(&self, cell: u32) -> T {
        self.cell(cell).with_mut(|cell| {
            // SAFETY: the caller holds the cell.
            let cell = unsafe { &*cell };
            // SAFETY: the caller promises an item that is read once.
            unsafe { cell.assume_init_read() }
        })
    }

    #[inline(always)]
    fn cell(&self, cell: u32) -> &UnsafeCell<MaybeUninit<T>> {
        &self.cells[cell as usize]
    }
}

impl<T> Drop for Lossy<T> {
    fn drop(&mut self) {
        let reader = self.reader.last();
        if reader.is_filled {
            // SAFETY: `is_filled` says that the consumer's cell has an item.
            drop(unsafe { self.take(reader.cell) });
        }
        for slot in &self.slots {
            // Relaxed: `&mut self`: nobody else is left.
            let word = self.layout.unpack(slot.load(Ordering::Relaxed));
            if word.full {
                // SAFETY: the slot says that its cell has an item, and no thread is left to read it again.
                drop(unsafe { self.take(word.cell) });
            }
        }
    }
}

impl<T> fmt::Debug for Lossy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lossy")
            .field("producer", &self.writer.owner())
            .field("consumer", &self.reader.owner())
            .field("capacity", &self.layout.slots())
            .finish()
    }
}
