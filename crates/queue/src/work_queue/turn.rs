//! Nodes of a list, and the argument of a callback.

use super::{Owned, sealed};
use crate::list::{Link, Sleeper, WorkList};
use crate::sync::atomic::{AtomicBool, Ordering};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// The first part of everything that is scheduled on a queue.
#[repr(C)]
#[derive(Debug)]
pub struct ItemNode {
    /// First: a pointer to the link is one to the node.
    link: Link,
    run: RunFn,
}

/// Function that ends the pending of a node's item and runs it. Without a pass it gives the item back
/// instead: it undoes `prepare` and ends pending.
///
/// # Safety
/// The node is the first part of the kind of item that the function is for. It is valid and the caller's
/// alone: pending, and on no list.
pub(super) type RunFn = unsafe fn(NonNull<ItemNode>, Option<&DrainPass>);

impl ItemNode {
    #[cfg(not(loom))]
    pub(super) const fn new(run: RunFn) -> Self {
        ItemNode { link: Link::new(), run }
    }

    #[cfg(loom)]
    pub(super) fn new(run: RunFn) -> Self {
        ItemNode { link: Link::new(), run }
    }

    #[inline(always)]
    pub(super) fn end_pending(&self) {
        self.link.end_pending();
    }

    /// # Safety
    /// As for [`RunFn`].
    #[inline(always)]
    pub(super) unsafe fn run(node: NonNull<ItemNode>, pass: &DrainPass) {
        // SAFETY: valid, as promised by the caller.
        let run = unsafe { node.as_ref() }.run;
        // SAFETY: it is the function for this kind of item; the caller promises the rest.
        unsafe { run(node, Some(pass)) }
    }

    /// # Safety
    /// As for [`RunFn`].
    #[cold]
    pub(super) unsafe fn give_back(node: NonNull<ItemNode>) {
        // SAFETY: valid, as promised by the caller.
        let run = unsafe { node.as_ref() }.run;
        // SAFETY: it is the function for this kind of item; the caller promises the rest.
        unsafe { run(node, None) }
    }
}

/// Schedules the item of `node`; calls `prepare` when pending has begun. False if the item was pending
/// already, or the list is closed.
///
/// # Safety
/// As `WorkList::schedule`, and the node is the first part of the kind of item that its function is for.
#[inline]
pub(super) unsafe fn offer(
    list: &WorkList<impl Sleeper>,
    slot: usize,
    node: NonNull<ItemNode>,
    prepare: impl FnOnce(),
) -> bool {
    // SAFETY: promised by the caller.
    let offered = unsafe { list.offer(slot, node.cast(), prepare) };
    offered.unwrap_or_else(|_| {
        // SAFETY: it is pending, and on no list.
        unsafe { ItemNode::give_back(node) };
        false
    })
}

/// A list, whatever its sleeper.
pub(super) trait AnyList {
    /// # Safety
    /// As [`offer`].
    unsafe fn offer(&self, slot: usize, node: NonNull<ItemNode>, prepare: &dyn Fn()) -> bool;

    /// # Safety
    /// As `WorkList::push` with one link.
    unsafe fn push(&self, slot: usize, link: NonNull<Link>) -> bool;
}

impl<S: Sleeper> AnyList for WorkList<S> {
    unsafe fn offer(&self, slot: usize, node: NonNull<ItemNode>, prepare: &dyn Fn()) -> bool {
        // SAFETY: promised by the caller.
        unsafe { offer(self, slot, node, prepare) }
    }

    unsafe fn push(&self, slot: usize, link: NonNull<Link>) -> bool {
        // SAFETY: promised by the caller.
        unsafe { WorkList::push(self, slot, link, link) }
    }
}

/// A thread that waits for the end of a pass.
pub(super) trait Finish: Send + Sync {
    fn finish(&self);
}

/// One pass of the worker over all slots.
pub struct DrainPass<'l> {
    list: &'l dyn AnyList,
    slot: usize,
    waiting: RefCell<Vec<Arc<dyn Finish>>>,
}

impl<'l> DrainPass<'l> {
    #[inline]
    pub(super) fn new(list: &'l dyn AnyList, slot: usize) -> Self {
        DrainPass { list, slot, waiting: RefCell::new(Vec::new()) }
    }

    /// Has `waiter` notified when this pass is over.
    pub(super) fn wait(&self, waiter: Arc<dyn Finish>) {
        self.waiting.borrow_mut().push(waiter);
    }

    /// Ends the pass, and notifies the waiters.
    #[inline]
    pub(super) fn finish(self) {
        for waiter in self.waiting.into_inner() {
            waiter.finish();
        }
    }
}

/// The argument of a callback.
pub struct Turn<'t> {
    pass: &'t DrainPass<'t>,
    /// The item that runs, unless it is gone or belongs to the callback.
    item: Option<&'t dyn sealed::Ready>,
    /// Closed when the item must not be scheduled again.
    gate: Option<&'t AtomicBool>,
    one_thread: PhantomData<*const ()>,
}

impl<'t> Turn<'t> {
    #[inline(always)]
    pub(super) fn new(
        pass: &'t DrainPass<'t>,
        item: Option<&'t dyn sealed::Ready>,
        gate: Option<&'t AtomicBool>,
    ) -> Self {
        Turn { pass, item, gate, one_thread: PhantomData }
    }

    /// Schedules the running item again, after all queued ones. False if another thread has done so
    /// meanwhile, if the queue closes, if the scope of the item ends, and for an [`Owned`] item: its callback
    /// schedules it by [`schedule_owned`](Turn::schedule_owned).
    pub fn again(&self) -> bool {
        let Some(item) = self.item else { return false };
        // Acquire, partner: the Release of the end of the scope.
        if self.gate.is_some_and(|gate| gate.load(Ordering::Acquire)) {
            return false;
        }
        // SAFETY: the item was scheduled on this list before, for which its owner has promised all this, and
        // it lives at least as long as this run. After that, `prepare` or the scope, which has not ended,
        // keeps it alive.
        unsafe { self.pass.list.offer(self.pass.slot, item.node(), &|| item.prepare()) }
    }

    /// Schedules an owned item on the queue that runs this one.
    ///
    /// # Errors
    /// The item, if the queue closes.
    pub fn schedule_owned<T: Send + 'static>(&self, item: Box<Owned<T>>) -> Result<(), Box<Owned<T>>> {
        let link = item.into_link();
        // SAFETY: the link came from a box just now, so it is valid and ours alone; `T` may be sent to the
        // worker.
        if unsafe { self.pass.list.push(self.pass.slot, link) } {
            return Ok(());
        }
        // SAFETY: it was not pushed, so it is still ours.
        Err(unsafe { Owned::from_link(link) })
    }
}

impl std::fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Turn")
    }
}
