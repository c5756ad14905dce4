//! A ring from one worker to another that never refuses: the oldest item makes room. See README.md for the
//! protocol.

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
use word::{Layout, Position, SlotWord};

/// A first-in-first-out ring from one worker (the producer) to another (the consumer) in which the oldest
/// item makes room for a new one when it is full. With a capacity of 1 it holds the latest item.
///
/// Each side is opened by its own [`Owner`], as with [`Spsc`](crate::Spsc). A push never waits: one exchange,
/// however the consumer is doing. An item that had to go comes back from [`push`](Lossy::push), so it is
/// dropped where it was made. The consumer tries again when the producer was faster, and each try that fails
/// is an item that went.
///
/// Every method panics when it is called with another owner than that of its side.
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
    /// How the words in `slots` are put together.
    layout: Layout,
    /// One [`SlotWord`] per slot.
    slots: Box<[AtomicU64]>,
    /// Two more than slots: each side has one in its hand.
    cells: Box<[UnsafeCell<MaybeUninit<T>>]>,
    sender: CachePadded<Side<Writer>>,
    receiver: CachePadded<Side<Reader>>,
    sent: CachePadded<WriterShared>,
    taken: CachePadded<ReaderShared>,
}

/// Only the producer touches this.
#[derive(Clone, Copy)]
struct Writer {
    /// Where the next item goes.
    at: Position,
    /// The cell in the producer's hand. It holds no item.
    hand: u32,
    /// Items ever put in.
    tail: u64,
    /// Items of these that came back because they had to make room.
    dropped: u64,
    /// [`ReaderShared::head`] as of the last look.
    head: u64,
    /// Most items that were ever inside at once.
    deepest: u32,
}

/// Only the consumer touches this.
#[derive(Clone, Copy)]
struct Reader {
    /// Where the oldest item is that can still be there.
    at: Position,
    /// The cell in the consumer's hand.
    hand: u32,
    /// Whether that cell holds an item: one that was peeked at and not yet popped.
    held: bool,
    /// Items that were put in before `at`.
    head: u64,
    /// Items ever popped.
    taken: u64,
    /// [`WriterShared::tail`] as of the last look.
    tail: u64,
}

/// Written by the producer, read by the consumer.
struct WriterShared {
    /// Items ever put in.
    tail: AtomicU64,
    /// No more will come.
    closed: AtomicBool,
}

/// Written by the consumer, read by the producer.
struct ReaderShared {
    /// [`Reader::head`], for the producer's statistics.
    head: AtomicU64,
    /// The consumer takes no more.
    left: AtomicBool,
}

// SAFETY: the sender is only reached through the producer's `Owner`, the receiver through the
// consumer's, writes through `&mut`; an item's cell is only touched by the side in whose hand it is
// (README.md). Items cross threads, hence `T: Send`; only one thread at a time looks at an item, hence not
// `T: Sync`.
unsafe impl<T: Send> Sync for Lossy<T> {}
// SAFETY: as above; a ring owns its items.
unsafe impl<T: Send> Send for Lossy<T> {}

impl<T> Lossy<T> {
    /// A ring for at most `capacity` items from the owner `producer` to the owner `consumer`.
    ///
    /// # Panics
    /// When `capacity` is 0 or above 2^24.
    #[must_use]
    pub fn new(producer: &Owner, consumer: &Owner, capacity: usize) -> Self {
        assert!((1..=1 << 24).contains(&capacity), "a ring holds 1 to 2^24 items, not {capacity}");
        let slots = capacity as u32;
        let layout = Layout::new(slots);
        let at = Position { lap: 1, slot: 0 };
        let sender = Writer { at, hand: slots, tail: 0, dropped: 0, head: 0, deepest: 0 };
        let receiver = Reader { at, hand: slots + 1, held: false, head: 0, taken: 0, tail: 0 };
        Lossy {
            layout,
            slots: (0..slots)
                .map(|cell| AtomicU64::new(layout.pack(SlotWord { lap: 0, cell, full: false })))
                .collect(),
            cells: (0..slots + 2).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
            sender: CachePadded::new(Side::new(producer, sender)),
            receiver: CachePadded::new(Side::new(consumer, receiver)),
            sent: CachePadded::new(WriterShared { tail: AtomicU64::new(0), closed: AtomicBool::new(false) }),
            taken: CachePadded::new(ReaderShared { head: AtomicU64::new(0), left: AtomicBool::new(false) }),
        }
    }

    /// Items that fit.
    pub fn capacity(&self) -> usize {
        self.layout.slots() as usize
    }

    /// Reads the item out of a cell.
    ///
    /// # Safety
    /// The cell is in the caller's hand and holds an item, which must not be read again.
    #[inline(always)]
    unsafe fn take(&self, cell: u32) -> T {
        self.cell(cell).with_mut(|cell| {
            // SAFETY: the cell is in the caller's hand.
            let cell = unsafe { &*cell };
            // SAFETY: the caller says that it holds an item and that it is read once.
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
        let receiver = self.receiver.last();
        if receiver.held {
            // SAFETY: `held` says that the cell in the consumer's hand holds an item.
            drop(unsafe { self.take(receiver.hand) });
        }
        for slot in &self.slots {
            // Relaxed: `&mut self`: nobody else is left.
            let word = self.layout.unpack(slot.load(Ordering::Relaxed));
            if word.full {
                // SAFETY: the slot says that its cell holds an item, and nobody is left to look there again.
                drop(unsafe { self.take(word.cell) });
            }
        }
    }
}

impl<T> fmt::Debug for Lossy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lossy")
            .field("producer", &self.sender.owner())
            .field("consumer", &self.receiver.owner())
            .field("capacity", &self.layout.slots())
            .finish()
    }
}
