//! A bounded ring from one worker to another. See README.md for the protocol.

mod batch;
#[cfg(all(loom, test))]
mod model;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{CachePadded, UnsafeCell, full_fence, order};
use crate::{Full, Owner};
use std::fmt;
use std::mem::MaybeUninit;

/// A bounded first-in-first-out ring from one worker (the producer) to another (the consumer).
///
/// Each side is opened by its own [`Owner`]: there is one token and `&mut Owner` is exclusive, so at any time
/// one thread at most is on either side. What the two sides share are two counters: the producer publishes
/// how many items are in, the consumer how many it took out. Nobody waits inside;
/// [`wait_for_room`](Spsc::wait_for_room) arranges that the producer is told.
///
/// Both sides batch: [`stage`](Spsc::stage) and [`pop`](Spsc::pop) touch no shared counter,
/// [`publish`](Spsc::publish), [`look`](Spsc::look) and [`release`](Spsc::release) touch one.
///
/// Every method panics when it is called with another owner than that of its side.
///
/// ```
/// use onbeat_queue::{Owner, Spsc};
/// let (mut producer, mut consumer) = (Owner::new(), Owner::new());
/// let ring = Spsc::new(&producer, &consumer, 2);
/// assert_eq!(ring.push(&mut producer, 'a'), Ok(0));
/// assert_eq!(ring.stage(&mut producer, 'b'), Ok(1));
/// assert!(ring.wait_for_room(&mut producer)); // Publishes as well: otherwise no room could ever come.
///
/// assert_eq!(ring.look(&mut consumer), 2);
/// assert_eq!(ring.pop(&mut consumer), Some('a'));
/// assert!(ring.release(&mut consumer), "the producer wants to know");
/// assert_eq!(ring.room(&mut producer), 1);
/// ```
pub struct Spsc<T> {
    /// Ids of the two owners.
    producer: u32,
    consumer: u32,
    capacity: u32,
    /// Slots minus one; there is a power of two of them, so that a counter becomes an index by one `and`.
    mask: u32,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    sender: CachePadded<UnsafeCell<Sender>>,
    receiver: CachePadded<UnsafeCell<Receiver>>,
    sent: CachePadded<Sent>,
    taken: CachePadded<Taken>,
}

/// Only the producer touches this. Counters count items since the start; the slot of item `n` is `n & mask`.
#[derive(Clone, Copy)]
struct Sender {
    /// Items ever put in, staged ones included.
    tail: u64,
    /// Items of these that were published.
    published: u64,
    /// [`Taken::head`] as of the last look.
    head: u64,
    /// Most items that were inside when it looked at the other side.
    deepest: u32,
}

/// Only the consumer touches this.
#[derive(Clone, Copy)]
struct Receiver {
    /// Items ever taken out.
    head: u64,
    /// Items of these that were published as room.
    released: u64,
    /// [`Sent::tail`] as of the last look.
    tail: u64,
    /// Most items that were visible after a look.
    deepest: u32,
}

/// Written by the producer, read by the consumer.
struct Sent {
    /// Items ever published.
    tail: AtomicU64,
    /// No more will come.
    closed: AtomicBool,
}

/// Written by the consumer, read by the producer, except as noted.
struct Taken {
    /// Items ever taken out, as published.
    head: AtomicU64,
    /// The value of `head` that leaves the ring full: the producer waits until `head` is above it. [`NOBODY`]
    /// when it does not wait. Set by the producer, cleared by either.
    wanted: AtomicU64,
    /// The consumer takes no more.
    left: AtomicBool,
}

/// No counter is above this.
const NOBODY: u64 = u64::MAX;

// SAFETY: the sender cell is only reached through the producer's `Owner`, the receiver cell through the
// consumer's, writes through `&mut`; a slot belongs to the side that the counters say (README.md). Items
// cross threads, one at a time, hence `T: Send`; an `Owner` is not `Sync`, so two threads cannot look at one item at
// once, hence not `T: Sync`.
unsafe impl<T: Send> Sync for Spsc<T> {}
// SAFETY: as above; a ring owns its items.
unsafe impl<T: Send> Send for Spsc<T> {}

impl<T> Spsc<T> {
    /// A ring for at most `capacity` items from the owner `producer` to the owner `consumer`.
    ///
    /// # Panics
    /// When `capacity` is 0 or above 2^24.
    #[must_use]
    pub fn new(producer: &Owner, consumer: &Owner, capacity: usize) -> Self {
        assert!((1..=1 << 24).contains(&capacity), "a ring holds 1 to 2^24 items, not {capacity}");
        let slots = capacity.next_power_of_two();
        Spsc {
            producer: producer.id(),
            consumer: consumer.id(),
            capacity: capacity as u32,
            mask: slots as u32 - 1,
            slots: (0..slots).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
            sender: CachePadded::new(UnsafeCell::new(Sender { tail: 0, published: 0, head: 0, deepest: 0 })),
            receiver: CachePadded::new(UnsafeCell::new(Receiver {
                head: 0,
                released: 0,
                tail: 0,
                deepest: 0,
            })),
            sent: CachePadded::new(Sent { tail: AtomicU64::new(0), closed: AtomicBool::new(false) }),
            taken: CachePadded::new(Taken {
                head: AtomicU64::new(0),
                wanted: AtomicU64::new(NOBODY),
                left: AtomicBool::new(false),
            }),
        }
    }

    /// Puts an item in, publishes it and all staged ones, and says how many were there before, as far as the
    /// producer knows: never too few.
    ///
    /// # Errors
    /// [`Full`] gives the item back. Nothing is published then.
    #[inline(always)]
    pub fn push(&self, producer: &mut Owner, item: T) -> Result<u32, Full<T>> {
        let before = self.stage(producer, item)?;
        self.publish(producer);
        Ok(before)
    }

    /// Puts an item in, to be visible with the next [`publish`](Spsc::publish), and says how many were there
    /// before, as far as the producer knows: never too few.
    ///
    /// # Errors
    /// [`Full`] gives the item back.
    #[inline(always)]
    pub fn stage(&self, producer: &mut Owner, item: T) -> Result<u32, Full<T>> {
        self.with_sender(producer, |sender| {
            let mut len = (sender.tail - sender.head) as u32;
            // Only now: a look at what the consumer writes costs a cache miss.
            if len >= self.capacity {
                len = self.look_at_head(sender);
                if len >= self.capacity {
                    return Err(Full(item));
                }
            }
            // SAFETY: the slot is the producer's and holds no value: `tail - head < capacity <= slots`, where
            // `head` is what the consumer has given back, and it is not the consumer's again before it is
            // published.
            self.slot(sender.tail).with_mut(|slot| unsafe { (*slot).write(item) });
            sender.tail += 1;
            Ok(len)
        })
    }

    /// Makes all staged items visible.
    #[inline(always)]
    pub fn publish(&self, producer: &mut Owner) {
        self.with_sender(producer, |sender| {
            if sender.published != sender.tail {
                sender.published = sender.tail;
                // Release: the items are written before the consumer's Acquire load in `look` sees the count.
                self.sent.tail.store(sender.tail, order("spsc publish", Ordering::Release));
            }
        });
    }

    /// Items that still fit, exact at this moment.
    #[inline]
    pub fn room(&self, producer: &mut Owner) -> usize {
        self.with_sender(producer, |sender| (self.capacity - self.look_at_head(sender)) as usize)
    }

    /// Items that still fit as of the producer's last look at the other side: never too many.
    #[inline]
    pub fn room_known(&self, producer: &Owner) -> usize {
        let sender = self.sender(producer);
        self.capacity as usize - (sender.tail - sender.head) as usize
    }

    /// Asks to be told when there is room, and publishes all staged items, because otherwise none might ever
    /// come.
    ///
    /// True: the ring is full, and the [`release`](Spsc::release) that makes room will return true, once.
    /// False: there is room now. (A release that made this room may return true all the same: a word too
    /// many, never one too few.)
    ///
    /// A consumer that leaves says so with [`leave`](Spsc::leave) and not here: ask
    /// [`is_left`](Spsc::is_left) afterwards.
    pub fn wait_for_room(&self, producer: &mut Owner) -> bool {
        self.publish(producer);
        self.with_sender(producer, |sender| {
            if self.look_at_head(sender) < self.capacity {
                return false;
            }
            // Relaxed: the fence orders it. (The ring is full, so this does not underflow.)
            self.taken.wanted.store(sender.tail - u64::from(self.capacity), Ordering::Relaxed);
            // Partner: the fence in `release`. Either we see the new head, or the consumer sees what we want.
            full_fence("spsc wait fence");
            if self.look_at_head(sender) >= self.capacity {
                return true;
            }
            // Relaxed: if the consumer has already seen the wish, it says so, and nothing is lost by that.
            self.taken.wanted.store(NOBODY, Ordering::Relaxed);
            false
        })
    }

    /// Publishes all staged items and says that no more will come.
    pub fn close(&self, producer: &mut Owner) {
        self.publish(producer);
        // Release: partner is the Acquire in `is_closed`. Who sees this sees the last published count as
        // well.
        self.sent.closed.store(true, order("spsc close", Ordering::Release));
    }

    /// Whether the consumer has left: what is put in is not taken out any more.
    pub fn is_left(&self, producer: &Owner) -> bool {
        self.check(producer, self.producer);
        // Acquire: partner is the Release in `leave`. Who sees that sees the last head as well.
        self.taken.left.load(Ordering::Acquire)
    }

    /// Items ever put in, staged ones included.
    pub fn sent(&self, producer: &Owner) -> u64 {
        self.sender(producer).tail
    }

    /// Most items that were inside when the producer looked at the other side, which it does when it seems full: exact for a
    /// ring that was full, and otherwise not above the truth. The consumer may have seen
    /// [more](Spsc::most_visible).
    pub fn deepest(&self, producer: &Owner) -> u32 {
        self.sender(producer).deepest
    }

    /// Makes visible what was published, and says how many items are visible.
    #[inline(always)]
    pub fn look(&self, consumer: &mut Owner) -> usize {
        self.with_receiver(consumer, |receiver| {
            // Acquire: partner is the Release in `publish`. The items are there before we see their count.
            receiver.tail = self.sent.tail.load(Ordering::Acquire);
            let visible = (receiver.tail - receiver.head) as u32;
            receiver.deepest = receiver.deepest.max(visible);
            visible as usize
        })
    }

    /// Most items that a [`look`](Spsc::look) found.
    pub fn most_visible(&self, consumer: &Owner) -> u32 {
        self.receiver(consumer).deepest
    }

    /// Visible items, as of the last [`look`](Spsc::look).
    #[inline(always)]
    pub fn len(&self, consumer: &Owner) -> usize {
        let receiver = self.receiver(consumer);
        (receiver.tail - receiver.head) as usize
    }

    /// Takes the oldest visible item out. Its place is room only after the next [`release`](Spsc::release).
    #[inline(always)]
    pub fn pop(&self, consumer: &mut Owner) -> Option<T> {
        self.with_receiver(consumer, |receiver| {
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
    pub fn peek<R>(&self, consumer: &Owner, look: impl FnOnce(&T) -> R) -> Option<R> {
        let receiver = self.receiver(consumer);
        if receiver.head == receiver.tail {
            return None;
        }
        Some(self.slot(receiver.head).with(|slot| {
            // SAFETY: the slot is the consumer's, and while `look` runs the shared `Owner` excludes its
            // writers.
            let slot = unsafe { &*slot };
            // SAFETY: it holds the oldest visible value. Only this thread looks at it (`Owner` is not `Sync`), so
            // `T: Send` is enough.
            look(unsafe { slot.assume_init_ref() })
        }))
    }

    /// Gives the places of all items that were popped back to the producer. True: the producer waits for that
    /// and is to be told (see [`wait_for_room`](Spsc::wait_for_room)). Does nothing when none was popped
    /// since the last time.
    #[inline]
    pub fn release(&self, consumer: &mut Owner) -> bool {
        self.with_receiver(consumer, |receiver| {
            let head = receiver.head;
            if receiver.released == head {
                return false;
            }
            receiver.released = head;
            // Release: partner is the Acquire in `look_at_head`. The items are out before their places are
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

    /// Whether the producer has closed. A [`look`](Spsc::look) after this returned true sees all that was
    /// sent.
    #[inline]
    pub fn is_closed(&self, consumer: &Owner) -> bool {
        self.check(consumer, self.consumer);
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
        self.receiver(consumer).head
    }

    /// Items that fit.
    #[inline(always)]
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Learns what the consumer has given back, and says how many items are inside.
    #[inline(always)]
    fn look_at_head(&self, sender: &mut Sender) -> u32 {
        // Acquire: partner is the Release in `release`. The items are out before their places are used again.
        sender.head = self.taken.head.load(Ordering::Acquire);
        let inside = (sender.tail - sender.head) as u32;
        sender.deepest = sender.deepest.max(inside);
        inside
    }

    /// The slot of the item with this number.
    #[inline(always)]
    fn slot(&self, number: u64) -> &UnsafeCell<MaybeUninit<T>> {
        // SAFETY: `mask` is the number of slots minus one, a power of two minus one, so the index is below
        // that number.
        unsafe { self.slots.get_unchecked((number as u32 & self.mask) as usize) }
    }

    #[inline(always)]
    fn with_sender<R>(&self, producer: &mut Owner, f: impl FnOnce(&mut Sender) -> R) -> R {
        self.check(producer, self.producer);
        // SAFETY: `check` and `&mut Owner` prove that nobody else is on this side (see the type).
        self.sender.with_mut(|sender| f(unsafe { &mut *sender }))
    }

    #[inline(always)]
    fn with_receiver<R>(&self, consumer: &mut Owner, f: impl FnOnce(&mut Receiver) -> R) -> R {
        self.check(consumer, self.consumer);
        // SAFETY: `check` and `&mut Owner` prove that nobody else is on this side (see the type).
        self.receiver.with_mut(|receiver| f(unsafe { &mut *receiver }))
    }

    #[inline(always)]
    fn sender(&self, producer: &Owner) -> Sender {
        self.check(producer, self.producer);
        // SAFETY: a shared `Owner` excludes writers, and the counters are copied out.
        self.sender.with(|sender| unsafe { *sender })
    }

    #[inline(always)]
    fn receiver(&self, consumer: &Owner) -> Receiver {
        self.check(consumer, self.consumer);
        // SAFETY: a shared `Owner` excludes writers, and the counters are copied out.
        self.receiver.with(|receiver| unsafe { *receiver })
    }

    #[inline(always)]
    fn check(&self, owner: &Owner, expected: u32) {
        if owner.id() != expected {
            wrong_owner();
        }
    }
}

#[cold]
#[inline(never)]
pub(crate) fn wrong_owner() -> ! {
    panic!("this side of the ring belongs to another worker")
}

impl<T> Drop for Spsc<T> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nobody else is left.
        let tail = self.sender.with(|sender| unsafe { (*sender).tail });
        // SAFETY: as above.
        let head = self.receiver.with(|receiver| unsafe { (*receiver).head });
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
            .field("producer", &self.producer)
            .field("consumer", &self.consumer)
            .field("capacity", &self.capacity)
            .finish()
    }
}
