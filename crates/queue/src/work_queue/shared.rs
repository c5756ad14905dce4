//! Items that the queue shares with their owner.

use super::turn::{DrainPass, ItemNode, Turn};
use super::{Ready, sealed};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// An item that can be dropped at any time, also in its own callback. While it is pending or runs, the queue
/// has a share in it: a promised run takes place, and the memory is freed with the last share. A clone is
/// another share in the same item.
///
/// The share costs two counts per run, which an [`Item`](super::Item) does without. The item takes one
/// allocation.
///
/// ```
/// # use onbeat_queue::{QueueCore, Owner, Shared, Sleeper};
/// # struct Nobody;
/// # impl Sleeper for Nobody { fn wake(&self) {} }
/// # let mut owner = Owner::new();
/// # let queue = QueueCore::new(&owner, 1, Nobody);
/// let (done, is_done) = std::sync::mpsc::channel();
/// let item = Shared::new(move |_| done.send("it ran").unwrap());
/// queue.schedule(&item);
/// drop(item);                                       // it is pending: the queue keeps it
/// queue.drain(&mut owner, &mut |_| ());
/// assert_eq!(is_done.recv(), Ok("it ran"));
/// ```
pub struct Shared<F> {
    body: Arc<SharedBody<F>>,
}

#[repr(C)]
struct SharedBody<F> {
    /// First: a pointer to the node is one to the body.
    node: ItemNode,
    run: F,
}

impl<F: Fn(&Turn<'_>) + Send + Sync + 'static> Shared<F> {
    /// Makes an item that is not pending, and calls `run` on the worker.
    #[must_use]
    pub fn new(run: F) -> Self {
        Shared { body: Arc::new(SharedBody { node: ItemNode::new(call::<F>), run }) }
    }
}

// SAFETY: `prepare` makes a share that the list keeps until the run; `F` may be called and dropped on any
// thread.
unsafe impl<F: Fn(&Turn<'_>) + Send + Sync + 'static> sealed::Ready for &Shared<F> {
    #[inline(always)]
    fn node(&self) -> NonNull<ItemNode> {
        // From the pointer of the share, whose provenance covers the whole body and the counts beside it.
        let body = Arc::as_ptr(&self.body).cast_mut().cast::<ItemNode>();
        // SAFETY: the pointer of an `Arc` is never null.
        unsafe { NonNull::new_unchecked(body) }
    }

    #[inline(always)]
    fn prepare(&self) {
        std::mem::forget(Arc::clone(&self.body));
    }
}

impl<F: Fn(&Turn<'_>) + Send + Sync + 'static> Ready for &Shared<F> {}

/// # Safety
/// As `RunFn`, for the body of a `Shared<F>`, with the list's share.
unsafe fn call<F: Fn(&Turn<'_>) + Send + Sync + 'static>(node: NonNull<ItemNode>, pass: Option<&DrainPass>) {
    // SAFETY: this function is only in such bodies, and `prepare` has left this share to the thread that
    // takes it off the list.
    let share = Shared { body: unsafe { Arc::from_raw(node.cast::<SharedBody<F>>().as_ptr()) } };
    share.body.node.end_pending();
    if let Some(pass) = pass {
        (share.body.run)(&Turn::new(pass, Some(&&share), None));
    }
}

impl<F> Clone for Shared<F> {
    fn clone(&self) -> Self {
        Shared { body: Arc::clone(&self.body) }
    }
}

impl<F> fmt::Debug for Shared<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
