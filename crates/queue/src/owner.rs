//! The token that opens the rings of one worker.

use crate::sync;
use std::cell::Cell;
use std::marker::PhantomData;

/// The right to use the rings that were made with it. Each worker has one, and it cannot be copied. The
/// holder of `&mut Owner` is alone with all rings of the worker, so these need neither locks nor atomics. An
/// owner can move to another thread, but two threads cannot share it: a value seen through `&Owner` needs to
/// be `Send` only.
///
/// ```compile_fail,E0277
/// fn shared(_: impl Sync) {}
/// shared(onbeat_queue::Owner::new());
/// ```
///
/// ```
/// use onbeat_queue::{Owner, Ring};
/// let mut owner = Owner::new();
/// let ring: Ring<_> = Ring::new(&owner, 4);
/// ring.push(&mut owner, 7, &()).unwrap();
/// assert_eq!(ring.len(&owner), 1);
/// ```
#[derive(Debug)]
pub struct Owner {
    id: u32,
    /// Makes the type `!Sync`.
    one_thread: PhantomData<Cell<()>>,
}

impl Owner {
    /// Makes a token that differs from every other in this process.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "two calls never give equal values")]
    pub fn new() -> Self {
        Owner { id: sync::next_number(), one_thread: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn id(&self) -> u32 {
        self.id
    }
}
