//! Items that other threads schedule for one worker.

#[cfg(all(loom, test))]
mod model;

use crate::list::{Link, Sleeper, WorkList};
use crate::owner::Owner;
use crate::sync::atomic::{AtomicBool, Ordering};
use std::fmt;
use std::ptr::NonNull;

/// A fixed number of items, numbered from 0, that any thread can schedule and one worker runs.
///
/// - [`schedule`](Inbox::schedule) neither allocates nor blocks, from any thread. It returns whether this
///   call queued the item; false means that the item is pending already. Either way the coming run sees
///   everything that the caller wrote before: no event is lost.
/// - Pending ends just before an item runs, so an item can be scheduled again while it runs, also by its own
///   run.
/// - Items scheduled through one slot run in that order.
/// - The worker sleeps through [`sleep`](Inbox::sleep). The first push after that wakes it, and only that
///   push pays for it.
///
/// The worker's side takes the [`Owner`] token that the inbox was made with. An inbox is shared by reference
/// or `Arc`. Threads should use different slots, which keeps them off each other's cache lines, but need not.
///
/// ```
/// # use onbeat_queue::{Inbox, Owner, Sleeper};
/// # struct Nobody;
/// # impl Sleeper for Nobody { fn wake(&self) {} }
/// let mut owner = Owner::new();
/// let inbox = Inbox::new(&owner, 1, 3, Nobody);
/// assert!(inbox.schedule(0, 2));
/// assert!(inbox.schedule(0, 1));
/// assert!(!inbox.schedule(0, 2));           // pending already
/// let mut ran = Vec::new();
/// let count = inbox.drain(&mut owner, |_, item| {
///     assert_eq!(inbox.schedule(0, 0), ran.is_empty()); // not pending before, pending after
///     ran.push(item);
/// });
/// assert_eq!((ran, count), (vec![2, 1], 2));
/// assert_eq!(inbox.drain(&mut owner, |_, item| assert_eq!(item, 0)), 1);
/// assert!(inbox.is_empty());
/// ```
pub struct Inbox<S: Sleeper> {
    /// Id of the owner that drains it.
    owner: u32,
    /// Whether the worker is between `sleep` and `wake_up`. Only the owner writes it.
    asleep: AtomicBool,
    /// Not a `Box`: moving a box asserts that no other pointer leads into it, and the list has some.
    items: Vec<InboxItem>,
    list: WorkList<S>,
}

/// On a cache line of its own, so that items scheduled by different threads do not disturb each other.
#[repr(align(64))]
struct InboxItem(Link);

impl<S: Sleeper> Inbox<S> {
    /// Makes an inbox for `items` items with `slots` heads, drained by `owner`; `sleeper` wakes its thread.
    ///
    /// # Panics
    /// If `slots` is 0 or there are 2^32 items or more.
    #[must_use]
    pub fn new(owner: &Owner, slots: usize, items: usize, sleeper: S) -> Self {
        assert!(slots > 0, "an inbox needs at least one slot");
        assert!(u32::try_from(items).is_ok(), "an inbox has fewer than 2^32 items, not {items}");
        Inbox {
            owner: owner.id(),
            asleep: AtomicBool::new(false),
            items: (0..items).map(|_| InboxItem(Link::new())).collect(),
            list: WorkList::new(slots, sleeper),
        }
    }

    /// Schedules an item from any thread, through `slot` (modulo the number of slots), and wakes the worker
    /// if it sleeps. False if the item was pending already.
    ///
    /// The coming run sees everything that the caller did before, whatever the answer.
    ///
    /// # Panics
    /// If there is no such item.
    #[inline]
    pub fn schedule(&self, slot: usize, item: u32) -> bool {
        let Some(InboxItem(link)) = self.items.get(item as usize) else { self.no_such_item(item) };
        // SAFETY: the inbox owns both the items and the list, and the items do not move on the heap. Links
        // may be used from any thread.
        unsafe { self.list.schedule(slot, NonNull::from(link)) }
    }

    #[cold]
    fn no_such_item(&self, item: u32) -> ! {
        panic!("there is no item {item} in this inbox: it has {}, numbered from 0", self.items.len())
    }

    /// Whether nothing is queued. A hint, and cheap: a few loads.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Runs all queued items, slot by slot, in each slot the oldest first. Returns how many items ran.
    ///
    /// Pending ends just before `run` gets the item's number. `run` can schedule on this inbox; items that it
    /// adds to slots already drained wait for the next call. If `run` panics, the items that did not run are
    /// still scheduled.
    ///
    /// # Panics
    /// If `owner` is not the one of this inbox.
    #[inline]
    pub fn drain(&self, owner: &mut Owner, mut run: impl FnMut(&mut Owner, u32)) -> usize {
        self.check(owner);
        let first = self.items.as_ptr().addr();
        let mut count = 0;
        for slot in 0..self.list.slots() {
            for link in self.list.take(slot) {
                run(owner, ((link.addr().get() - first) / size_of::<InboxItem>()) as u32);
                count += 1;
            }
        }
        count
    }

    /// Announces that the worker goes to sleep. After `Ok` the next push wakes it: [`Sleeper::wake`] is
    /// called, and [`is_woken`](Inbox::is_woken) turns true. [`wake_up`](Inbox::wake_up) ends the sleep.
    ///
    /// # Errors
    /// If an item is queued: then the worker is not asleep. The number says how many pushes have called (or
    /// will soon call) [`Sleeper::claim`] and [`Sleeper::wake`] in between, as from `wake_up`.
    ///
    /// # Panics
    /// If `owner` is not the one of this inbox, or the worker is asleep.
    pub fn sleep(&self, owner: &mut Owner) -> Result<(), u32> {
        assert!(!self.is_asleep(owner), "the worker of this inbox is asleep already");
        self.list.sleep()?;
        // Relaxed: only the owner reads it.
        self.asleep.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the worker is between [`sleep`](Inbox::sleep) and [`wake_up`](Inbox::wake_up).
    ///
    /// # Panics
    /// If `owner` is not the one of this inbox.
    #[inline]
    pub fn is_asleep(&self, owner: &Owner) -> bool {
        self.check(owner);
        // Relaxed: only the owner writes it.
        self.asleep.load(Ordering::Relaxed)
    }

    /// Whether the worker is asleep and a push has come since: a few loads, to spin on.
    ///
    /// # Panics
    /// If `owner` is not the one of this inbox.
    #[inline]
    pub fn is_woken(&self, owner: &Owner) -> bool {
        self.is_asleep(owner) && self.list.is_woken()
    }

    /// Ends the sleep, woken or not. Queued items wait for [`drain`](Inbox::drain). Returns the number of
    /// pushes that found the worker asleep: that many calls of [`Sleeper::claim`] had no `unclaim`, and
    /// everything done before and in those calls is visible now. At most one per slot; 0 if the worker was
    /// not asleep.
    ///
    /// # Panics
    /// If `owner` is not the one of this inbox.
    pub fn wake_up(&self, owner: &mut Owner) -> u32 {
        if !self.is_asleep(owner) {
            return 0;
        }
        // Relaxed: only the owner reads it.
        self.asleep.store(false, Ordering::Relaxed);
        self.list.wake_up()
    }

    /// Returns the sleeper, which wakes the worker.
    pub fn sleeper(&self) -> &S {
        self.list.sleeper()
    }

    #[inline(always)]
    fn check(&self, owner: &Owner) {
        assert!(self.owner == owner.id(), "this inbox belongs to another owner");
    }
}

impl<S: Sleeper> fmt::Debug for Inbox<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inbox({} items, {} slots)", self.items.len(), self.list.slots())
    }
}
