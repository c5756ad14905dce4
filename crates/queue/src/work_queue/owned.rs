//! Items that go over to the queue.

use super::turn::{DrainPass, Node, Turn};
use crate::list::Link;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// An item that goes over to the queue when it is scheduled, and comes back to its callback, in the box that it was made
/// in. Who has the box knows that it is not pending, so nothing needs to be asked or counted: it is the cheapest kind.
///
/// The callback may drop the box, keep it for later, set it up anew or schedule it again. None of that allocates.
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
    node: Node,
    run: fn(Box<Owned<T>>, &Turn<'_>),
    value: T,
}

impl<T: Send + 'static> Owned<T> {
    /// One that holds `value` and is given to `run` on the worker.
    #[must_use]
    pub fn new(value: T, run: fn(Box<Owned<T>>, &Turn<'_>)) -> Box<Self> {
        Box::new(Owned { node: Node::new(call::<T>), run, value })
    }

    /// What its next run calls.
    pub fn set_up(&mut self, run: fn(Box<Owned<T>>, &Turn<'_>)) {
        self.run = run;
    }

    /// What it holds.
    #[must_use]
    pub fn into_value(self) -> T {
        self.value
    }

    pub(super) fn into_link(self: Box<Self>) -> NonNull<Link> {
        NonNull::from(Box::leak(self)).cast()
    }

    /// # Safety
    /// `link` is from [`into_link`](Self::into_link) of this type, and nobody else's.
    pub(super) unsafe fn from_link(link: NonNull<Link>) -> Box<Self> {
        // SAFETY: promised by the caller.
        unsafe { Box::from_raw(link.cast::<Self>().as_ptr()) }
    }
}

/// # Safety
/// As `RunFn`, for an `Owned<T>` that was given to the list.
unsafe fn call<T: Send + 'static>(node: NonNull<Node>, hand: Option<&DrainPass>) {
    // SAFETY: this function is only in such items, and who takes one off the list has it alone.
    let item = unsafe { Owned::<T>::from_link(node.cast()) };
    // Given back, it is dropped: who wants it back has not lost it.
    if let Some(hand) = hand {
        (item.run)(item, &Turn::new(hand, None, None));
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
