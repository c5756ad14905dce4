//! Memory of a store that two processes map: one owns the blocks, and the other one borrows them.
//!
//! ```text
//! file      │ page │ samples of block 0 │ page │ samples of block 1 │ ...
//! owner     │ head │ read and written   │ head │ read and written   │
//! borrower  │ head │ read only          │ head │ read only          │
//! ```
//!
//! Samples begin on a page, and the head of a block is at the end of the page before it. The owner maps the
//! whole file. The borrower maps pages of its own for the heads, since those have addresses and counts of its
//! process, and the samples for reading.

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

/// Distances and sizes in the file.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct MappedLayout {
    pub page: usize,
    /// Bytes of the samples of a block, in whole pages.
    samples: usize,
    pub blocks: usize,
}

impl MappedLayout {
    /// The layout for blocks of this many bytes; `None` if it is too large.
    pub fn new(blocks: usize, bytes: usize) -> Option<Self> {
        let page = rustix::param::page_size();
        let layout = MappedLayout { page, samples: bytes.checked_next_multiple_of(page)?, blocks };
        layout.samples.checked_add(page)?.checked_mul(blocks)?;
        Some(layout)
    }

    /// Bytes from one block to the next.
    pub fn stride(self) -> usize {
        self.page + self.samples
    }

    /// Bytes of the file.
    pub fn total(self) -> usize {
        self.stride() * self.blocks
    }
}

/// A mapping, until it is dropped.
#[derive(Debug)]
pub(in crate::store) struct Mapping {
    pub base: NonNull<u8>,
    bytes: usize,
    file: OwnedFd,
}

// SAFETY: the mapping belongs to this value; who may use its bytes is argued where that happens.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the whole file, for its owner.
    pub fn owned(file: OwnedFd, layout: MappedLayout) -> io::Result<Self> {
        let (bytes, rights) = (layout.total(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: the kernel chooses the address, so nothing of this process is replaced.
        let base = unsafe { mmap(null_mut(), bytes, rights, MapFlags::SHARED, &file, 0) }?;
        Ok(Mapping { base: NonNull::new(base.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?, bytes, file })
    }

    /// Maps the samples for reading, and own memory for the heads, for a borrower.
    pub fn lent(file: OwnedFd, layout: MappedLayout) -> io::Result<Self> {
        let (bytes, rights) = (layout.total(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: the kernel chooses the address, so nothing of this process is replaced.
        let base = unsafe { mmap_anonymous(null_mut(), bytes, rights, MapFlags::PRIVATE) }?;
        // From here on, an error unmaps it again.
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let mapping = Mapping { base, bytes, file };
        for block in 0..layout.blocks {
            let at = block * layout.stride() + layout.page;
            // SAFETY: the samples of a block lie within the mapping.
            let place = unsafe { base.add(at) };
            let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::POPULATE;
            // SAFETY: only pages of this mapping are replaced, which nobody has used yet.
            unsafe {
                mmap(place.as_ptr().cast(), layout.samples, ProtFlags::READ, flags, &mapping.file, at as u64)
            }?;
        }
        Ok(mapping)
    }

    /// The file.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range belongs to this value, and nobody refers to it any more.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}
