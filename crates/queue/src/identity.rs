//! The owner number under which a thread uses chunk stores.

use crate::sync;
use std::cell::Cell;
use std::marker::PhantomData;

/// A number that a thread can wear instead of its own. [Stores](crate::Store) that are opened meanwhile
/// belong to this number and move with it.
///
/// The free list of a store is not atomic. It belongs to one owner number, and a thread compares that number
/// with its own to tell its blocks from foreign ones. Work that moves between threads takes its number along.
/// An identity cannot be copied and [`wear`](Identity::wear) takes `&mut self`, so two threads never wear the
/// same number.
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
    /// Makes the type `!Sync`.
    one_thread: PhantomData<Cell<()>>,
}

impl Identity {
    /// Makes a number that differs from every other, and from those of all threads.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "two calls never give equal values")]
    pub fn new() -> Self {
        Identity { number: sync::next_number(), one_thread: PhantomData }
    }

    /// Runs `act` while the calling thread wears this number.
    #[inline]
    pub fn wear<R>(&mut self, act: impl FnOnce() -> R) -> R {
        /// Restores the thread's former number, also when `act` panics.
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
