//! A bounded ring from one worker to another. See `README.md` beside this file for the protocol.

mod batch;
mod consumer;
#[cfg(all(loom, test))]
mod model;
mod producer;

use crate::owner::Owner;
use crate::side::Side;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::sync::{CachePadded, UnsafeCell};
use std::fmt;
use std::mem::MaybeUninit;

/// A bounded first-in-first-out ring from one worker (the producer) to another (the consumer).
///
/// Each side is opened by its own [`Owner`]. The token is unique and `&mut Owner` is exclusive, so at most
/// one thread is on either side. The sides share two counters: the producer publishes how many items are in,
/// the consumer how many it took out. No call waits; [`wait_for_room`](Spsc::wait_for_room) arranges that the
/// producer is notified, [`wait_for_item`](Spsc::wait_for_item) that the consumer is.
///
/// Both sides batch: [`stage`](Spsc::stage) and [`pop`](Spsc::pop) touch no shared counter;
/// [`publish`](Spsc::publish), [`poll`](Spsc::poll) and [`release`](Spsc::release) touch one.
///
/// Every method panics if it is called with an owner other than that of its side.
///
/// ```
/// use onbeat_queue::{Owner, Spsc};
/// let (mut producer, mut consumer) = (Owner::new(), Owner::new());
/// let ring = Spsc::new(&producer, &consumer, 2);
/// assert_eq!(ring.push(&mut producer, 'a'), Ok(0));
/// assert_eq!(ring.stage(&mut producer, 'b'), Ok(1));
/// assert!(ring.wait_for_room(&mut producer, 1)); // Publishes as well: otherwise no room could ever come.
///
/// assert_eq!(ring.poll(&mut consumer), 2);
/// assert_eq!(ring.pop(&mut consumer), Some('a'));
/// assert!(ring.release(&mut consumer), "the producer wants to know");
/// assert_eq!(ring.room(&mut producer), 1);
/// ```
pub struct Spsc<T> {
    capacity: u32,
    /// Slots minus one. Their number is a power of two, so one `and` turns a counter into an index.
    mask: u32,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    sender: CachePadded<Side<Sender>>,
    receiver: CachePadded<Side<Receiver>>,
    sent: CachePadded<SenderShared>,
    taken: CachePadded<ReceiverShared>,
    /// Notifications that the consumer wants: one of [`notify`]. On a line of its own, because the producer
    /// reads it after each item: the consumer writes it when it begins to sleep, but not with each item that
    /// it takes out.
    notify: CachePadded<AtomicU32>,
}

/// Notifications that the consumer wants.
mod notify {
    /// None: it polls.
    pub const NOTHING: u32 = 0;
    /// One, for the next item; then none.
    pub const NEXT: u32 = 1;
    /// One for each item.
    pub const EACH: u32 = 2;
}

/// Private to the producer. Counters count items since the start; the slot of item `n` is `n & mask`.
#[derive(Clone, Copy)]
struct Sender {
    /// Items ever put in, including staged ones.
    tail: u64,
    /// Items ever published.
    published: u64,
    /// [`ReceiverShared::head`] as of the last poll.
    head: u64,
    /// Most items that were inside at a poll of the other side.
    deepest: u32,
}

/// Private to the consumer.
#[derive(Clone, Copy)]
struct Receiver {
    /// Items ever taken out.
    head: u64,
    /// Items taken out whose places were released.
    released: u64,
    /// [`SenderShared::tail`] as of the last poll.
    tail: u64,
    /// Most items that were visible after a poll.
    deepest: u32,
}

/// Written by the producer, read by the consumer.
struct SenderShared {
    /// Items ever published.
    tail: AtomicU64,
    /// Whether no more items will come.
    closed: AtomicBool,
}

/// Written by the consumer, read by the producer, except as noted.
struct ReceiverShared {
    /// Items taken out whose places were released.
    head: AtomicU64,
    /// The value of `head` that leaves the ring full: the producer waits until `head` is above it. [`NOBODY`]
    /// while it does not wait. Set by the producer, cleared by either side.
    wanted: AtomicU64,
    /// Whether the consumer takes no more.
    left: AtomicBool,
}

/// Above every counter.
const NOBODY: u64 = u64::MAX;

// SAFETY: only the producer's `Owner` opens the sender, only the consumer's the receiver, and writes take
// `&mut`. A slot belongs to the side that the counters name (README.md). Items cross threads, one at a time,
// hence `T: Send`. An `Owner` is not `Sync`, so two threads never inspect one item at once, hence not `T:
// Sync`.
unsafe impl<T: Send> Sync for Spsc<T> {}
// SAFETY: as above; a ring owns its items.
unsafe impl<T: Send> Send for Spsc<T> {}

impl<T> Spsc<T> {
    /// Makes a ring for at most `capacity` items from the owner `producer` to the owner `consumer`.
    ///
    /// # Panics
    /// If `capacity` is 0 or above 2^24.
    #[must_use]
    pub fn new(producer: &Owner, consumer: &Owner, capacity: usize) -> Self {
        assert!((1..=1 << 24).contains(&capacity), "a ring holds 1 to 2^24 items, not {capacity}");
        let slots = capacity.next_power_of_two();
        let sender = Sender { tail: 0, published: 0, head: 0, deepest: 0 };
        let receiver = Receiver { head: 0, released: 0, tail: 0, deepest: 0 };
        Spsc {
            capacity: capacity as u32,
            mask: slots as u32 - 1,
            slots: (0..slots).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
            sender: CachePadded::new(Side::new(producer, sender)),
            receiver: CachePadded::new(Side::new(consumer, receiver)),
            sent: CachePadded::new(SenderShared { tail: AtomicU64::new(0), closed: AtomicBool::new(false) }),
            taken: CachePadded::new(ReceiverShared {
                head: AtomicU64::new(0),
                wanted: AtomicU64::new(NOBODY),
                left: AtomicBool::new(false),
            }),
            notify: CachePadded::new(AtomicU32::new(notify::EACH)),
        }
    }

    /// Number of items that fit.
    #[inline(always)]
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Polls the consumer's counter, and returns the number of items inside.
    #[inline(always)]
    fn refresh_head(&self, sender: &mut Sender) -> u32 {
        // Acquire, partner: the Release in `release`. The items are out before their slots are used again.
        sender.head = self.taken.head.load(Ordering::Acquire);
        let inside = (sender.tail - sender.head) as u32;
        sender.deepest = sender.deepest.max(inside);
        inside
    }

    /// Returns the slot of the item with this number.
    #[inline(always)]
    fn slot(&self, number: u64) -> &UnsafeCell<MaybeUninit<T>> {
        // SAFETY: `mask` is the number of slots minus one, a power of two minus one, so the index is below
        // that number.
        unsafe { self.slots.get_unchecked((number as u32 & self.mask) as usize) }
    }
}

impl<T> Drop for Spsc<T> {
    fn drop(&mut self) {
        let (tail, head) = (self.sender.last().tail, self.receiver.last().head);
        for item in head..tail {
            self.slot(item).with_mut(|slot| {
                // SAFETY: `&mut self`: nobody else is left.
                let slot = unsafe { &mut *slot };
                // SAFETY: slots `head..tail` hold values, and nobody reads them after this.
                unsafe { slot.assume_init_drop() }
            });
        }
    }
}

impl<T> fmt::Debug for Spsc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spsc")
            .field("producer", &self.sender.owner())
            .field("consumer", &self.receiver.owner())
            .field("capacity", &self.capacity)
            .finish()
    }
}
