//! Handles to blocks of a store.

use super::home::{BlockHead, Home, data_offset};
use super::{BlockPlace, Meta};
use crate::fetch::{MemoryRange, fetch_to_write};
use crate::sync::atomic::{Ordering, fence};
use bytemuck::Pod;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// A handle to one block of a [`Store`](super::Store), one word wide: samples of type `T` and a meta value.
///
/// It reads like a slice. A clone shares the block; dropping the last handle returns it to its store, from
/// any thread. A unique handle can change the block.
pub struct Block<T: Pod, M: Meta> {
    head: NonNull<BlockHead<M>>,
    samples: PhantomData<T>,
}

// SAFETY: the samples are plain data (`Pod`) behind a reference count. All handles read them, only a unique
// one writes them; the meta value is `Send + Sync`.
unsafe impl<T: Pod + Send + Sync, M: Meta> Send for Block<T, M> {}
// SAFETY: as above.
unsafe impl<T: Pod + Send + Sync, M: Meta> Sync for Block<T, M> {}

/// Most bytes of samples that [`Block::fetch`] prefetches: after that, the processor recognises the pattern.
/// Measured; four times as many bytes are slower.
const FIRST: usize = 512;

/// To how many bytes the samples of a block are aligned.
const ALIGN: usize = 64;

/// Bytes of the whole samples that fit into `bytes`.
const fn whole_samples<T>(bytes: usize) -> usize {
    bytes / size_of::<T>() * size_of::<T>()
}

impl<T: Pod, M: Meta> Block<T, M> {
    /// Makes a handle with `bytes` bytes of samples. (The head has that number, too, but its line may have to
    /// come from another core first.)
    ///
    /// # Safety
    /// `head` is a block of a live home, is in no list and has no handle.
    #[inline]
    pub(super) unsafe fn from_free(head: NonNull<BlockHead<M>>, bytes: usize) -> Self {
        // SAFETY: the head is valid while its home is.
        let free = unsafe { head.as_ref() };
        // Relaxed: the block is ours alone; other threads get their handles through us.
        free.refs.store(1, Ordering::Relaxed);
        let whole = whole_samples::<T>(bytes);
        free.len_bytes.with_mut(|field| {
            // SAFETY: no other handle.
            unsafe { *field = whole as u32 }
        });
        Block { head, samples: PhantomData }
    }

    #[inline(always)]
    fn head(&self) -> &BlockHead<M> {
        // SAFETY: the head is valid while a handle is out.
        unsafe { self.head.as_ref() }
    }

    #[inline(always)]
    fn data(&self) -> *mut T {
        // SAFETY: the samples follow the head in the same allocation.
        unsafe { self.head.cast::<u8>().add(data_offset::<M>()) }.as_ptr().cast()
    }

    /// Prefetches what a thread first needs of a block that another thread wrote: its head, which counts
    /// handles, for writing, and its samples for reading. There are at most `bytes` bytes of samples, and the
    /// first 512 are fetched. All lines arrive together while the caller goes on. A hint.
    #[inline(always)]
    pub fn fetch(&self, bytes: usize) {
        fetch_to_write(self.head());
        // The length is not read: that would be the first miss. Not more bytes: the next block may belong to
        // another thread.
        MemoryRange::at(self.data(), bytes.min(FIRST)).fetch_to_read();
    }

    /// Number of samples that fit.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.head().bytes as usize / size_of::<T>()
    }

    /// Number of valid samples.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "`is_empty` comes from the slice it derefs to")]
    pub fn len(&self) -> usize {
        let bytes = self.head().len_bytes.with(|len| {
            // SAFETY: it is changed by a unique handle only, and this is a handle.
            unsafe { *len as usize }
        });
        bytes / size_of::<T>()
    }

    /// Shows the block as samples of another type. Bytes that do not make a whole sample are out of view.
    #[inline(always)]
    pub fn cast<U: Pod>(self) -> Block<U, M> {
        const { assert!(align_of::<U>() <= ALIGN, "samples are aligned to 64 bytes") };
        let head = self.head;
        // The handle goes on under another type: it is counted once.
        std::mem::forget(self);
        Block { head, samples: PhantomData }
    }

    /// Whether this is the only handle.
    #[inline(always)]
    pub fn is_unique(&self) -> bool {
        // Acquire, partner: the Release of `drop`: other handles' accesses come before our edits. The process
        // that owns a lent block has it, too.
        self.head().refs.load(Ordering::Acquire) == 1 && !self.head().is_lent
    }

    /// Returns the samples for changing; `None` while another handle exists.
    #[inline]
    pub fn edit(&mut self) -> Option<&mut [T]> {
        if !self.is_unique() {
            return None;
        }
        // SAFETY: unique and `&mut self`: nobody else reads or writes. `len` samples fit, and any bytes are a
        // `T`.
        Some(unsafe { std::slice::from_raw_parts_mut(self.data(), self.len()) })
    }

    /// Shortens the block to `len` samples. Does nothing if it has no more than that.
    ///
    /// # Panics
    /// If another handle exists: they share the length.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len() {
            return;
        }
        assert!(self.is_unique(), "a shared block cannot be shortened");
        let bytes = len * size_of::<T>();
        self.head().len_bytes.with_mut(|field| {
            // SAFETY: unique.
            unsafe { *field = bytes as u32 }
        });
    }

    /// Resets the block as if it came from its store: all samples that fit are valid, with any values, and
    /// the meta value is reset. False, without a change, while another handle exists.
    #[inline]
    pub fn renew(&mut self) -> bool {
        let whole = whole_samples::<T>(self.block_bytes());
        let Some(meta) = self.meta_mut() else { return false };
        meta.reset();
        self.head().len_bytes.with_mut(|field| {
            // SAFETY: unique.
            unsafe { *field = whole as u32 }
        });
        true
    }

    /// Returns the meta value, which travels with the samples.
    #[inline(always)]
    pub fn meta(&self) -> &M {
        self.head().meta.with(|meta| {
            // SAFETY: only a unique handle with `&mut self` changes it.
            unsafe { &*meta }
        })
    }

    /// Returns the meta value for changing; `None` while another handle exists.
    #[inline]
    pub fn meta_mut(&mut self) -> Option<&mut M> {
        if !self.is_unique() {
            return None;
        }
        // SAFETY: unique and `&mut self`.
        Some(self.head().meta.with_mut(|meta| unsafe { &mut *meta }))
    }

    /// Returns the samples and the meta value for changing; `None` while another handle exists.
    #[inline]
    pub fn parts(&mut self) -> Option<(&mut [T], &mut M)> {
        if !self.is_unique() {
            return None;
        }
        // SAFETY: unique and `&mut self`: nobody else reads or writes. `len` samples fit, and any bytes are a
        // `T`.
        let samples = unsafe { std::slice::from_raw_parts_mut(self.data(), self.len()) };
        // SAFETY: as above; the meta value is in the head, and the samples come after it.
        Some((samples, self.head().meta.with_mut(|meta| unsafe { &mut *meta })))
    }

    /// Describes a lent block that was just taken, before anybody else sees it.
    pub(super) fn describe(&mut self, bytes: usize, describe: impl FnOnce(&mut M)) {
        debug_assert!(self.head().refs.load(Ordering::Relaxed) == 1);
        let whole = whole_samples::<T>(bytes.min(self.block_bytes()));
        self.head().len_bytes.with_mut(|field| {
            // SAFETY: this is the only handle, by `&mut self` and the caller's promise.
            unsafe { *field = whole as u32 }
        });
        self.head().meta.with_mut(|meta| {
            // SAFETY: as above.
            describe(unsafe { &mut *meta });
        });
    }

    /// Returns where another process finds the samples; `None` if the store is in no file.
    pub fn place(&self) -> Option<BlockPlace<'_>> {
        // SAFETY: the home lives as long as one of its blocks is out.
        let home = unsafe { self.head().home.as_ref() };
        let (file, index) = home.place_of(self.head())?;
        let store = self.head().home.as_ptr() as usize;
        Some(BlockPlace { store, file, index, blocks: home.blocks, block_bytes: home.bytes })
    }

    /// Returns the bytes of the block, which is the quantum of its store.
    #[inline(always)]
    pub fn block_bytes(&self) -> usize {
        self.head().bytes as usize
    }
}

impl<T: Pod, M: Meta> Deref for Block<T, M> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` samples are valid and any bytes are a `T`. Nobody writes while `&self` is borrowed,
        // because writing takes a unique handle and `&mut`.
        unsafe { std::slice::from_raw_parts(self.data(), self.len()) }
    }
}

impl<T: Pod, M: Meta> Clone for Block<T, M> {
    #[inline]
    fn clone(&self) -> Self {
        // Relaxed: a new handle is made from an existing one, and reaches other threads by other means.
        let before = self.head().refs.fetch_add(1, Ordering::Relaxed);
        assert!(before < u32::MAX / 2, "a block is shared more than 2^31 times");
        Block { head: self.head, samples: PhantomData }
    }
}

impl<T: Pod, M: Meta> Drop for Block<T, M> {
    #[inline]
    fn drop(&mut self) {
        let refs = &self.head().refs;
        // Acquire, partner: the Release below on other threads. A count of 1 cannot rise, because this is the
        // only handle, so the last handle needs no read-modify-write.
        if refs.load(Ordering::Acquire) != 1 {
            // Release, partner: the Acquire fence of the last handle.
            if refs.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            fence(Ordering::Acquire);
        }
        // SAFETY: this is the last handle, and the block is out until this call.
        unsafe { Home::give_back(self.head) };
    }
}

impl<T: Pod + fmt::Debug, M: Meta> fmt::Debug for Block<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
