//! Blocks of memory that are handed out, shared, and return to their store when the last handle is dropped.
//! See `README.md` beside this file for the states, the protocol and the races it closes.

mod block;
mod home;
mod lent;
#[cfg(all(loom, test))]
mod model;
mod place;

pub use block::Block;
pub use lent::LentStore;

use crate::sync;
use crate::sync::atomic::Ordering;
use bytemuck::Pod;
use home::{BlockLink, Home, MappedLayout, OnReturn, data_offset};
use place::stride;
use std::cell::Cell;
use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

/// A value in the head of each block, beside its samples. It is made once per block and reused.
pub trait Meta: Default + Clone + Send + Sync + 'static {
    /// Resets the value, and keeps its memory if it can. Called when the block returns to its store, and
    /// before it is filled again without a return.
    fn reset(&mut self);
}

/// Reason why a store could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreError {
    /// No block, or blocks of no bytes.
    Empty,
    /// More bytes than an address space or a length field can hold.
    TooLarge {
        /// Number of blocks asked for.
        blocks: usize,
        /// Number of bytes per block asked for.
        bytes: usize,
    },
    /// The kernel does not map the file.
    NotMapped {
        /// Number of bytes asked for.
        bytes: usize,
        /// Its error.
        code: i32,
    },
    /// The system does not have that much memory.
    OutOfMemory {
        /// Number of bytes asked for.
        bytes: usize,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Empty => f.write_str("a chunk store needs at least one block of at least one byte"),
            StoreError::TooLarge { blocks, bytes } => {
                write!(
                    f,
                    "a chunk store of {blocks} blocks of {bytes} bytes is larger than memory can be addressed"
                )
            }
            StoreError::NotMapped { bytes, code } => {
                let error = std::io::Error::from_raw_os_error(*code);
                write!(f, "a chunk store of {bytes} bytes cannot be shared with other processes: {error}")
            }
            StoreError::OutOfMemory { bytes } => {
                write!(f, "no memory for a chunk store of {bytes} bytes: lower the capacities or the quantum")
            }
        }
    }
}

impl std::error::Error for StoreError {}

/// Where another process finds the samples of a block, if it maps the file with a [`LentStore`].
#[derive(Debug, Clone, Copy)]
pub struct BlockPlace<'b> {
    /// The store: no other one in this process has this number while the block lives.
    pub store: usize,
    /// Its file.
    pub file: BorrowedFd<'b>,
    /// Number of the block.
    pub index: usize,
    /// Number of blocks.
    pub blocks: usize,
    /// Bytes of each block.
    pub block_bytes: usize,
}

/// A store that no thread owns yet: allocated on any thread, opened on the one that uses it.
pub struct Seed<M: Meta> {
    home: NonNull<Home<M>>,
}

// SAFETY: a seed is the only handle to its home: no block is out and no thread owns it.
unsafe impl<M: Meta> Send for Seed<M> {}

impl<M: Meta> Seed<M> {
    /// Allocates `blocks` blocks of `bytes` bytes each, 64-byte aligned and zeroed, so that their pages
    /// exist.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn new(blocks: usize, bytes: usize) -> Result<Self, StoreError> {
        Self::new_in(blocks, bytes, &mut |_| ())
    }

    /// As [`new`](Seed::new); calls `prepare` with the memory before its first use, to choose where its pages
    /// are placed.
    ///
    /// ```
    /// # use onbeat_queue::{Meta, Seed};
    /// # #[derive(Default, Clone)] struct Label;
    /// # impl Meta for Label { fn reset(&mut self) {} }
    /// let mut bytes = 0;
    /// let seed = Seed::<Label>::new_in(4, 1024, &mut |memory| bytes = memory.len())?;
    /// assert!(bytes >= 4096);
    /// # drop(seed);
    /// # Ok::<(), onbeat_queue::StoreError>(())
    /// ```
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn new_in(
        blocks: usize,
        bytes: usize,
        prepare: &mut dyn FnMut(&mut [MaybeUninit<u8>]),
    ) -> Result<Self, StoreError> {
        Home::new(blocks, bytes, prepare).map(|home| Seed { home })
    }

    /// Returns the bytes of a file for a store that other processes can map; `None` if that is too large.
    #[must_use]
    pub fn file_bytes(blocks: usize, bytes: usize) -> Option<usize> {
        MappedLayout::new(blocks, bytes).map(MappedLayout::total)
    }

    /// As [`new_in`](Seed::new_in), in a file of [`file_bytes`](Seed::file_bytes) that other processes can
    /// map with a [`LentStore`]. Blocks begin on a page each.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn in_file(
        file: OwnedFd,
        blocks: usize,
        bytes: usize,
        prepare: &mut dyn FnMut(&mut [MaybeUninit<u8>]),
    ) -> Result<Self, StoreError> {
        Home::mapped(file, blocks, bytes, false, prepare).map(|home| Seed { home })
    }

    /// Returns the bytes that each block takes if `bytes` of it are for samples: with its head, its link, and
    /// the space before the next block.
    ///
    /// ```
    /// # use onbeat_queue::{Meta, Seed};
    /// # #[derive(Default, Clone)] struct Label;
    /// # impl Meta for Label { fn reset(&mut self) {} }
    /// // Neighbours that are round numbers of bytes apart would be slow to read and write in turn.
    /// assert!(Seed::<Label>::bytes_per_block(16384) > 16384 + 1024);
    /// ```
    #[must_use]
    pub const fn bytes_per_block(bytes: usize) -> usize {
        stride(data_offset::<M>(), bytes) + size_of::<BlockLink<M>>()
    }

    /// Makes the calling thread the owner.
    #[must_use]
    pub fn open(self) -> Store<M> {
        self.open_as(None)
    }

    /// Makes the calling thread the owner. `on_return` notifies it of the return of a block that it
    /// [wanted](Store::want).
    ///
    /// The thread that dropped the block calls it, so it should only wake a thread. It can be called, and
    /// dropped, after the store has ended.
    ///
    /// ```
    /// # use onbeat_queue::{Meta, Seed};
    /// # #[derive(Default, Clone)] struct Label;
    /// # impl Meta for Label { fn reset(&mut self) {} }
    /// let (come, wait) = std::sync::mpsc::channel();
    /// let store = Seed::<Label>::new(1, 64)?.open_with(std::sync::Arc::new(move || come.send(()).unwrap()));
    /// let block = store.get::<u8>().unwrap();
    /// assert!(store.want(1));                    // nothing is free
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| drop(block));
    ///     wait.recv().unwrap();
    ///     assert!(!store.want(1));               // now there is
    /// });
    /// # Ok::<(), onbeat_queue::StoreError>(())
    /// ```
    #[must_use]
    pub fn open_with(self, on_return: Arc<dyn Fn() + Send + Sync>) -> Store<M> {
        self.open_as(Some(on_return))
    }

    fn open_as(self, on_return: Option<OnReturn>) -> Store<M> {
        let home = self.home;
        std::mem::forget(self);
        // SAFETY: the seed was the only handle, and no block was taken yet.
        unsafe { Home::open(home, on_return) };
        Store { home, copies: Cell::new(0), refused: Cell::new(0) }
    }
}

impl<M: Meta> Drop for Seed<M> {
    fn drop(&mut self) {
        // SAFETY: the seed is the only handle to its home and is not used again.
        unsafe { Home::close(self.home) };
    }
}

/// A fixed number of equal memory blocks, owned by the thread that opened it, or by the
/// [`Identity`](crate::Identity) that the thread wore.
///
/// [`get`](Store::get) takes the block that was returned last (it is still in the cache); blocks dropped on
/// other threads come back oldest first. The memory lives until the store and the last block are gone.
///
/// ```
/// # use onbeat_queue::{Meta, Seed};
/// # #[derive(Default, Clone)] struct Label(u64);
/// # impl Meta for Label { fn reset(&mut self) { self.0 = 0 } }
/// let store = Seed::<Label>::new(2, 64)?.open();
/// let mut a = store.get::<f32>().unwrap();
/// assert_eq!((a.capacity(), a.len()), (16, 16));
/// a.edit().unwrap().fill(1.0);
/// let b = a.clone();                        // shared: a count, not a copy
/// assert!(a.edit().is_none());
/// store.make_unique(&mut a).unwrap()[0] = 2.0;
/// assert_eq!((a[0], b[0], store.copies()), (2.0, 1.0, 1));
/// assert!(store.get::<f32>().is_none());    // both blocks are out
/// drop(b);
/// assert!(store.get::<f32>().is_some());
/// # Ok::<(), onbeat_queue::StoreError>(())
/// ```
pub struct Store<M: Meta> {
    home: NonNull<Home<M>>,
    copies: Cell<u64>,
    refused: Cell<u64>,
}

// SAFETY: only the thread that wears the number of the home touches the free list (`at_home` checks it), one
// thread at a time; handing the number on hands the list on with it. The counters go with `self`, which is
// not `Sync`. Blocks that are out are `Send` by their own argument.
unsafe impl<M: Meta> Send for Store<M> {}

impl<M: Meta> Store<M> {
    /// Takes a block whose length is its capacity; `None` when all are out. Its samples have their old
    /// values; its meta value is reset.
    ///
    /// # Panics
    /// If `T` has no size or is aligned to more than 64 bytes (at compile time), or on a thread that does not
    /// own the store.
    #[inline]
    pub fn get<T: Pod>(&self) -> Option<Block<T, M>> {
        let block = self.get_if_free();
        if block.is_none() {
            self.refused.set(self.refused.get() + 1);
        }
        block
    }

    /// As [`get`](Store::get), for callers that can do without a block: a failure does not count as
    /// [refused](Store::refused).
    ///
    /// # Panics
    /// As [`get`](Store::get).
    #[inline]
    pub fn get_if_free<T: Pod>(&self) -> Option<Block<T, M>> {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= 64) };
        self.check();
        // SAFETY: this is the thread that owns the home.
        let head = unsafe { Home::take(self.home) }?;
        // SAFETY: a block that comes out of the free list has no other handle.
        Some(unsafe { Block::from_free(head, self.block_bytes()) })
    }

    /// Returns the samples of a block for changing. A shared block is replaced by a copy first. `None` if a
    /// copy is needed and no block is left.
    #[inline]
    pub fn make_unique<'b, T: Pod>(&self, block: &'b mut Block<T, M>) -> Option<&'b mut [T]> {
        if !block.is_unique() {
            self.copy(block)?;
        }
        block.edit()
    }

    #[cold]
    fn copy<T: Pod>(&self, block: &mut Block<T, M>) -> Option<()> {
        let mut copy = self.get::<T>()?;
        if copy.capacity() < block.len() {
            return None;
        }
        copy.truncate(block.len());
        copy.edit().expect("a new block is not shared").copy_from_slice(block);
        copy.meta_mut().expect("a new block is not shared").clone_from(block.meta());
        *block = copy;
        self.copies.set(self.copies.get() + 1);
        Some(())
    }

    /// Number of free blocks, including those that other threads have returned by now.
    pub fn free(&self) -> usize {
        self.check();
        // SAFETY: this is the owning thread.
        unsafe { Home::count_free(self.home) }
    }

    /// Announces that the owner waits until `blocks` are free. True: fewer are free, and the next return from
    /// another thread calls the function given to [`Seed::open_with`], once. False: enough are free now.
    ///
    /// The request stands until it is answered, even if [`get`](Store::get) meanwhile finds a block that the
    /// owner itself dropped. So the function can be called when nobody waits any more. A return on the owning
    /// thread does not call it.
    pub fn want(&self, blocks: usize) -> bool {
        self.check();
        // SAFETY: this is the owning thread.
        unsafe { Home::want(self.home, blocks) }
    }

    /// Number of bytes of one block.
    pub fn block_bytes(&self) -> usize {
        self.home().bytes
    }

    /// Number of blocks in all.
    pub fn blocks(&self) -> usize {
        self.home().blocks
    }

    /// Most blocks that were out at once, as far as the owning thread could see: blocks dropped elsewhere
    /// count until they are fetched.
    pub fn in_use_max(&self) -> usize {
        self.check();
        // SAFETY: this is the owning thread.
        unsafe { Home::in_use_max(self.home) }
    }

    /// Number of copies made because a shared block was changed.
    pub fn copies(&self) -> u64 {
        self.copies.get()
    }

    /// Number of times that [`get`](Store::get) had no block.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }

    #[inline]
    fn at_home(&self) -> bool {
        // Relaxed: it was set before the store was made, and does not change while the store lives.
        self.home().owner.load(Ordering::Relaxed) == sync::thread_number()
    }

    #[inline]
    fn check(&self) {
        assert!(self.at_home(), "a chunk store is used on a thread that it does not belong to");
    }

    fn home(&self) -> &Home<M> {
        // SAFETY: the home lives at least until this store is dropped; its shared fields are atomics or
        // constant.
        unsafe { self.home.as_ref() }
    }
}

impl<M: Meta> Drop for Store<M> {
    fn drop(&mut self) {
        // On another thread the free list must not be touched: the memory is leaked.
        debug_assert!(self.at_home(), "a chunk store is dropped on a thread that it does not belong to");
        if self.at_home() {
            // SAFETY: this is the owning thread, and this handle is not used again.
            unsafe { Home::close(self.home) };
        }
    }
}

impl<M: Meta> fmt::Debug for Store<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({} blocks of {} bytes)", self.blocks(), self.block_bytes())
    }
}
