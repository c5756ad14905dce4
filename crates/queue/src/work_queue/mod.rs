//! The work queue without its thread: items of several kinds that any thread schedules and one worker runs.
//! See `README.md` beside this file for ownership of items, flush, scope and close.

mod chain;
mod flush;
mod item;
#[cfg(all(loom, test))]
mod model;
mod owned;
mod scope;
mod shared;
mod turn;

pub use flush::OnWorker;
pub use item::Item;
pub use owned::Owned;
pub use scope::Scope;
pub use shared::Shared;
pub use turn::Turn;

use crate::list::{Link, LinkBatch, Sleeper, WorkList};
use crate::owner::Owner;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::thread_number;
use chain::LinkChain;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use turn::{DrainPass, ItemNode, offer};

/// Items that any thread schedules and one worker runs, each with its own callback.
///
/// - [`schedule`](QueueCore::schedule) neither allocates, blocks nor waits. True: this call queued the item,
///   and it runs once for it. False: the item is already pending, on this queue or another one, and the
///   coming run sees everything that the caller wrote before; or this queue is closed.
/// - Pending ends just before the callback, so an item can be scheduled again while it runs, also by its own
///   callback.
/// - Items scheduled by one thread run in that order. With one slot there is one order for all threads.
/// - The worker sleeps through [`sleep`](QueueCore::sleep). The first push after that wakes it, and only that
///   push pays for it.
///
/// An item cannot go away while it is pending. There are three kinds: an [`Item`] outlives the queue or a
/// [scope](QueueCore::scope), the queue shares a [`Shared`] with the caller, and it owns an [`Owned`]. The
/// worker's side takes the [`Owner`] token that the queue was made with.
///
/// ```
/// use onbeat_queue::{QueueCore, Item, Owner, Sleeper};
/// use std::cell::RefCell;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// # struct Nobody;
/// # impl Sleeper for Nobody { fn wake(&self) {} }
/// static RUNS: AtomicU32 = AtomicU32::new(0);
/// static THREE: Item<fn(&onbeat_queue::Turn)> = Item::new(|turn| {
///     if RUNS.fetch_add(1, Ordering::Relaxed) < 2 {
///         assert!(turn.again());                  // not pending any more
///     }
/// });
///
/// let mut owner = Owner::new();
/// let queue = QueueCore::new(&owner, 1, Nobody);
/// assert!(queue.schedule(&THREE));
/// assert!(!queue.schedule(&THREE));              // pending already
/// while !queue.is_empty() {
///     queue.drain(&mut owner, &mut |_| ());
/// }
/// assert_eq!(RUNS.load(Ordering::Relaxed), 3);
/// ```
pub struct QueueCore<S: Sleeper> {
    list: WorkList<S>,
    /// Slots minus one; their number is a power of two.
    mask: usize,
    /// Id of the owner that drains it.
    owner: u32,
    /// Whether the worker is between `sleep` and `wake_up`. Only the owner writes it.
    asleep: AtomicBool,
    /// Number of the thread that runs items now, or 0.
    runner: AtomicU32,
    /// Whether a thread has asked the worker to close the queue.
    close_asked: AtomicBool,
    /// Whether the queue was closed, and everything has run.
    closed: AtomicBool,
}

/// A reference that can be scheduled: to an [`Item`] that lives for ever, or to a [`Shared`].
pub trait Ready: sealed::Ready {}

pub(crate) mod sealed {
    use super::turn::ItemNode;
    use std::ptr::NonNull;

    /// # Safety
    /// The result of `node` is valid and does not move from `prepare` until it has run or was given back. Any
    /// thread may use and run it.
    pub unsafe trait Ready {
        /// Returns the node to put on the list.
        fn node(&self) -> NonNull<ItemNode>;
        /// Called when pending has begun, before another thread can see the item.
        fn prepare(&self);
    }
}

impl<S: Sleeper> QueueCore<S> {
    /// Makes an open queue, drained by `owner`. `slots` is rounded up to a power of two; `sleeper` wakes the
    /// worker. With several slots threads keep off each other's cache lines; with one there is one order for
    /// all.
    ///
    /// # Panics
    /// If `slots` is 0.
    #[must_use]
    pub fn new(owner: &Owner, slots: usize, sleeper: S) -> Self {
        assert!(slots > 0, "a queue needs at least one slot");
        let slots = slots.next_power_of_two();
        QueueCore {
            list: WorkList::new(slots, sleeper),
            mask: slots - 1,
            owner: owner.id(),
            asleep: AtomicBool::new(false),
            runner: AtomicU32::new(0),
            close_asked: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// Schedules an item from any thread, and wakes the worker if it sleeps. False if the item was already
    /// pending, on any queue, or if this queue is closed.
    ///
    /// The coming run sees everything that the caller did before, also if the item is already pending.
    ///
    /// If one thread schedules an item on a queue that is just closing, and another thread schedules the same
    /// item on another queue, both can get false. This cannot happen to an item that is used with one queue
    /// at a time.
    #[inline]
    #[expect(clippy::needless_pass_by_value, reason = "it is a reference")]
    pub fn schedule(&self, item: impl Ready) -> bool {
        let node = item.node();
        // SAFETY: `Ready` promises that the node stays valid, does not move, and is fit for any thread.
        unsafe { offer(&self.list, self.slot(), node, || item.prepare()) }
    }

    /// Schedules several items in order, with one access to the list. Returns how many were queued; items
    /// that were already pending are left out.
    pub fn schedule_many<R: Ready>(&self, items: impl IntoIterator<Item = R>) -> usize {
        self.schedule_chain(items, sealed::Ready::node, sealed::Ready::prepare)
    }

    /// Schedules the items' nodes. They are valid, stay until they have run, and may run on any thread:
    /// `Ready` promises that, or a scope ensures it.
    fn schedule_chain<R>(
        &self,
        items: impl IntoIterator<Item = R>,
        node: impl Fn(&R) -> NonNull<ItemNode>,
        prepare: impl Fn(&R),
    ) -> usize {
        let mut chain = LinkChain { list: &self.list, slot: self.slot(), ends: None, count: 0 };
        if self.list.is_closed(chain.slot) {
            return 0;
        }
        for item in items {
            let link = node(&item).cast::<Link>();
            // SAFETY: valid, as promised.
            if unsafe { link.as_ref() }.begin_pending() {
                prepare(&item);
                chain.add(link);
            }
        }
        chain.push()
    }

    /// Schedules an item and gives it away: its run gets it, and can keep it, schedule it again or drop it.
    ///
    /// # Errors
    /// The item, if this queue is closed.
    #[inline]
    pub fn schedule_owned<T: Send + 'static>(&self, item: Box<Owned<T>>) -> Result<(), Box<Owned<T>>> {
        let link = item.into_link();
        // SAFETY: the link came from a box just now, so it is valid and ours alone; `T` may be sent to the
        // worker.
        if unsafe { self.list.push(self.slot(), link, link) } {
            return Ok(());
        }
        // SAFETY: it was not pushed, so it is still ours.
        Err(unsafe { Owned::from_link(link) })
    }

    /// As [`schedule_owned`](Self::schedule_owned) for several items in order, with one access to the list.
    ///
    /// # Errors
    /// The items, in order, if this queue is closed.
    pub fn schedule_owned_many<T: Send + 'static>(
        &self,
        items: impl IntoIterator<Item = Box<Owned<T>>>,
    ) -> Result<usize, Vec<Box<Owned<T>>>> {
        let mut chain = LinkChain { list: &self.list, slot: self.slot(), ends: None, count: 0 };
        for item in items {
            chain.add(item.into_link());
        }
        let count = chain.count;
        if count == 0 || chain.try_push() {
            return Ok(count);
        }
        let mut refused = Vec::with_capacity(count);
        while let Some(link) = chain.pop() {
            // SAFETY: it was not pushed, so it is still ours, and all links are of this type.
            refused.push(unsafe { Owned::from_link(link) });
        }
        refused.reverse();
        Err(refused)
    }

    /// Whether no item is queued. A hint, and cheap: a few loads.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Runs all queued items, slot by slot, in each slot the oldest first. Returns how many items ran. Items
    /// that are scheduled meanwhile to slots already drained wait for the next call.
    ///
    /// If a callback panics, `panicked` gets the payload, and the next item runs.
    ///
    /// # Panics
    /// If `owner` is not the one of this queue.
    pub fn drain(&self, owner: &mut Owner, panicked: &mut dyn FnMut(Box<dyn Any + Send>)) -> usize {
        self.check(owner);
        self.pass(|slot| self.list.take(slot), panicked)
    }

    /// Runs all queued items, as [`drain`](Self::drain), and closes the queue: `schedule` returns false from
    /// here on, also to callbacks. When it returns, each `true` has had its run. Does nothing on a closed
    /// queue.
    ///
    /// # Panics
    /// If `owner` is not the one of this queue.
    pub fn close(&self, owner: &mut Owner, panicked: &mut dyn FnMut(Box<dyn Any + Send>)) -> usize {
        if self.is_closed() {
            return 0;
        }
        self.wake_up(owner);
        let count = self.pass(|slot| self.list.close(slot), panicked);
        // Relaxed: the next store publishes it.
        self.close_asked.store(false, Ordering::Relaxed);
        // Release, partner: the Acquire in `is_closed`, for the effects of all runs.
        self.closed.store(true, Ordering::Release);
        count
    }

    /// Accepts items again, after [`close`](Self::close). Does nothing on an open queue.
    ///
    /// # Panics
    /// If `owner` is not the one of this queue.
    pub fn open(&self, owner: &mut Owner) {
        self.check(owner);
        if self.is_closed() {
            // Relaxed, and before the heads: a thread that finds a head closed by the next `close` also sees
            // this store, by the Release of that close and a fence (see `flush.rs`).
            self.closed.store(false, Ordering::Relaxed);
            // Relaxed: requests to the close before are over.
            self.close_asked.store(false, Ordering::Relaxed);
            self.list.open();
        }
    }

    /// Whether the queue was closed, and every queued item has run. A hint to all threads but the worker.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire, partner: the Release in `close`, for the effects of the runs.
        self.closed.load(Ordering::Acquire)
    }

    /// Wakes the worker to find [`is_close_asked`](Self::is_close_asked). Any thread.
    pub fn ask_to_close(&self) {
        // Release, partner: the Acquire in `is_close_asked`. The wake-up makes the worker check it.
        self.close_asked.store(true, Ordering::Release);
        flush::prod(self);
    }

    /// Whether a thread has asked the worker to close the queue.
    #[must_use]
    pub fn is_close_asked(&self) -> bool {
        // Acquire, partner: the Release in `ask_to_close`.
        self.close_asked.load(Ordering::Acquire)
    }

    /// Whether the calling thread is in a callback of this queue.
    #[must_use]
    pub fn is_running_here(&self) -> bool {
        // Relaxed: only a thread that stored its own number finds it here.
        self.runner.load(Ordering::Relaxed) == thread_number()
    }

    /// Announces that the worker goes to sleep. After true the next push wakes it: [`Sleeper::wake`] is
    /// called, and [`is_woken`](Self::is_woken) turns true. [`wake_up`](Self::wake_up) ends the sleep. False:
    /// an item is queued.
    ///
    /// # Panics
    /// If `owner` is not the one of this queue.
    #[must_use]
    pub fn sleep(&self, owner: &mut Owner) -> bool {
        self.check(owner);
        // Relaxed: only the owner writes it.
        let asleep = self.asleep.load(Ordering::Relaxed) || self.list.sleep().is_ok();
        self.asleep.store(asleep, Ordering::Relaxed);
        asleep
    }

    /// Whether the worker is asleep and a push has come since: a few loads, to spin on.
    ///
    /// # Panics
    /// If `owner` is not the one of this queue.
    #[inline]
    pub fn is_woken(&self, owner: &Owner) -> bool {
        self.check(owner);
        // Relaxed: only the owner writes it.
        self.asleep.load(Ordering::Relaxed) && self.list.is_woken()
    }

    /// Ends the sleep, woken or not. Queued items wait for [`drain`](Self::drain).
    ///
    /// # Panics
    /// If `owner` is not the one of this queue.
    pub fn wake_up(&self, owner: &mut Owner) {
        self.check(owner);
        // Relaxed: only the owner writes it.
        if self.asleep.load(Ordering::Relaxed) {
            self.asleep.store(false, Ordering::Relaxed);
            self.list.wake_up();
        }
    }

    /// Returns the sleeper, which wakes the worker.
    pub fn sleeper(&self) -> &S {
        self.list.sleeper()
    }

    /// Returns the slot of the calling thread.
    #[inline(always)]
    fn slot(&self) -> usize {
        thread_number() as usize & self.mask
    }

    #[inline]
    fn pass<'a>(
        &'a self,
        take: impl Fn(usize) -> LinkBatch<'a, S>,
        panicked: &mut dyn FnMut(Box<dyn Any + Send>),
    ) -> usize {
        // Relaxed: only the thread that stores its number here can find it.
        self.runner.store(thread_number(), Ordering::Relaxed);
        let pass = DrainPass::new(&self.list, self.slot());
        let mut count = 0;
        for slot in 0..=self.mask {
            let mut taken = take(slot);
            if taken.is_empty() {
                continue;
            }
            // One turn per panic, and one without.
            while let Err(thrown) = catch_unwind(AssertUnwindSafe(|| {
                while let Some(link) = taken.pop() {
                    count += 1;
                    // SAFETY: all links of a queue are the first field of a node; this one was taken out,
                    // still pending.
                    unsafe { ItemNode::run(link.cast(), &pass) };
                }
            })) {
                panicked(thrown);
            }
        }
        // Relaxed: as above.
        self.runner.store(0, Ordering::Relaxed);
        pass.finish();
        count
    }

    #[inline(always)]
    fn check(&self, owner: &Owner) {
        assert!(self.owner == owner.id(), "this queue belongs to another owner");
    }
}

/// Runs all queued items on the thread that drops the queue.
impl<S: Sleeper> Drop for QueueCore<S> {
    fn drop(&mut self) {
        if !self.is_closed() {
            self.pass(|slot| self.list.close(slot), &mut |_| ());
        }
    }
}

impl<S: Sleeper> fmt::Debug for QueueCore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QueueCore({} slots)", self.mask + 1)
    }
}
