//! The work list: any thread puts links in, one consumer takes them all out, and sleeps without missing one. See
//! `README.md` beside this file for the states, the protocol and the races it closes.

mod head;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{CachePadded, UnsafeCell, planted};
use head::Head;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// Who sleeps when there is no work, and how it is woken.
///
/// All three calls come from the scheduling threads, inside [`Inbox::schedule`](crate::Inbox::schedule). `claim` and
/// `unclaim` are for counting who is awake: an event is on its way to the sleeper from `claim` on, so whoever counts
/// never sees "everybody asleep" with an event between two threads. Each `claim` is followed by one `unclaim` or one
/// `wake`; the latter are those that [`Inbox::wake_up`](crate::Inbox::wake_up) reports to the consumer.
///
/// A `wake` may come late, when the consumer has found the work by itself already and even sleeps again, so a
/// consumer looks before it believes that there is work. What the consumer wrote before it slept is not made visible
/// to these calls; a parker or a counter changes its word by read-modify-write and does not need that.
///
/// ```
/// use onbeat_queue::{Inbox, Owner, Sleeper};
///
/// struct Thread(std::thread::Thread);
/// impl Sleeper for Thread {
///     fn wake(&self) {
///         self.0.unpark();
///     }
/// }
///
/// let mut owner = Owner::new();
/// let inbox = Inbox::new(&owner, 2, 1, Thread(std::thread::current()));
/// std::thread::scope(|scope| {
///     scope.spawn(|| inbox.schedule(0, 0));
///     let mut ran = 0;
///     while ran == 0 {
///         if inbox.sleep(&mut owner).is_ok() {
///             while !inbox.is_woken(&owner) {
///                 std::thread::park();
///             }
///             inbox.wake_up(&mut owner);
///         }
///         ran += inbox.drain(&mut owner, |_, item| assert_eq!(item, 0));
///     }
/// });
/// ```
pub trait Sleeper: Send + Sync {
    /// Before a push that found the mark of the sleeper: it counts as awake from here on.
    fn claim(&self) {}

    /// That push did not replace a mark after all: somebody else did, or the sleeper woke by itself.
    fn unclaim(&self) {}

    /// A push has replaced a mark: wake the sleeper. Must neither block nor schedule on the same inbox.
    fn wake(&self);
}

impl<S: Sleeper + ?Sized> Sleeper for Arc<S> {
    #[inline]
    fn claim(&self) {
        (**self).claim();
    }

    #[inline]
    fn unclaim(&self) {
        (**self).unclaim();
    }

    #[inline]
    fn wake(&self) {
        (**self).wake();
    }
}

/// A sleeper that needs no wake-up: it polls.
pub(crate) struct Poller;

impl Sleeper for Poller {
    fn wake(&self) {}
}

/// What an item carries to be put on a list.
#[derive(Debug)]
pub(crate) struct Link {
    /// From `schedule` until just before the item is handed out. Whoever turns it to true has the link for itself
    /// until it is pushed.
    pending: AtomicBool,
    /// The next one in the list. Written by the one who set `pending`, then by the consumer that took the list, and
    /// by nobody once `pending` has ended.
    next: UnsafeCell<*mut Link>,
}

// SAFETY: `next` is touched by one thread at a time: the one that set `pending`, then the one that took the list; the
// push and the end of `pending` hand it over. A link refers to other links only while it is in a list, whose promise
// (see `WorkList::schedule`) is that these may be used from any thread.
unsafe impl Send for Link {}
// SAFETY: as above.
unsafe impl Sync for Link {}

impl Link {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Link { pending: AtomicBool::new(false), next: UnsafeCell::new(null_mut()) }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Link { pending: AtomicBool::new(false), next: UnsafeCell::new(null_mut()) }
    }

    /// # Safety
    /// `link` is valid and nobody else's: the caller began its pending, or owns it.
    #[inline]
    pub(crate) unsafe fn set_next(link: NonNull<Link>, next: Option<NonNull<Link>>) {
        // SAFETY: valid, as promised by the caller.
        unsafe { link.as_ref() }.next.with_mut(|field| {
            // SAFETY: nobody else touches it, as promised by the caller.
            unsafe { *field = next.map_or(null_mut(), NonNull::as_ptr) }
        });
    }

    /// # Safety
    /// As for [`set_next`](Self::set_next).
    pub(crate) unsafe fn next(link: NonNull<Link>) -> Option<NonNull<Link>> {
        // SAFETY: valid, as promised by the caller.
        let next = unsafe { link.as_ref() }.next.with(|field| {
            // SAFETY: nobody else touches it, as promised by the caller.
            unsafe { *field }
        });
        NonNull::new(next)
    }

    /// True for the one who is to push it.
    #[inline]
    pub(crate) fn begin_pending(&self) -> bool {
        if planted("pending looked at by a load") && self.pending.load(Ordering::Acquire) {
            return false;
        }
        // AcqRel and a swap in any case, even if the flag is set already. Release, partner: the Acquire of
        // `end_pending`: what the caller wrote is visible to the coming run, also for a caller who gets false (the
        // swaps of this word are a chain, so the last reader acquires from all of them). Acquire, partner: the Release
        // of `end_pending`: the consumer has read `next` before we write it.
        !self.pending.swap(true, Ordering::AcqRel)
    }

    /// Just before the item is handed out, and after `next` has been read.
    #[inline]
    pub(crate) fn end_pending(&self) {
        if planted("pending ended by a store") {
            return self.pending.store(false, Ordering::Release);
        }
        // AcqRel, partner: the AcqRel of `begin_pending`, both ways; see there. A plain store would acquire nothing,
        // and events of callers who got false would be lost.
        self.pending.swap(false, Ordering::AcqRel);
    }
}

/// A link that was not pushed after all.
#[derive(Debug)]
#[must_use]
pub(crate) struct NotPushed;

/// The lock-free core: one head per producer slot, so that producers do not meet on one cache line.
#[derive(Debug)]
pub(crate) struct WorkList<S> {
    heads: Box<[CachePadded<Head>]>,
    sleeper: S,
}

impl<S: Sleeper> WorkList<S> {
    /// # Panics
    /// When `slots` is 0.
    pub(crate) fn new(slots: usize, sleeper: S) -> Self {
        assert!(slots > 0, "a work list needs at least one slot");
        WorkList { heads: (0..slots).map(|_| CachePadded::new(Head::new())).collect(), sleeper }
    }

    pub(crate) fn slots(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn sleeper(&self) -> &S {
        &self.sleeper
    }

    /// Puts `link` on the list of `slot` (modulo the number of slots) and wakes the consumer if it sleeps; false when
    /// the link is pending already.
    ///
    /// # Safety
    /// `link` is valid, and stays so until it has been handed out by [`LinkBatch`] for the last time or its list is gone;
    /// it may be used from any thread. Moving it while it is pending is forbidden.
    #[inline]
    pub(crate) unsafe fn schedule(&self, slot: usize, link: NonNull<Link>) -> bool {
        // SAFETY: valid, as promised by the caller.
        if !unsafe { link.as_ref() }.begin_pending() {
            return false;
        }
        // SAFETY: pending was begun by this call, and the rest is promised by the caller.
        unsafe { self.head(slot).push(link, link, &self.sleeper) }
    }

    /// As [`schedule`](Self::schedule), for a list that may be closed: then it is false, too. `prepare` is called when
    /// the link has begun to be pending.
    ///
    /// # Errors
    /// It was closed when pending had begun: the link is pending and on no list, so it is the caller's alone.
    ///
    /// # Safety
    /// As [`schedule`](Self::schedule).
    #[inline]
    pub(crate) unsafe fn offer(
        &self,
        slot: usize,
        link: NonNull<Link>,
        prepare: impl FnOnce(),
    ) -> Result<bool, NotPushed> {
        let head = self.head(slot);
        // Before pending begins, so that a list that is closed for good never makes an item look pending.
        // SAFETY: valid, as promised by the caller.
        if head.is_closed() || !unsafe { link.as_ref() }.begin_pending() {
            return Ok(false);
        }
        prepare();
        // SAFETY: pending was begun by this call, and the rest is promised by the caller.
        if unsafe { head.push(link, link, &self.sleeper) } { Ok(true) } else { Err(NotPushed) }
    }

    /// Puts links that are nobody else's on the list of `slot`, all at once: from the newest through `next` to the
    /// oldest. False when the list is closed: then they are the caller's still.
    ///
    /// # Safety
    /// As [`schedule`](Self::schedule), for each of them; and the caller began their pending, or owns them.
    #[inline]
    pub(crate) unsafe fn push(&self, slot: usize, newest: NonNull<Link>, oldest: NonNull<Link>) -> bool {
        // SAFETY: promised by the caller.
        unsafe { self.head(slot).push(newest, oldest, &self.sleeper) }
    }

    #[inline]
    fn head(&self, slot: usize) -> &Head {
        let slots = self.heads.len();
        // A division costs more than a branch that is always taken the same way.
        &self.heads[if slot < slots { slot } else { slot % slots }]
    }

    /// A hint.
    #[inline]
    pub(crate) fn is_closed(&self, slot: usize) -> bool {
        self.head(slot).is_closed()
    }

    /// Takes all that is on the list of `slot`, oldest first.
    #[inline]
    pub(crate) fn take(&self, slot: usize) -> LinkBatch<'_, S> {
        self.taken(slot, self.head(slot).take())
    }

    /// The same, and from here on the slot refuses everything. Consumer only, not while it sleeps.
    pub(crate) fn close(&self, slot: usize) -> LinkBatch<'_, S> {
        self.taken(slot, self.head(slot).close())
    }

    /// Takes pushes again. Consumer only, when every slot has been closed.
    pub(crate) fn open(&self) {
        self.heads.iter().for_each(|head| head.open());
    }

    /// Turns the list round.
    #[inline]
    fn taken(&self, slot: usize, mut newest: *mut Link) -> LinkBatch<'_, S> {
        let mut oldest = null_mut();
        while let Some(link) = NonNull::new(newest) {
            // SAFETY: pending links are valid, as promised to `schedule`.
            newest = unsafe { link.as_ref() }.next.with_mut(|next| {
                // SAFETY: whoever took the list has its links alone, until it ends their pending.
                unsafe { std::mem::replace(&mut *next, oldest) }
            });
            oldest = link.as_ptr();
        }
        LinkBatch { list: self, slot, next: oldest }
    }

    /// Whether no list has anything. A hint: a few loads.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.heads.iter().any(|head| head.has_links())
    }

    /// Marks every head; `Err(k)` when there was something to do instead: then no mark is left, and `k` had been
    /// replaced by pushes. Consumer only, and not while it sleeps.
    pub(crate) fn sleep(&self) -> Result<(), u32> {
        if !self.is_empty() {
            return Err(0);
        }
        for (marked, head) in self.heads.iter().enumerate() {
            if !head.mark() {
                return Err(unmark(&self.heads[..marked]));
            }
        }
        Ok(())
    }

    /// While the consumer sleeps: whether a push has replaced a mark.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        !self.heads.iter().all(|head| head.is_marked())
    }

    /// Takes the marks away and says how many had been replaced by pushes. Consumer only, after a
    /// [`sleep`](Self::sleep) that went well.
    pub(crate) fn wake_up(&self) -> u32 {
        unmark(&self.heads)
    }
}

/// Returns how many marks had been replaced.
fn unmark(heads: &[CachePadded<Head>]) -> u32 {
    heads.iter().map(|head| u32::from(!head.unmark())).sum()
}

/// Links that were taken out, oldest first. Each is handed out when its pending has ended and the list is done with
/// it: whoever gets it may schedule it again or free it. What is left over when this is dropped goes back on the list.
#[derive(Debug)]
pub(crate) struct LinkBatch<'l, S: Sleeper> {
    list: &'l WorkList<S>,
    slot: usize,
    next: *mut Link,
}

impl<S: Sleeper> LinkBatch<'_, S> {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_null()
    }

    /// The oldest, still pending: whoever runs it ends that.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<NonNull<Link>> {
        let link = NonNull::new(self.next)?;
        if planted("pending ended before next is read") {
            // SAFETY: in this mistake the link still is where it was.
            unsafe { link.as_ref() }.end_pending();
        }
        // SAFETY: pending links are valid, as promised to `schedule`.
        self.next = unsafe { link.as_ref() }.next.with(|next| {
            // SAFETY: the links that were taken are ours alone until their pending ends.
            unsafe { *next }
        });
        Some(link)
    }
}

impl<S: Sleeper> Iterator for LinkBatch<'_, S> {
    type Item = NonNull<Link>;

    #[inline]
    fn next(&mut self) -> Option<NonNull<Link>> {
        let link = self.pop()?;
        // SAFETY: it is pending until this very call is over.
        unsafe { link.as_ref() }.end_pending();
        Some(link)
    }
}

impl<S: Sleeper> Drop for LinkBatch<'_, S> {
    #[inline]
    fn drop(&mut self) {
        while let Some(link) = self.pop() {
            // SAFETY: it is pending still, so it is ours to push, and valid.
            unsafe { self.list.head(self.slot).push(link, link, &self.list.sleeper) };
        }
    }
}
