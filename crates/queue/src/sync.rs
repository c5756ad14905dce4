//! The only source of atomics and cells. Under `--cfg loom` it gives loom's types. `clippy.toml` bans other
//! sources in the workspace, except in `os`, which has its own for words shared with the kernel.
#![allow(clippy::disallowed_types, reason = "this module provides them")]

#[cfg(loom)]
pub use loom::sync::atomic;
/// Atomics of the standard library under our own names, because the lint goes by names.
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

/// Lets other threads run first.
pub(crate) fn yield_now() {
    #[cfg(not(loom))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Returns the number of the calling thread. It is never 0 and never used again in this process, unlike an
/// address in thread-local memory, which the next thread can get.
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

/// Returns a number for a thread or an owner. The counter is not part of a protocol, so it stays a plain
/// atomic under loom.
///
/// # Panics
/// After 2^32 - 1 numbers.
pub(crate) fn next_number() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    // Relaxed: only uniqueness matters; nothing is published with the number.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(number != 0, "no numbers left for threads and owners: 2^32 were given out in this process");
    number
}

/// Loads a word, relaxed, before a read-modify-write that depends on the value.
///
/// Loom 0.7 tries other orders only between an access and the *last* access to the same word. A thread's load
/// right before its own exchange hides an earlier load of another thread, so an order stays untried. Under
/// loom this function is therefore an exchange that always fails: no later access hides it.
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

/// Whether a model has planted this mistake in the code that it runs, to show that loom finds it. Outside the
/// models this is a constant, so the branch disappears.
#[cfg(not(all(loom, test)))]
#[inline(always)]
pub(crate) const fn planted(_: &'static str) -> bool {
    false
}

/// Returns `right`, or Relaxed if a model has planted the mistake `weak`.
#[inline(always)]
pub(crate) fn order(weak: &'static str, right: atomic::Ordering) -> atomic::Ordering {
    if planted(weak) { atomic::Ordering::Relaxed } else { right }
}

/// Makes a SeqCst fence, or none if a model has planted the mistake `missing`.
#[inline(always)]
pub(crate) fn full_fence(missing: &'static str) {
    if !planted(missing) {
        atomic::fence(atomic::Ordering::SeqCst);
    }
}

#[cfg(all(loom, test))]
pub(crate) use mistakes::{plant, planted};

/// Loom runs all threads of a model on the thread that started it, so a plain thread-local reaches them all.
/// Each test has its own thread, so it does not reach other models.
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
