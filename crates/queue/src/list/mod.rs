//! The work list: any thread puts links in; one consumer takes them all out and sleeps without missing one.
//! See `README.md` beside this file for the states, the protocol and the races it closes.

mod head;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{CachePadded, UnsafeCell, planted};
use head::ListHead;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// A consumer that sleeps when there is no work, and how to wake it.
///
/// The scheduling threads make all three calls, inside [`Inbox::schedule`](crate::Inbox::schedule). `claim`
/// and `unclaim` serve to count awake threads: from `claim` on, an event is on its way to the sleeper, so the
/// count never shows everybody asleep while an event is between two threads. Each `claim` is followed by one
/// `unclaim` or one `wake`; [`Inbox::wake_up`](crate::Inbox::wake_up) reports the latter to the consumer.
///
/// A `wake` can come late, when the consumer has already found the work and even sleeps again. A woken
/// consumer must therefore check for work. These calls do not see what the consumer wrote before it slept; a
/// parker or a counter changes its word by read-modify-write and does not need that.
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
    /// Comes before a push that found the sleeper's mark. From here on the sleeper counts as awake.
    fn claim(&self) {}

    /// Takes a claim back: that push did not replace a mark, because another push did or the sleeper woke
    /// first.
    fn unclaim(&self) {}

    /// Wakes the sleeper after a push has replaced its mark. Must neither block nor schedule on the same
    /// inbox.
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

/// The part of an item that a list needs.
#[derive(Debug)]
pub(crate) struct Link {
    /// Whether it is scheduled and not yet handed out. The thread that turns it to true has the link to
    /// itself until the push.
    pending: AtomicBool,
    /// The next link in the list. Written by the thread that set `pending`, then by the consumer that took
    /// the list; nobody writes it once `pending` has ended.
    next: UnsafeCell<*mut Link>,
}

// SAFETY: one thread at a time touches `next`: the one that set `pending`, then the one that took the list.
// The push and the end of `pending` hand it over. A link refers to other links only while it is in a list,
// which requires (see `WorkList::schedule`) that they may be used from any thread.
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
    /// `link` is valid and the caller's alone: it began the pending, or owns the link.
    #[inline]
    pub(crate) unsafe fn set_next(link: NonNull<Link>, next: Option<NonNull<Link>>) {
        // SAFETY: valid, as promised by the caller.
        unsafe { link.as_ref() }.next.with_mut(|field| {
            // SAFETY: no other thread touches it, as promised by the caller.
            unsafe { *field = next.map_or(null_mut(), NonNull::as_ptr) }
        });
    }

    /// # Safety
    /// As for [`set_next`](Self::set_next).
    pub(crate) unsafe fn next(link: NonNull<Link>) -> Option<NonNull<Link>> {
        // SAFETY: valid, as promised by the caller.
        let next = unsafe { link.as_ref() }.next.with(|field| {
            // SAFETY: no other thread touches it, as promised by the caller.
            unsafe { *field }
        });
        NonNull::new(next)
    }

    /// Begins pending. True for the caller that must push the link.
    #[inline]
    pub(crate) fn begin_pending(&self) -> bool {
        if planted("pending looked at by a load") && self.pending.load(Ordering::Acquire) {
            return false;
        }
        // AcqRel, and always a swap, even if the flag is set already. Release, partner: the Acquire of
        // `end_pending`: the coming run sees the caller's writes, also those of a caller that gets false (the
        // swaps of this word form a chain, so the last reader acquires from all of them). Acquire, partner:
        // the Release of `end_pending`: the consumer has read `next` before we write it.
        !self.pending.swap(true, Ordering::AcqRel)
    }

    /// Ends pending, just before the item is handed out and after `next` was read.
    #[inline]
    pub(crate) fn end_pending(&self) {
        if planted("pending ended by a store") {
            return self.pending.store(false, Ordering::Release);
        }
        // AcqRel, partner: the AcqRel of `begin_pending`, both ways; see there. A plain store would acquire
        // nothing, and would lose events of callers that got false.
        self.pending.swap(false, Ordering::AcqRel);
    }
}

/// Error: the list was closed before the link was pushed.
#[derive(Debug)]
#[must_use]
pub(crate) struct NotPushed;

/// The lock-free core: one head per producer slot, so that producers do not share a cache line.
#[derive(Debug)]
pub(crate) struct WorkList<S> {
    heads: Box<[CachePadded<ListHead>]>,
    sleeper: S,
}

impl<S: Sleeper> WorkList<S> {
    /// # Panics
    /// If `slots` is 0.
    pub(crate) fn new(slots: usize, sleeper: S) -> Self {
        assert!(slots > 0, "a work list needs at least one slot");
        WorkList { heads: (0..slots).map(|_| CachePadded::new(ListHead::new())).collect(), sleeper }
    }

    pub(crate) fn slots(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn sleeper(&self) -> &S {
        &self.sleeper
    }

    /// Puts `link` on the list of `slot` (modulo the number of slots) and wakes the consumer if it sleeps.
    /// False if the link is pending already.
    ///
    /// # Safety
    /// `link` is valid, and stays so until [`LinkBatch`] has handed it out for the last time or its list is
    /// gone. It may be used from any thread and does not move while it is pending.
    #[inline]
    pub(crate) unsafe fn schedule(&self, slot: usize, link: NonNull<Link>) -> bool {
        // SAFETY: valid, as promised by the caller.
        if !unsafe { link.as_ref() }.begin_pending() {
            return false;
        }
        // SAFETY: this call began the pending, and the caller promises the rest.
        unsafe { self.head(slot).push(link, link, &self.sleeper) }
    }

    /// As [`schedule`](Self::schedule), for a list that can be closed: then it returns false, too. Calls
    /// `prepare` when the link has begun to be pending.
    ///
    /// # Errors
    /// If the list was closed when pending had begun: the link is pending and on no list, so it is the
    /// caller's alone.
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
        // Before pending begins, so that a closed list never makes an item look pending.
        // SAFETY: valid, as promised by the caller.
        if head.is_closed() || !unsafe { link.as_ref() }.begin_pending() {
            return Ok(false);
        }
        prepare();
        // SAFETY: this call began the pending, and the caller promises the rest.
        if unsafe { head.push(link, link, &self.sleeper) } { Ok(true) } else { Err(NotPushed) }
    }

    /// Puts links that are the caller's alone on the list of `slot`, all at once, from the newest through
    /// `next` to the oldest. False if the list is closed: then they are still the caller's.
    ///
    /// # Safety
    /// As [`schedule`](Self::schedule), for each link; and the caller began their pending, or owns them.
    #[inline]
    pub(crate) unsafe fn push(&self, slot: usize, newest: NonNull<Link>, oldest: NonNull<Link>) -> bool {
        // SAFETY: promised by the caller.
        unsafe { self.head(slot).push(newest, oldest, &self.sleeper) }
    }

    #[inline]
    fn head(&self, slot: usize) -> &ListHead {
        let slots = self.heads.len();
        // A division costs more than a well-predicted branch.
        &self.heads[if slot < slots { slot } else { slot % slots }]
    }

    /// Whether the slot is closed. A hint.
    #[inline]
    pub(crate) fn is_closed(&self, slot: usize) -> bool {
        self.head(slot).is_closed()
    }

    /// Takes all links of `slot`, oldest first.
    #[inline]
    pub(crate) fn take(&self, slot: usize) -> LinkBatch<'_, S> {
        self.taken(slot, self.head(slot).take())
    }

    /// As [`take`](Self::take), and closes the slot: it refuses pushes from here on. Consumer only, not while
    /// it sleeps.
    pub(crate) fn close(&self, slot: usize) -> LinkBatch<'_, S> {
        self.taken(slot, self.head(slot).close())
    }

    /// Accepts pushes again. Consumer only, when every slot was closed.
    pub(crate) fn open(&self) {
        self.heads.iter().for_each(|head| head.open());
    }

    /// Reverses the list.
    #[inline]
    fn taken(&self, slot: usize, mut newest: *mut Link) -> LinkBatch<'_, S> {
        let mut oldest = null_mut();
        while let Some(link) = NonNull::new(newest) {
            // SAFETY: pending links are valid, as promised to `schedule`.
            newest = unsafe { link.as_ref() }.next.with_mut(|next| {
                // SAFETY: the thread that took the list has its links to itself until it ends their pending.
                unsafe { std::mem::replace(&mut *next, oldest) }
            });
            oldest = link.as_ptr();
        }
        LinkBatch { list: self, slot, next: oldest }
    }

    /// Whether all slots are empty. A hint: a few loads.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.heads.iter().any(|head| head.has_links())
    }

    /// Marks every head. `Err(k)` if there is work instead: then no mark is left, and pushes had replaced `k`
    /// marks. Consumer only, and not while it sleeps.
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

    /// Whether a push has replaced a mark while the consumer sleeps.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        !self.heads.iter().all(|head| head.is_marked())
    }

    /// Removes the marks, and returns how many pushes had replaced. Consumer only, after a successful
    /// [`sleep`](Self::sleep).
    pub(crate) fn wake_up(&self) -> u32 {
        unmark(&self.heads)
    }
}

/// Removes marks, and returns how many pushes had replaced.
fn unmark(heads: &[CachePadded<ListHead>]) -> u32 {
    heads.iter().map(|head| u32::from(!head.unmark())).sum()
}

/// Links that were taken out, oldest first. Each is handed out when its pending has ended and the list no
/// longer uses it: the receiver may schedule it again or free it. Dropping this pushes the rest again.
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

    /// Takes the oldest link, still pending: its runner ends that.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<NonNull<Link>> {
        let link = NonNull::new(self.next)?;
        if planted("pending ended before next is read") {
            // SAFETY: under this planted mistake the link is still valid.
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
        // SAFETY: it is pending until this call returns.
        unsafe { link.as_ref() }.end_pending();
        Some(link)
    }
}

impl<S: Sleeper> Drop for LinkBatch<'_, S> {
    #[inline]
    fn drop(&mut self) {
        while let Some(link) = self.pop() {
            // SAFETY: it is still pending, so it is valid and ours to push.
            unsafe { self.list.head(self.slot).push(link, link, &self.list.sleeper) };
        }
    }
}
