//! What a list holds, and what a callback is given.

use super::{Owned, sealed};
use crate::list::{Link, Sleeper, WorkList};
use crate::sync::atomic::{AtomicBool, Ordering};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// The begin of everything that is scheduled on an queue.
#[repr(C)]
#[derive(Debug)]
pub struct Node {
    /// First: a pointer to the link is one to the node.
    link: Link,
    run: RunFn,
}

/// Runs what a node is the begin of, ending its pending first; without a hand it is given back without having run: what
/// `prepare` did is undone, and its pending ends.
///
/// # Safety
/// The node is the begin of what the function is for, valid, and the caller's alone: pending, and on no list.
pub(super) type RunFn = unsafe fn(NonNull<Node>, Option<&DrainPass>);

impl Node {
    #[cfg(not(loom))]
    pub(super) const fn new(run: RunFn) -> Self {
        Node { link: Link::new(), run }
    }

    #[cfg(loom)]
    pub(super) fn new(run: RunFn) -> Self {
        Node { link: Link::new(), run }
    }

    #[inline(always)]
    pub(super) fn end_pending(&self) {
        self.link.end_pending();
    }

    /// # Safety
    /// As for [`RunFn`].
    #[inline(always)]
    pub(super) unsafe fn run(node: NonNull<Node>, hand: &DrainPass) {
        // SAFETY: valid, as promised by the caller.
        let run = unsafe { node.as_ref() }.run;
        // SAFETY: it is the function for what this is the begin of, and the rest is promised by the caller.
        unsafe { run(node, Some(hand)) }
    }

    /// # Safety
    /// As for [`RunFn`].
    #[cold]
    pub(super) unsafe fn give_back(node: NonNull<Node>) {
        // SAFETY: valid, as promised by the caller.
        let run = unsafe { node.as_ref() }.run;
        // SAFETY: it is the function for what this is the begin of, and the rest is promised by the caller.
        unsafe { run(node, None) }
    }
}

/// Schedules what `node` is the begin of; `prepare` is called when it has begun to be pending. False when it was pending
/// already, or the list is closed.
///
/// # Safety
/// As `WorkList::schedule`, and the node is the begin of what its function is for.
#[inline]
pub(super) unsafe fn offer(
    list: &WorkList<impl Sleeper>,
    slot: usize,
    node: NonNull<Node>,
    prepare: impl FnOnce(),
) -> bool {
    // SAFETY: promised by the caller.
    let offered = unsafe { list.offer(slot, node.cast(), prepare) };
    offered.unwrap_or_else(|_| {
        // SAFETY: it is pending, and on no list.
        unsafe { Node::give_back(node) };
        false
    })
}

/// The list, whatever its sleeper.
pub(super) trait Lists {
    /// # Safety
    /// As [`offer`].
    unsafe fn offer(&self, slot: usize, node: NonNull<Node>, prepare: &dyn Fn()) -> bool;

    /// # Safety
    /// As `WorkList::push` with one link.
    unsafe fn push(&self, slot: usize, link: NonNull<Link>) -> bool;
}

impl<S: Sleeper> Lists for WorkList<S> {
    unsafe fn offer(&self, slot: usize, node: NonNull<Node>, prepare: &dyn Fn()) -> bool {
        // SAFETY: promised by the caller.
        unsafe { offer(self, slot, node, prepare) }
    }

    unsafe fn push(&self, slot: usize, link: NonNull<Link>) -> bool {
        // SAFETY: promised by the caller.
        unsafe { WorkList::push(self, slot, link, link) }
    }
}

/// Who waits for the end of a pass.
pub(super) trait Finish: Send + Sync {
    fn finish(&self);
}

/// The worker in one pass over all slots.
pub struct DrainPass<'l> {
    list: &'l dyn Lists,
    slot: usize,
    waiting: RefCell<Vec<Arc<dyn Finish>>>,
}

impl<'l> DrainPass<'l> {
    #[inline]
    pub(super) fn new(list: &'l dyn Lists, slot: usize) -> Self {
        DrainPass { list, slot, waiting: RefCell::new(Vec::new()) }
    }

    /// To be told when this pass is over.
    pub(super) fn wait(&self, who: Arc<dyn Finish>) {
        self.waiting.borrow_mut().push(who);
    }

    /// The pass is over.
    #[inline]
    pub(super) fn finish(self) {
        for who in self.waiting.into_inner() {
            who.finish();
        }
    }
}

/// What a callback gets to know of its run.
pub struct Turn<'t> {
    hand: &'t DrainPass<'t>,
    /// What runs, unless it is gone or the callback's.
    item: Option<&'t dyn sealed::Ready>,
    /// Closed when it must not be scheduled again.
    gate: Option<&'t AtomicBool>,
    one_thread: PhantomData<*const ()>,
}

impl<'t> Turn<'t> {
    #[inline(always)]
    pub(super) fn new(
        hand: &'t DrainPass<'t>,
        item: Option<&'t dyn sealed::Ready>,
        gate: Option<&'t AtomicBool>,
    ) -> Self {
        Turn { hand, item, gate, one_thread: PhantomData }
    }

    /// Schedules the item that runs again, behind all that waits. False when somebody else has done so meanwhile, when the
    /// queue closes or the scope of the item ends, and for an [`Owned`] item: the callback has it, and schedules it
    /// by [`schedule_owned`](Turn::schedule_owned).
    pub fn again(&self) -> bool {
        let Some(item) = self.item else { return false };
        // Acquire, partner: the Release of the end of the scope.
        if self.gate.is_some_and(|gate| gate.load(Ordering::Acquire)) {
            return false;
        }
        // SAFETY: it has been scheduled on this list before, for which its owner has promised all this, and it lives
        // at least as long as this run; for longer `prepare` cares, or the scope, which has not ended.
        unsafe { self.hand.list.offer(self.hand.slot, item.node(), &|| item.prepare()) }
    }

    /// Schedules an owned item on the queue that runs this one.
    ///
    /// # Errors
    /// The item, when the queue closes.
    pub fn schedule_owned<T: Send + 'static>(&self, item: Box<Owned<T>>) -> Result<(), Box<Owned<T>>> {
        let link = item.into_link();
        // SAFETY: it came from a box just now, so it is valid and nobody else's; `T` may be sent to the worker.
        if unsafe { self.hand.list.push(self.hand.slot, link) } {
            return Ok(());
        }
        // SAFETY: it was not pushed, so it is ours still.
        Err(unsafe { Owned::from_link(link) })
    }
}

impl std::fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Turn")
    }
}
