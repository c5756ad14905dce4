//! Private state of one side of a ring between two workers.

use crate::owner::Owner;
use crate::sync::UnsafeCell;

/// State that only the worker with this [`Owner`] touches.
pub(crate) struct Side<S> {
    /// Id of the owner.
    owner: u32,
    state: UnsafeCell<S>,
}

impl<S: Copy> Side<S> {
    pub fn new(owner: &Owner, state: S) -> Self {
        Side { owner: owner.id(), state: UnsafeCell::new(state) }
    }

    #[inline(always)]
    pub fn with<R>(&self, owner: &mut Owner, f: impl FnOnce(&mut S) -> R) -> R {
        self.check(owner);
        // SAFETY: `check` and `&mut Owner` prove that nobody else is on this side; this covers `f`.
        self.state.with_mut(|state| f(unsafe { &mut *state }))
    }

    #[inline(always)]
    pub fn get(&self, owner: &Owner) -> S {
        self.check(owner);
        // SAFETY: a shared `Owner` excludes writers, and the state is copied out.
        self.state.with(|state| unsafe { *state })
    }

    /// Returns the state when the ring is dropped.
    pub fn last(&mut self) -> S {
        // SAFETY: `&mut self`: nobody else is left.
        self.state.with(|state| unsafe { *state })
    }

    /// Id of the owner.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Panics if this side belongs to another owner.
    #[inline(always)]
    pub fn check(&self, owner: &Owner) {
        if owner.id() != self.owner {
            wrong_owner();
        }
    }
}

#[cold]
#[inline(never)]
fn wrong_owner() -> ! {
    panic!("this side of the ring belongs to another worker")
}
