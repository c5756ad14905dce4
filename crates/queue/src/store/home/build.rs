//! The memory of a home: allocation, layout, release.

use super::{BlockHead, BlockLink, Home, Local, data_offset};
use crate::store::place::stride;
use crate::store::{Meta, StoreError};
use crate::sync::atomic::{AtomicIsize, AtomicPtr, AtomicU32};
use crate::sync::{CachePadded, UnsafeCell};
use std::alloc::{Layout, alloc, dealloc};
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};

impl<M: Meta> Home<M> {
    pub(in crate::store) fn new(
        blocks: usize,
        bytes: usize,
        prepare: &mut dyn FnMut(&mut [MaybeUninit<u8>]),
    ) -> Result<NonNull<Self>, StoreError> {
        if blocks == 0 || bytes == 0 {
            return Err(StoreError::Empty);
        }
        let too_large = StoreError::TooLarge { blocks, bytes };
        if u32::try_from(bytes).is_err() {
            return Err(too_large);
        }
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
        let at = |index: usize| {
            // SAFETY: `index < blocks`, so this stays inside the allocation.
            unsafe { memory.add(index * stride) }.cast::<BlockHead<M>>()
        };
        let links = (0..blocks).map(|index| BlockLink { next: UnsafeCell::new(null_mut()), head: at(index) });
        let links = NonNull::from(Box::leak(links.collect::<Box<[BlockLink<M>]>>()));
        let home = NonNull::from(Box::leak(Box::new(Home {
            owner: AtomicU32::new(0),
            blocks,
            bytes,
            memory,
            layout,
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
                home,
                link,
                meta: UnsafeCell::new(M::default()),
            };
            // SAFETY: the place is aligned (the stride is a multiple of 64), large enough and not yet in use.
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
        Ok(home)
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
        // SAFETY: allocated with this layout.
        unsafe { dealloc(home.memory.as_ptr(), home.layout) };
    }
}
