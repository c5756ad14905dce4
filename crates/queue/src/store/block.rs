//! A handle to one block of a store.

use super::Meta;
use super::home::{BlockHead, Home, data_offset};
use crate::fetch::{MemoryRange, fetch_to_write};
use crate::sync::atomic::{Ordering, fence};
use bytemuck::Pod;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// One block of a [`Store`](super::Store), one word wide: samples of type `T` and a meta value.
///
/// It reads like a slice. Cloning shares it; dropping the last handle brings it home, from any thread. It can be
/// changed while it is unique.
pub struct Block<T: Pod, M: Meta> {
    head: NonNull<BlockHead<M>>,
    samples: PhantomData<T>,
}

// SAFETY: the samples are plain data (`Pod`) behind a reference count, read by all handles and written by a unique one
// only; the meta is `Send + Sync`.
unsafe impl<T: Pod + Send + Sync, M: Meta> Send for Block<T, M> {}
// SAFETY: as above.
unsafe impl<T: Pod + Send + Sync, M: Meta> Sync for Block<T, M> {}

/// Most bytes of samples that [`Block::fetch`] asks for: from there on the processor sees for itself what comes next. Measured; with four
/// times as many it is slower.
const FIRST: usize = 512;

impl<T: Pod, M: Meta> Block<T, M> {
    /// One with so many bytes of samples. (They stand in the head, too, which may have to come from another core first.)
    ///
    /// # Safety
    /// `head` is a block of a live home that is in no list and has no handle.
    #[inline]
    pub(super) unsafe fn from_free(head: NonNull<BlockHead<M>>, bytes: usize) -> Self {
        // SAFETY: the head is valid while its home is.
        let free = unsafe { head.as_ref() };
        // Relaxed: the block is ours alone; whoever else gets a handle gets it through us.
        free.refs.store(1, Ordering::Relaxed);
        let len = bytes / size_of::<T>();
        free.len.with_mut(|field| {
            // SAFETY: no other handle.
            unsafe { *field = len as u32 }
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

    /// Asks for what a thread needs first of a block that another thread wrote: its head, where handles are counted, to write, and its
    /// samples, of which there are so many bytes at most, or the first 512 of these, to read. They come over together while the caller goes
    /// on. A hint.
    #[inline(always)]
    pub fn fetch(&self, bytes: usize) {
        fetch_to_write(self.head());
        // How many there are is not looked up: that would be the first miss. And not more: behind them lies another thread's block.
        MemoryRange::at(self.data(), bytes.min(FIRST)).fetch_to_read();
    }

    /// Samples that fit.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.head().bytes as usize / size_of::<T>()
    }

    /// Samples that are valid.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "`is_empty` comes from the slice it derefs to")]
    pub fn len(&self) -> usize {
        self.head().len.with(|len| {
            // SAFETY: it is changed by a unique handle only, and this is a handle.
            unsafe { *len as usize }
        })
    }

    /// Whether this is the only handle.
    #[inline(always)]
    pub fn is_unique(&self) -> bool {
        // Acquire, partner: the Release of `drop`: what the other handles did with the block comes before our edits.
        self.head().refs.load(Ordering::Acquire) == 1
    }

    /// The samples, to change; `None` while another handle is there.
    #[inline]
    pub fn edit(&mut self) -> Option<&mut [T]> {
        if !self.is_unique() {
            return None;
        }
        // SAFETY: unique and `&mut self`: nobody else reads or writes. `len` samples fit, and any bytes are a `T`.
        Some(unsafe { std::slice::from_raw_parts_mut(self.data(), self.len()) })
    }

    /// Shortens to `len` samples; more than it has is no change.
    ///
    /// # Panics
    /// When another handle is there: they share the length.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len() {
            return;
        }
        assert!(self.is_unique(), "a shared block cannot be shortened");
        self.head().len.with_mut(|field| {
            // SAFETY: unique.
            unsafe { *field = len as u32 }
        });
    }

    /// As if it had just been taken from its store: all samples that fit are there, with whatever values, and what travels with them is
    /// reset. False, and no change, while another handle is there.
    #[inline]
    pub fn renew(&mut self) -> bool {
        let len = self.capacity() as u32;
        let Some(meta) = self.meta_mut() else { return false };
        meta.reset();
        self.head().len.with_mut(|field| {
            // SAFETY: unique.
            unsafe { *field = len }
        });
        true
    }

    /// What travels with the samples.
    #[inline(always)]
    pub fn meta(&self) -> &M {
        self.head().meta.with(|meta| {
            // SAFETY: it is changed by a unique handle with `&mut self` only.
            unsafe { &*meta }
        })
    }

    /// What travels with the samples, to change; `None` while another handle is there.
    #[inline]
    pub fn meta_mut(&mut self) -> Option<&mut M> {
        if !self.is_unique() {
            return None;
        }
        // SAFETY: unique and `&mut self`.
        Some(self.head().meta.with_mut(|meta| unsafe { &mut *meta }))
    }

    /// The samples and what travels with them, both to change; `None` while another handle is there.
    #[inline]
    pub fn parts(&mut self) -> Option<(&mut [T], &mut M)> {
        if !self.is_unique() {
            return None;
        }
        // SAFETY: unique and `&mut self`: nobody else reads or writes. `len` samples fit, and any bytes are a `T`.
        let samples = unsafe { std::slice::from_raw_parts_mut(self.data(), self.len()) };
        // SAFETY: as above; the meta lies in the head, and the samples behind it.
        Some((samples, self.head().meta.with_mut(|meta| unsafe { &mut *meta })))
    }

    /// Bytes of the block behind this handle, which is the quantum of its store.
    #[inline(always)]
    pub fn block_bytes(&self) -> usize {
        self.head().bytes as usize
    }
}

impl<T: Pod, M: Meta> Deref for Block<T, M> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` samples are there and any bytes are a `T`; nobody writes while `&self` is borrowed, because
        // writing takes a unique handle and `&mut`.
        unsafe { std::slice::from_raw_parts(self.data(), self.len()) }
    }
}

impl<T: Pod, M: Meta> Clone for Block<T, M> {
    #[inline]
    fn clone(&self) -> Self {
        // Relaxed: a new handle is made from one that is there, and travels by other means.
        let before = self.head().refs.fetch_add(1, Ordering::Relaxed);
        assert!(before < u32::MAX / 2, "a block is shared more than 2^31 times");
        Block { head: self.head, samples: PhantomData }
    }
}

impl<T: Pod, M: Meta> Drop for Block<T, M> {
    #[inline]
    fn drop(&mut self) {
        let refs = &self.head().refs;
        // Acquire, partner: the Release below on other threads. A count of 1 cannot rise behind our back, so the last
        // handle needs no read-modify-write.
        if refs.load(Ordering::Acquire) != 1 {
            // Release, partner: the Acquire fence of the last one to go.
            if refs.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            fence(Ordering::Acquire);
        }
        // SAFETY: the last handle is going, and the block is out until this call.
        unsafe { Home::give_back(self.head) };
    }
}

impl<T: Pod + fmt::Debug, M: Meta> fmt::Debug for Block<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
