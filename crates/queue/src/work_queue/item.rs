//! Items that stay in memory of their owner.

use super::turn::{DrainPass, ItemNode, Turn};
use super::{Ready, sealed};
use crate::sync::UnsafeCell;
use crate::sync::atomic::AtomicBool;
use std::fmt;
use std::ptr::{NonNull, null};

/// An item in memory of the caller: a static, a field, a local variable. It is scheduled by a reference that
/// outlives the queue ([`QueueCore::schedule`](super::QueueCore::schedule) takes `&'static Item`), or
/// outlives the [scope](super::QueueCore::scope). So the item can neither move nor end while it is pending or
/// runs, and no reference is counted.
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
    node: ItemNode,
    /// Gate that is closed when the item must not schedule itself any more. Written by the thread that began
    /// pending, before the push; read by the worker before pending ends.
    gate: UnsafeCell<*const AtomicBool>,
    run: F,
}

// SAFETY: one thread at a time touches `gate`: the one that began pending, then the one that ends it. The
// gate lives until the run is over and may be read from any thread. The rest is `Send` if `F` is.
unsafe impl<F: Send> Send for Item<F> {}
// SAFETY: as above; the worker has only a reference to `F`.
unsafe impl<F: Sync> Sync for Item<F> {}

impl<F: Fn(&Turn<'_>) + Sync> Item<F> {
    /// Makes an item that is not pending, and calls `run` on the worker.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(run: F) -> Self {
        Item { node: ItemNode::new(call::<F>), gate: UnsafeCell::new(null()), run }
    }

    /// Makes an item that is not pending, and calls `run` on the worker.
    #[cfg(loom)]
    #[must_use]
    pub fn new(run: F) -> Self {
        Item { node: ItemNode::new(call::<F>), gate: UnsafeCell::new(null()), run }
    }

    pub(super) fn node(&self) -> NonNull<ItemNode> {
        NonNull::from(self).cast()
    }

    /// Sets the gate before the push; only the thread that began pending may call it.
    #[inline(always)]
    pub(super) fn set_gate(&self, gate: *const AtomicBool) {
        self.gate.with_mut(|field| {
            // SAFETY: the thread that began pending is alone with it.
            unsafe { *field = gate }
        });
    }
}

/// An item during its run, for `again`.
struct Again<'i, F> {
    item: &'i Item<F>,
    gate: *const AtomicBool,
}

// SAFETY: while the gate is open the item stays, as promised when it was scheduled. It may be used from any
// thread.
unsafe impl<F: Fn(&Turn<'_>) + Sync> sealed::Ready for Again<'_, F> {
    fn node(&self) -> NonNull<ItemNode> {
        self.item.node()
    }

    fn prepare(&self) {
        self.item.set_gate(self.gate);
    }
}

/// # Safety
/// As `RunFn`, for an `Item<F>`.
unsafe fn call<F: Fn(&Turn<'_>) + Sync>(node: NonNull<ItemNode>, pass: Option<&DrainPass>) {
    // SAFETY: this function is only in nodes of such items, which stay until the run is over: they are
    // 'static, or their scope waits.
    let item = unsafe { node.cast::<Item<F>>().as_ref() };
    let Some(pass) = pass else { return item.node.end_pending() };
    let gate = item.gate.with(|gate| {
        // SAFETY: the item is still pending, so its runner is alone with it.
        unsafe { *gate }
    });
    item.node.end_pending();
    let again = Again { item, gate };
    // SAFETY: null, or the gate of a scope, which does not end before this run.
    let gate = unsafe { gate.as_ref() };
    (item.run)(&Turn::new(pass, Some(&again), gate));
}

// SAFETY: the item lives for ever and never moves; `F` may be called from any thread.
unsafe impl<F: Fn(&Turn<'_>) + Sync> sealed::Ready for &'static Item<F> {
    #[inline(always)]
    fn node(&self) -> NonNull<ItemNode> {
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
