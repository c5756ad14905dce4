//! The memory of a home: allocation, layout, release.

use super::mapped::{MappedLayout, Mapping};
use super::{BlockHead, BlockLink, Home, Local, data_offset};
use crate::store::place::stride;
use crate::store::{Meta, StoreError};
use crate::sync::atomic::{AtomicIsize, AtomicPtr, AtomicU32};
use crate::sync::{CachePadded, UnsafeCell};
use std::alloc::{Layout, alloc, dealloc};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::ptr::{NonNull, null_mut};

/// Memory of a home.
pub(in crate::store) enum HomeMemory {
    Allocated(NonNull<u8>, Layout),
    Owned(Mapping),
    /// The samples belong to another process, and are only read.
    Lent(Mapping),
}

impl<M: Meta> Home<M> {
    pub(in crate::store) fn new(
        blocks: usize,
        bytes: usize,
        prepare: &mut dyn FnMut(&mut [MaybeUninit<u8>]),
    ) -> Result<NonNull<Self>, StoreError> {
        let too_large = check(blocks, bytes)?;
        let stride = stride(data_offset::<M>(), bytes);
        let total = stride.checked_mul(blocks).ok_or(too_large)?;
        let align = align_of::<BlockHead<M>>().max(64);
        let layout = Layout::from_size_align(total, align).map_err(|_| too_large)?;
        // SAFETY: the layout has a size above 0.
        let memory =
            NonNull::new(unsafe { alloc(layout) }).ok_or(StoreError::OutOfMemory { bytes: total })?;
        // SAFETY: `total` bytes were allocated, nobody else has them, and as `MaybeUninit` they need no
        // value.
        prepare(unsafe { std::slice::from_raw_parts_mut(memory.as_ptr().cast::<MaybeUninit<u8>>(), total) });
        // SAFETY: as above.
        unsafe { memory.write_bytes(0, total) };
        // SAFETY: the allocation has `blocks` times `stride` bytes, which are a multiple of 64 apart.
        Ok(unsafe { Self::furnish(HomeMemory::Allocated(memory, layout), memory, stride, (blocks, bytes)) })
    }

    /// A home in a file that other processes may map too. If `is_lent`, the samples are those of another
    /// process.
    pub(in crate::store) fn mapped(
        file: OwnedFd,
        blocks: usize,
        bytes: usize,
        is_lent: bool,
        prepare: &mut dyn FnMut(&mut [MaybeUninit<u8>]),
    ) -> Result<NonNull<Self>, StoreError> {
        let too_large = check(blocks, bytes)?;
        let layout = MappedLayout::new(blocks, bytes).ok_or(too_large)?;
        let mapped = if is_lent { Mapping::lent(file, layout) } else { Mapping::owned(file, layout) };
        let mapping = mapped.map_err(|error| StoreError::NotMapped {
            bytes: layout.total(),
            code: error.raw_os_error().unwrap_or(0),
        })?;
        let (base, stride) = (mapping.base, layout.stride());
        if !is_lent {
            // SAFETY: the whole mapping is writable, and nobody else has it yet.
            let all = unsafe {
                std::slice::from_raw_parts_mut(base.as_ptr().cast::<MaybeUninit<u8>>(), layout.total())
            };
            prepare(all);
            // So that the pages exist.
            all.fill(MaybeUninit::new(0));
        }
        let offset = layout.page.checked_sub(data_offset::<M>()).ok_or(too_large)?;
        // SAFETY: the head of the first block ends where its samples begin, one page behind the base.
        let first = unsafe { base.add(offset) };
        let memory = if is_lent { HomeMemory::Lent(mapping) } else { HomeMemory::Owned(mapping) };
        // SAFETY: each head lies in a writable page before its samples; strides are whole pages.
        Ok(unsafe { Self::furnish(memory, first, stride, (blocks, bytes)) })
    }

    /// Makes heads, links and the home.
    ///
    /// # Safety
    /// The head of block `n` can be written `n` times `stride` bytes behind `first`, for all blocks; these
    /// places are aligned, in nobody's use, and live as long as `memory`.
    unsafe fn furnish(
        memory: HomeMemory,
        first: NonNull<u8>,
        stride: usize,
        (blocks, bytes): (usize, usize),
    ) -> NonNull<Self> {
        let is_lent = matches!(memory, HomeMemory::Lent(_));
        let at = |index: usize| {
            // SAFETY: `index < blocks`, so this is the place of a head.
            unsafe { first.add(index * stride) }.cast::<BlockHead<M>>()
        };
        let links = (0..blocks).map(|index| BlockLink { next: UnsafeCell::new(null_mut()), head: at(index) });
        let links = NonNull::from(Box::leak(links.collect::<Box<[BlockLink<M>]>>()));
        let home = NonNull::from(Box::leak(Box::new(Home {
            owner: AtomicU32::new(0),
            blocks,
            bytes,
            memory,
            links,
            local: UnsafeCell::new(Local { free: null_mut(), count: blocks, fewest: blocks }),
            on_return: None,
            remote: CachePadded::new(AtomicPtr::new(null_mut())),
            remaining: AtomicIsize::new(0),
        })));
        let mut free = null_mut();
        for index in (0..blocks).rev() {
            // SAFETY: `index < blocks`, which is the number of links.
            let link = unsafe { links.cast::<BlockLink<M>>().add(index) };
            let value = BlockHead {
                refs: AtomicU32::new(0),
                len_bytes: UnsafeCell::new(0),
                bytes: bytes as u32,
                is_lent,
                home,
                link,
                meta: UnsafeCell::new(M::default()),
            };
            // SAFETY: the place is aligned, large enough and not yet in use.
            unsafe { at(index).write(value) };
            // SAFETY: nobody else has the links yet.
            unsafe { link.as_ref() }.next.with_mut(|next| {
                // SAFETY: as above.
                unsafe { *next = free }
            });
            free = link.as_ptr();
        }
        // SAFETY: nobody else has the home yet.
        unsafe { home.as_ref() }.local.with_mut(|local| {
            // SAFETY: as above.
            unsafe { (*local).free = free }
        });
        home
    }

    /// # Safety
    /// This is the last access to the home.
    #[cold]
    pub(super) unsafe fn free(this: NonNull<Self>) {
        // SAFETY: the home was made by `Box::leak`, and this is the last access.
        let home = unsafe { Box::from_raw(this.as_ptr()) };
        // SAFETY: the links were made by `Box::leak`, and no other access follows.
        let links = unsafe { Box::from_raw(home.links.as_ptr()) };
        for link in &links {
            // SAFETY: every head was written when the home was made, and is not used again.
            unsafe { link.head.drop_in_place() };
        }
        match home.memory {
            // SAFETY: allocated with this layout.
            HomeMemory::Allocated(memory, layout) => unsafe { dealloc(memory.as_ptr(), layout) },
            HomeMemory::Owned(mapping) | HomeMemory::Lent(mapping) => drop(mapping),
        }
    }
}

/// Refuses a store without bytes. Returns the error for one that is too large.
fn check(blocks: usize, bytes: usize) -> Result<StoreError, StoreError> {
    if blocks == 0 || bytes == 0 {
        return Err(StoreError::Empty);
    }
    let too_large = StoreError::TooLarge { blocks, bytes };
    if u32::try_from(bytes).is_err() { Err(too_large) } else { Ok(too_large) }
}
