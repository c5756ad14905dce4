//! Whose chunk stores a thread acts for.

use crate::sync;
use std::cell::Cell;
use std::marker::PhantomData;

/// A number that a thread can wear in place of its own: the [stores](crate::Store) that are opened meanwhile belong to it, and
/// go where it goes.
///
/// The free list of a store is no atomic: it belongs to one thread, which tells its own blocks from foreign ones by a
/// number. Work that wanders between threads takes its number along: there is one of each, it cannot be copied, and
/// [`wear`](Identity::wear) needs it for itself, so two threads never wear the same one.
///
/// ```
/// # use onbeat_queue::{Identity, Meta, Seed};
/// # #[derive(Default, Clone)] struct Label;
/// # impl Meta for Label { fn reset(&mut self) {} }
/// let mut identity = Identity::new();
/// let seed = Seed::<Label>::new(1, 64)?;
/// let store = identity.wear(|| seed.open());
/// std::thread::scope(|scope| {
///     scope.spawn(|| identity.wear(|| {
///         let block = store.get::<u8>().unwrap();
///         drop(block);                             // comes home at once: this is its owner
///         assert!(store.free() == 1);
///         drop(store);
///     }));
/// });
/// # Ok::<(), onbeat_queue::StoreError>(())
/// ```
#[derive(Debug)]
pub struct Identity {
    number: u32,
    /// Not `Sync`.
    one_thread: PhantomData<Cell<()>>,
}

impl Identity {
    /// A new one, different from every other and from every thread's own.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "two calls never give equal values")]
    pub fn new() -> Self {
        Identity { number: sync::next_number(), one_thread: PhantomData }
    }

    /// Runs `act` with the calling thread wearing this number.
    #[inline]
    pub fn wear<R>(&mut self, act: impl FnOnce() -> R) -> R {
        /// Puts the thread's former number back, also when `act` panics.
        struct Former(u32);
        impl Drop for Former {
            fn drop(&mut self) {
                sync::set_thread_number(self.0);
            }
        }
        let _former = Former(sync::thread_number());
        sync::set_thread_number(self.number);
        act()
    }
}
