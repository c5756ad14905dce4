//! Items that stay where their owner has put them.

use super::turn::{DrainPass, Node, Turn};
use super::{Ready, sealed};
use crate::sync::UnsafeCell;
use crate::sync::atomic::AtomicBool;
use std::fmt;
use std::ptr::{NonNull, null};

/// An item in memory of the caller: a static, a field, a local variable. It is scheduled by a reference that outlives the
/// queue ([`QueueCore::schedule`](super::QueueCore::schedule) takes `&'static Item`), or the [scope](super::QueueCore::scope)
/// in which that happens: so it can neither move nor end while it is pending or runs, and nothing has to be counted.
///
/// ```compile_fail,E0597
/// use onbeat_queue::{QueueCore, Item, Sleeper};
/// fn late(queue: &QueueCore<impl Sleeper>) {
///     let item = Item::new(|_| ());
///     queue.schedule(&item);            // it ends before the queue may have run it
/// }
/// ```
#[repr(C)]
pub struct Item<F> {
    /// First: a pointer to the node is one to the item.
    node: Node,
    /// What closes when it must not schedule itself any more. Written by the one who began its pending, before the
    /// push, and read by the worker before pending ends.
    gate: UnsafeCell<*const AtomicBool>,
    run: F,
}

// SAFETY: `gate` is touched by one thread at a time: the one that began pending, then the one that ends it. It points to
// something that lives until the run is over and may be read from any thread. The rest is `Send` if `F` is.
unsafe impl<F: Send> Send for Item<F> {}
// SAFETY: as above; the worker has no more than a reference to `F`.
unsafe impl<F: Sync> Sync for Item<F> {}

impl<F: Fn(&Turn<'_>) + Sync> Item<F> {
    /// One that is not pending, and calls `run` on the worker.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(run: F) -> Self {
        Item { node: Node::new(call::<F>), gate: UnsafeCell::new(null()), run }
    }

    /// One that is not pending, and calls `run` on the worker.
    #[cfg(loom)]
    #[must_use]
    pub fn new(run: F) -> Self {
        Item { node: Node::new(call::<F>), gate: UnsafeCell::new(null()), run }
    }

    pub(super) fn node(&self) -> NonNull<Node> {
        NonNull::from(self).cast()
    }

    /// Before it is pushed; only by the one who began its pending.
    #[inline(always)]
    pub(super) fn set_gate(&self, gate: *const AtomicBool) {
        self.gate.with_mut(|field| {
            // SAFETY: the one who began its pending is alone with it.
            unsafe { *field = gate }
        });
    }
}

/// An item during its run, for `again`.
struct Again<'i, F> {
    item: &'i Item<F>,
    gate: *const AtomicBool,
}

// SAFETY: as long as the gate is open the item stays, as who scheduled it has promised; it may be used from any thread.
unsafe impl<F: Fn(&Turn<'_>) + Sync> sealed::Ready for Again<'_, F> {
    fn node(&self) -> NonNull<Node> {
        self.item.node()
    }

    fn prepare(&self) {
        self.item.set_gate(self.gate);
    }
}

/// # Safety
/// As `RunFn`, for an `Item<F>`.
unsafe fn call<F: Fn(&Turn<'_>) + Sync>(node: NonNull<Node>, hand: Option<&DrainPass>) {
    // SAFETY: this function is only in nodes of such items, which stay at least until the run is over: that is what
    // 'static says, or the scope sees to.
    let item = unsafe { node.cast::<Item<F>>().as_ref() };
    let Some(hand) = hand else { return item.node.end_pending() };
    let gate = item.gate.with(|gate| {
        // SAFETY: it is pending still, so whoever is to run it is alone with it.
        unsafe { *gate }
    });
    item.node.end_pending();
    let again = Again { item, gate };
    // SAFETY: null, or the gate of a scope, which does not end before this run.
    let gate = unsafe { gate.as_ref() };
    (item.run)(&Turn::new(hand, Some(&again), gate));
}

// SAFETY: it lives for ever and never moves; `F` may be called from any thread.
unsafe impl<F: Fn(&Turn<'_>) + Sync> sealed::Ready for &'static Item<F> {
    #[inline(always)]
    fn node(&self) -> NonNull<Node> {
        Item::node(self)
    }

    #[inline(always)]
    fn prepare(&self) {
        self.set_gate(null());
    }
}

impl<F: Fn(&Turn<'_>) + Sync> Ready for &'static Item<F> {}

impl<F> fmt::Debug for Item<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Item")
    }
}
