//! Counts allocations per thread: an allocator for programs that want these counts.

#![allow(clippy::disallowed_types, reason = "set inside the allocator, where nothing else may be called")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

thread_local! {
    // It has no destructor, and its first use does not allocate: it is read inside the allocator.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Allocator that counts the allocations of each thread; it wraps the system's allocator by default. A
/// program that installs it has the allocations of its workers in its records; other records say "not
/// counted". It costs one increment per allocation.
///
/// ```
/// use onbeat_os::allocations::{self, CountingAllocator};
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator::system();
///
/// let before = allocations::of_thread().expect("it is installed");
/// let block = std::hint::black_box(vec![1u8; 100]);
/// assert_eq!(allocations::of_thread(), Some(before + 1));
/// drop(block);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator<A = System>(A);

impl CountingAllocator {
    /// Wraps the system's allocator.
    #[must_use]
    pub const fn system() -> Self {
        CountingAllocator(System)
    }
}

impl<A> CountingAllocator<A> {
    /// Wraps another allocator.
    pub const fn around(allocator: A) -> Self {
        CountingAllocator(allocator)
    }
}

/// Number of times that the calling thread has asked for new or more memory; `None` if the program has
/// another allocator.
#[must_use]
pub fn of_thread() -> Option<u64> {
    INSTALLED.load(Relaxed).then(|| COUNT.get())
}

fn count() {
    COUNT.set(COUNT.get() + 1);
    if !INSTALLED.load(Relaxed) {
        INSTALLED.store(true, Relaxed);
    }
}

// SAFETY: every call goes to the inner allocator unchanged. Counting neither allocates nor unwinds: the count
// cannot overflow in 64 bits, and the cell has no destructor, so it exists as long as its thread.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { self.0.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.0.dealloc(block, layout) }
    }
}
