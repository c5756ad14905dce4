//! Items that the queue owns.

use super::turn::{DrainPass, ItemNode, Turn};
use crate::list::Link;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// An item that belongs to the queue once it is scheduled, and comes back to its callback in the box it was
/// made in. The holder of the box knows that it is not pending, so nothing is checked or counted: it is the
/// cheapest kind.
///
/// The callback can drop the box, keep it for later, give it another callback or schedule it again. None of
/// this allocates.
///
/// ```
/// # use onbeat_queue::{QueueCore, Owned, Owner, Sleeper};
/// # struct Nobody;
/// # impl Sleeper for Nobody { fn wake(&self) {} }
/// # let mut owner = Owner::new();
/// # let queue = QueueCore::new(&owner, 1, Nobody);
/// let item = Owned::new(1, |mut item, turn| {
///     **item *= 2;
///     if **item < 8 {
///         turn.schedule_owned(item).unwrap();
///     }
/// });
/// queue.schedule_owned(item).unwrap();
/// let runs: usize = (0..5).map(|_| queue.drain(&mut owner, &mut |_| ())).sum();
/// assert_eq!(runs, 3);
/// ```
#[repr(C)]
pub struct Owned<T> {
    /// First: a pointer to the node is one to the item.
    node: ItemNode,
    run: fn(Box<Owned<T>>, &Turn<'_>),
    value: T,
}

impl<T: Send + 'static> Owned<T> {
    /// Makes an item that holds `value` and is given to `run` on the worker.
    #[must_use]
    pub fn new(value: T, run: fn(Box<Owned<T>>, &Turn<'_>)) -> Box<Self> {
        Box::new(Owned { node: ItemNode::new(call::<T>), run, value })
    }

    /// Sets the callback of the next run.
    pub fn set_up(&mut self, run: fn(Box<Owned<T>>, &Turn<'_>)) {
        self.run = run;
    }

    /// Returns the value.
    #[must_use]
    pub fn into_value(self) -> T {
        self.value
    }

    pub(super) fn into_link(self: Box<Self>) -> NonNull<Link> {
        NonNull::from(Box::leak(self)).cast()
    }

    /// # Safety
    /// `link` is from [`into_link`](Self::into_link) of this type, and the caller's alone.
    pub(super) unsafe fn from_link(link: NonNull<Link>) -> Box<Self> {
        // SAFETY: promised by the caller.
        unsafe { Box::from_raw(link.cast::<Self>().as_ptr()) }
    }
}

/// # Safety
/// As `RunFn`, for an `Owned<T>` that was given to the list.
unsafe fn call<T: Send + 'static>(node: NonNull<ItemNode>, pass: Option<&DrainPass>) {
    // SAFETY: this function is only in such items, and the thread that takes one off the list has it alone.
    let item = unsafe { Owned::<T>::from_link(node.cast()) };
    // Without a pass the item is dropped. Callers that want it back have kept it.
    if let Some(pass) = pass {
        (item.run)(item, &Turn::new(pass, None, None));
    }
}

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Owned<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owned").field(&self.value).finish()
    }
}
