//! The one door for atomics and cells. Under `--cfg loom` loom's own types stand in, and `clippy.toml` keeps the rest
//! of the workspace from going round it (`os` keeps its own, for words shared with the kernel).
#![allow(clippy::disallowed_types, reason = "this is the door")]

#[cfg(loom)]
pub use loom::sync::atomic;
/// Atomics of the standard library, under names of our own: the lint looks at names.
#[cfg(not(loom))]
pub mod atomic {
    pub use std::sync::atomic::{Ordering, fence};

    /// See [`std::sync::atomic::AtomicBool`].
    pub type AtomicBool = std::sync::atomic::AtomicBool;
    /// See [`std::sync::atomic::AtomicU32`].
    pub type AtomicU32 = std::sync::atomic::AtomicU32;
    /// See [`std::sync::atomic::AtomicU64`].
    pub type AtomicU64 = std::sync::atomic::AtomicU64;
    /// See [`std::sync::atomic::AtomicIsize`].
    pub type AtomicIsize = std::sync::atomic::AtomicIsize;
    /// See [`std::sync::atomic::AtomicPtr`].
    pub type AtomicPtr<T> = std::sync::atomic::AtomicPtr<T>;
}

pub use crossbeam_utils::CachePadded;

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

/// `std::cell::UnsafeCell` with loom's two methods, so that loom can watch the accesses.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Lets other threads go first.
pub(crate) fn yield_now() {
    #[cfg(not(loom))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// A number for the calling thread that is never 0 and never used again in this process. (An address in
/// thread-local memory would be: the next thread gets the same one.)
#[inline(always)]
pub(crate) fn thread_number() -> u32 {
    let number = NUMBER.with(std::cell::Cell::get);
    if number != 0 { number } else { give_number() }
}

#[cfg(not(loom))]
thread_local! {
    static NUMBER: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}
#[cfg(loom)]
loom::thread_local! {
    static NUMBER: std::cell::Cell<u32> = std::cell::Cell::new(0);
}

/// Replaces the calling thread's number: see [`Identity`](crate::Identity).
#[inline(always)]
pub(crate) fn set_thread_number(number: u32) {
    NUMBER.with(|cell| cell.set(number));
}

#[cold]
fn give_number() -> u32 {
    let number = next_number();
    NUMBER.with(|cell| cell.set(number));
    number
}

/// Numbers for threads and owners. The count is no part of any protocol, so it stays a plain atomic under loom too.
///
/// # Panics
/// After 2^32 - 1 numbers.
pub(crate) fn next_number() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    // Relaxed: only uniqueness matters, nothing is published with the number.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(number != 0, "no numbers left for threads and owners: 2^32 were given out in this process");
    number
}

/// A relaxed load that decides what a read-modify-write will do next.
///
/// Loom 0.7 searches for other orders between an access and the *last* one to the same word only. So a thread's load
/// right before its own exchange hides the load of another thread that came before both, and an order is never tried.
/// Under loom this is an exchange that always fails: it counts as an access that no other one hides.
#[inline(always)]
pub(crate) fn load_before_rmw<T>(word: &atomic::AtomicPtr<T>) -> *mut T {
    #[cfg(not(loom))]
    let now = word.load(atomic::Ordering::Relaxed);
    #[cfg(loom)]
    let now = {
        use atomic::Ordering::Relaxed;
        let never = std::ptr::without_provenance_mut(usize::MAX);
        word.compare_exchange(never, never, Relaxed, Relaxed).unwrap_or_else(|now| now)
    };
    now
}

/// Whether a model has planted the named mistake in the code that it runs, to show that loom finds it. Outside the
/// models the answer is a constant, so the branch is gone.
#[cfg(not(all(loom, test)))]
#[inline(always)]
pub(crate) const fn planted(_: &'static str) -> bool {
    false
}

/// `right`, or Relaxed where a model has planted the mistake `weak`.
#[inline(always)]
pub(crate) fn order(weak: &'static str, right: atomic::Ordering) -> atomic::Ordering {
    if planted(weak) { atomic::Ordering::Relaxed } else { right }
}

/// A SeqCst fence, or none where a model has planted the mistake `missing`.
#[inline(always)]
pub(crate) fn full_fence(missing: &'static str) {
    if !planted(missing) {
        atomic::fence(atomic::Ordering::SeqCst);
    }
}

#[cfg(all(loom, test))]
pub(crate) use mistakes::{plant, planted};

/// Loom runs all threads of a model on the thread that started it, so a plain thread-local reaches them all; a test
/// has its own thread, so it reaches no other model.
#[cfg(all(loom, test))]
mod mistakes {
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// Plants a mistake for the rest of this test.
    pub(crate) fn plant(mistake: &'static str) {
        PLANTED.set(Some(mistake));
    }

    pub(crate) fn planted(mistake: &'static str) -> bool {
        PLANTED.get() == Some(mistake)
    }
}
