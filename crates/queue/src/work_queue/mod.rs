//! The work queue without its thread: items of many kinds that any thread schedules and one worker runs. See
//! `README.md` beside this file for who owns an item when, and how a flush and a stop end.

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
use turn::{DrainPass, Node, offer};

/// What is to be done: items that any thread schedules, and one worker runs, each with its own callback.
///
/// - [`schedule`](QueueCore::schedule) neither allocates, blocks nor waits for anybody. True: the item was queued by this
///   call, and runs once for it. False: it is pending already, on this queue or another one, and the coming run sees
///   all that the caller wrote before; or this queue is closed.
/// - Pending ends just before the callback, so an item may be scheduled again while it runs, also by itself.
/// - What one thread has scheduled runs in that order. With one slot there is one order for all threads.
/// - The worker sleeps through [`sleep`](QueueCore::sleep): the first push after that wakes it, and only that one pays.
///
/// An item cannot go away while it is pending: what may be scheduled is [`Item`], which outlives the queue or a
/// [scope](QueueCore::scope); [`Shared`], which the queue owns together with the caller; and [`Owned`], which is the
/// queue's alone. The worker's side takes the [`Owner`] token that the queue was made with.
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
    /// Slots less one: their number is a power of two.
    mask: usize,
    /// Id of the owner that drains it.
    owner: u32,
    /// Between `sleep` and `wake_up`. Written by the owner only.
    asleep: AtomicBool,
    /// The number of the thread that runs items at this moment, or 0.
    runner: AtomicU32,
    /// Somebody wants the worker to close it.
    close_asked: AtomicBool,
    /// It was closed, and everything has run.
    closed: AtomicBool,
}

/// Something that may be scheduled: a reference to an [`Item`] that lives for ever, or to a [`Shared`].
pub trait Ready: sealed::Ready {}

pub(crate) mod sealed {
    use super::turn::Node;
    use std::ptr::NonNull;

    /// # Safety
    /// The node of `node` is valid and stays in its place from `prepare` until it has run or was given back, and may be
    /// used and run from any thread.
    pub unsafe trait Ready {
        /// What goes on the list.
        fn node(&self) -> NonNull<Node>;
        /// When it has begun to be pending, before anybody else can see it.
        fn prepare(&self);
    }
}

impl<S: Sleeper> QueueCore<S> {
    /// One that is open, drained by `owner`. `slots` is rounded up to a power of two; `sleeper` is how the worker is
    /// woken. With several slots threads keep off each other's cache lines; with one there is one order for all.
    ///
    /// # Panics
    /// When `slots` is 0.
    #[must_use]
    pub fn new(owner: &Owner, slots: usize, sleeper: S) -> Self {
        assert!(slots > 0, "an queue needs at least one slot");
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

    /// Schedules an item from any thread, and wakes the worker if it sleeps. False when the item was pending already,
    /// anywhere, or this queue is closed.
    ///
    /// Everything that the caller did before is visible to the run that follows, if it is pending already as well.
    ///
    /// Where one thread schedules an item on an queue just as that is closed, and another thread schedules the same
    /// item on another queue, both may get false. An item that is used with one queue at a time knows no such corner.
    #[inline]
    #[expect(clippy::needless_pass_by_value, reason = "it is a reference")]
    pub fn schedule(&self, item: impl Ready) -> bool {
        let node = item.node();
        // SAFETY: `Ready` promises that it stays valid and in its place, and is fit for any thread.
        unsafe { offer(&self.list, self.slot(), node, || item.prepare()) }
    }

    /// Schedules several items with one access to the list, in their order; says how many were queued. Those that were
    /// pending already are left out.
    pub fn schedule_many<R: Ready>(&self, items: impl IntoIterator<Item = R>) -> usize {
        self.schedule_chain(items, sealed::Ready::node, sealed::Ready::prepare)
    }

    /// The nodes are valid and stay until they have run, and may be run on any thread: `Ready` promises that, or a
    /// scope sees to it.
    fn schedule_chain<R>(
        &self,
        items: impl IntoIterator<Item = R>,
        node: impl Fn(&R) -> NonNull<Node>,
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

    /// Schedules an item for good: the run gets it, and may keep it, schedule it again or drop it.
    ///
    /// # Errors
    /// The item, when this queue is closed.
    #[inline]
    pub fn schedule_owned<T: Send + 'static>(&self, item: Box<Owned<T>>) -> Result<(), Box<Owned<T>>> {
        let link = item.into_link();
        // SAFETY: it came from a box just now, so it is valid and nobody else's; `T` may be sent to the worker.
        if unsafe { self.list.push(self.slot(), link, link) } {
            return Ok(());
        }
        // SAFETY: it was not pushed, so it is ours still.
        Err(unsafe { Owned::from_link(link) })
    }

    /// As [`schedule_owned`](Self::schedule_owned) for several, with one access to the list, in their order.
    ///
    /// # Errors
    /// The items, in their order, when this queue is closed.
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
            // SAFETY: it was not pushed, so it is ours still, and all of them are of this type.
            refused.push(unsafe { Owned::from_link(link) });
        }
        refused.reverse();
        Err(refused)
    }

    /// Whether nothing waits to be run. A hint, and cheap: a few loads.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Runs everything that waits, slot by slot, in each slot the oldest first; says how many items ran. What is
    /// scheduled meanwhile to the slots that have had their turn waits for the next call.
    ///
    /// When a callback panics, `panicked` gets what it threw, and the next item runs.
    ///
    /// # Panics
    /// When `owner` is not the one of this queue.
    pub fn drain(&self, owner: &mut Owner, panicked: &mut dyn FnMut(Box<dyn Any + Send>)) -> usize {
        self.check(owner);
        self.pass(|slot| self.list.take(slot), panicked)
    }

    /// Runs everything that waits, as [`drain`](Self::drain), and takes nothing from here on: `schedule` is false, also
    /// for items that run now. When it returns every true has had its run. Nothing happens to one that is closed.
    ///
    /// # Panics
    /// When `owner` is not the one of this queue.
    pub fn close(&self, owner: &mut Owner, panicked: &mut dyn FnMut(Box<dyn Any + Send>)) -> usize {
        if self.is_closed() {
            return 0;
        }
        self.wake_up(owner);
        let count = self.pass(|slot| self.list.close(slot), panicked);
        // Relaxed: the next word publishes it.
        self.close_asked.store(false, Ordering::Relaxed);
        // Release, partner: the Acquire in `is_closed`: all runs are over.
        self.closed.store(true, Ordering::Release);
        count
    }

    /// Takes items again, after [`close`](Self::close). Nothing happens to one that is open.
    ///
    /// # Panics
    /// When `owner` is not the one of this queue.
    pub fn open(&self, owner: &mut Owner) {
        self.check(owner);
        if self.is_closed() {
            // Relaxed, and before the heads: who finds a head that the next `close` has closed sees it, too, by the
            // Release of that and a fence (see `flush.rs`).
            self.closed.store(false, Ordering::Relaxed);
            // Relaxed: what was asked of the one that closed is over.
            self.close_asked.store(false, Ordering::Relaxed);
            self.list.open();
        }
    }

    /// Whether it was closed, and everything that was promised has run. A hint to all but the worker.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire, partner: the Release in `close`: what the runs did.
        self.closed.load(Ordering::Acquire)
    }

    /// Wakes the worker to find [`is_close_asked`](Self::is_close_asked). Any thread.
    pub fn ask_to_close(&self) {
        // Release, partner: the Acquire in `is_close_asked`; that the worker looks at all is the work of the signal.
        self.close_asked.store(true, Ordering::Release);
        flush::prod(self);
    }

    /// Whether somebody has asked the worker to close it.
    #[must_use]
    pub fn is_close_asked(&self) -> bool {
        // Acquire, partner: the Release in `ask_to_close`.
        self.close_asked.load(Ordering::Acquire)
    }

    /// Whether the calling thread is in a callback of this queue at this moment.
    #[must_use]
    pub fn is_running_here(&self) -> bool {
        // Relaxed: only the runner itself writes and then finds its own number.
        self.runner.load(Ordering::Relaxed) == thread_number()
    }

    /// Announces that the worker goes to sleep. After true the next push wakes it: [`Sleeper::wake`] is called, and
    /// [`is_woken`](Self::is_woken) turns true; [`wake_up`](Self::wake_up) ends the sleep. False: something waits.
    ///
    /// # Panics
    /// When `owner` is not the one of this queue.
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
    /// When `owner` is not the one of this queue.
    #[inline]
    pub fn is_woken(&self, owner: &Owner) -> bool {
        self.check(owner);
        // Relaxed: only the owner writes it.
        self.asleep.load(Ordering::Relaxed) && self.list.is_woken()
    }

    /// Ends the sleep, woken or not. What was pushed waits for [`drain`](Self::drain).
    ///
    /// # Panics
    /// When `owner` is not the one of this queue.
    pub fn wake_up(&self, owner: &mut Owner) {
        self.check(owner);
        // Relaxed: only the owner writes it.
        if self.asleep.load(Ordering::Relaxed) {
            self.asleep.store(false, Ordering::Relaxed);
            self.list.wake_up();
        }
    }

    /// How the worker is woken.
    pub fn sleeper(&self) -> &S {
        self.list.sleeper()
    }

    /// The slot of the calling thread.
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
        // Relaxed: only the thread that writes it here can find its own number.
        self.runner.store(thread_number(), Ordering::Relaxed);
        let hand = DrainPass::new(&self.list, self.slot());
        let mut count = 0;
        for slot in 0..=self.mask {
            let mut taken = take(slot);
            if taken.is_empty() {
                continue;
            }
            // Once for each panic, and once for none.
            while let Err(thrown) = catch_unwind(AssertUnwindSafe(|| {
                while let Some(link) = taken.pop() {
                    count += 1;
                    // SAFETY: all links of an queue are the first field of a node; it was taken out, still pending.
                    unsafe { Node::run(link.cast(), &hand) };
                }
            })) {
                panicked(thrown);
            }
        }
        // Relaxed: as above.
        self.runner.store(0, Ordering::Relaxed);
        hand.finish();
        count
    }

    #[inline(always)]
    fn check(&self, owner: &Owner) {
        assert!(self.owner == owner.id(), "this queue belongs to another owner");
    }
}

/// Everything that was promised runs, on the thread that drops it.
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
