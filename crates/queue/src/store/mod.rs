//! Blocks of memory that are handed out, shared, and come home by themselves. See `README.md` beside this file for
//! the states, the protocol and the races it closes.

mod block;
mod home;
#[cfg(all(loom, test))]
mod model;
mod place;

pub use block::Block;

use crate::sync;
use crate::sync::atomic::Ordering;
use bytemuck::Pod;
use home::{BlockLink, Home, HomeComing, data_offset};
use place::stride;
use std::cell::Cell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

/// What travels in the head of a block beside its samples. It is made once per block and used again.
pub trait Meta: Default + Clone + Send + Sync + 'static {
    /// Forgets what was set, and keeps its memory where it can: called when the block comes home, and before it is filled again
    /// without that.
    fn reset(&mut self);
}

/// Why a store could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreError {
    /// No block, or blocks of no bytes.
    Empty,
    /// More bytes than an address space or a length field can hold.
    TooLarge {
        /// Blocks asked for.
        blocks: usize,
        /// Bytes per block asked for.
        bytes: usize,
    },
    /// The system has not that much memory.
    OutOfMemory {
        /// Bytes asked for.
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
            StoreError::OutOfMemory { bytes } => {
                write!(f, "no memory for a chunk store of {bytes} bytes: lower the capacities or the quantum")
            }
        }
    }
}

impl std::error::Error for StoreError {}

/// A store that no thread owns yet: allocated where it is convenient, opened where it is used.
pub struct Seed<M: Meta> {
    home: NonNull<Home<M>>,
}

// SAFETY: a seed is the only handle to its home: no block is out and no thread owns it.
unsafe impl<M: Meta> Send for Seed<M> {}

impl<M: Meta> Seed<M> {
    /// Allocates `blocks` blocks of `bytes` bytes each, 64-byte aligned and zeroed (so their pages are there).
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn new(blocks: usize, bytes: usize) -> Result<Self, StoreError> {
        Self::new_in(blocks, bytes, &mut |_| ())
    }

    /// As [`new`](Seed::new), with a look at the memory before its first use: to say where its pages are to lie.
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

    /// Bytes that each block takes, with its head, its link, and what lies between it and the next one, when `bytes` of it are for samples.
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

    /// Makes the calling thread the owner, and `home_coming` what tells it that a block came home which it
    /// [wanted](Store::want).
    ///
    /// It is called on the thread that dropped the block, so it should do no more than wake somebody. It may be
    /// called, and be dropped, when the store is gone already.
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
    pub fn open_with(self, home_coming: Arc<dyn Fn() + Send + Sync>) -> Store<M> {
        self.open_as(Some(home_coming))
    }

    fn open_as(self, home_coming: Option<HomeComing>) -> Store<M> {
        let home = self.home;
        std::mem::forget(self);
        // SAFETY: the seed was the only handle, and no block was taken yet.
        unsafe { Home::open(home, home_coming) };
        Store { home, copies: Cell::new(0), refused: Cell::new(0) }
    }
}

impl<M: Meta> Drop for Seed<M> {
    fn drop(&mut self) {
        // SAFETY: the seed is the only handle to its home and is not used again.
        unsafe { Home::close(self.home) };
    }
}

/// A fixed number of equal memory blocks, owned by the thread that opened it, or by the [`Identity`](crate::Identity) that it
/// wore.
///
/// [`get`](Store::get) takes the block that came home last (it is still in the cache); blocks that were dropped on
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

// SAFETY: the free list is touched only on the thread that wears the number of the home (`at_home` is asked first), which one
// thread does at a time; whoever hands the number on hands the list on with it. The counters go with `self`, which is
// not `Sync`. Blocks out there are `Send` by their own argument.
unsafe impl<M: Meta> Send for Store<M> {}

impl<M: Meta> Store<M> {
    /// A block whose length is its capacity, or `None` when all are out. Its samples are whatever was there before;
    /// its meta is reset.
    ///
    /// # Panics
    /// When `T` has no size or is aligned to more than 64 bytes (at compile time), or on a thread that is not the store's.
    #[inline]
    pub fn get<T: Pod>(&self) -> Option<Block<T, M>> {
        let block = self.get_if_free();
        if block.is_none() {
            self.refused.set(self.refused.get() + 1);
        }
        block
    }

    /// As [`get`](Store::get), for who can do without: it does not count as [refused](Store::refused).
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

    /// The samples of a block, to change: its own when it is not shared, else those of a copy that takes its place.
    /// `None` when a copy is needed and no block is left.
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

    /// Blocks that are free, those included that other threads have brought home by now.
    pub fn free(&self) -> usize {
        self.check();
        // SAFETY: this is the owning thread.
        unsafe { Home::count_free(self.home) }
    }

    /// Announces that the owner waits until `blocks` are free. True: fewer are, and when the next one comes home from another
    /// thread, the function given to [`Seed::open_with`] is called, once. False: there are enough now.
    ///
    /// The wish stands until it is fulfilled, also when [`get`](Store::get) finds a block meanwhile that the owner
    /// itself dropped; so the function may be called when nobody waits any more. A block that comes home on the
    /// owning thread does not call it.
    pub fn want(&self, blocks: usize) -> bool {
        self.check();
        // SAFETY: this is the owning thread.
        unsafe { Home::want(self.home, blocks) }
    }

    /// Bytes of one block.
    pub fn block_bytes(&self) -> usize {
        self.home().bytes
    }

    /// Blocks in all.
    pub fn blocks(&self) -> usize {
        self.home().blocks
    }

    /// Most blocks that were out at once, as far as the owning thread could see: blocks dropped elsewhere count until
    /// they are fetched home.
    pub fn in_use_max(&self) -> usize {
        self.check();
        // SAFETY: this is the owning thread.
        unsafe { Home::in_use_max(self.home) }
    }

    /// Copies made because a shared block was to be changed.
    pub fn copies(&self) -> u64 {
        self.copies.get()
    }

    /// Times that [`get`](Store::get) had no block to give.
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
        // SAFETY: the home lives at least until this store is dropped; its shared fields are atomics or constant.
        unsafe { self.home.as_ref() }
    }
}

impl<M: Meta> Drop for Store<M> {
    fn drop(&mut self) {
        // Elsewhere its free list may not be touched: then the memory is left, which is a leak and no more.
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
