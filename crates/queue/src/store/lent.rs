//! Blocks of another process.

use super::home::Home;
use super::{Block, Meta, Seed, Store, StoreError};
use bytemuck::Pod;
use std::os::fd::OwnedFd;

/// A view of the blocks of another process, whose store is [in a file](Seed::in_file). They are read, and
/// never changed: none is [unique](Block::is_unique).
///
/// ```
/// # use onbeat_queue::{LentStore, Meta, Seed};
/// # #[derive(Default, Clone)] struct Label;
/// # impl Meta for Label { fn reset(&mut self) {} }
/// # let file = || {
/// #     let file = rustix::fs::memfd_create("doc", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
/// #     rustix::fs::ftruncate(&file, Seed::<Label>::file_bytes(2, 64).unwrap() as u64).unwrap();
/// #     file
/// # };
/// let store = Seed::<Label>::in_file(file(), 2, 64, &mut |_| ())?.open();
/// let mut block = store.get::<f32>().unwrap();
/// block.edit().unwrap().fill(1.5);
/// let place = block.place().unwrap();
///
/// // In the other process, which got the file:
/// let lent = LentStore::<Label>::open(place.file.try_clone_to_owned().unwrap(), 2, 64)?;
/// let mut view = lent.lend::<f32>(place.index, 8, |_| ()).unwrap();
/// assert_eq!(view[..], [1.5, 1.5]);
/// assert!(view.edit().is_none());
/// # Ok::<(), onbeat_queue::StoreError>(())
/// ```
#[derive(Debug)]
pub struct LentStore<M: Meta>(Store<M>);

impl<M: Meta> LentStore<M> {
    /// Maps a file with `blocks` blocks of `bytes` bytes, for the calling thread.
    ///
    /// The file must not get shorter: it should be sealed against that. While a block is lent, its owner must
    /// not change it.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn open(file: OwnedFd, blocks: usize, bytes: usize) -> Result<Self, StoreError> {
        let home = Home::mapped(file, blocks, bytes, true, &mut |_| ())?;
        Ok(LentStore(Seed { home }.open()))
    }

    /// Hands out a block, with its first `bytes` bytes as samples. `None` if there is no such block, or it
    /// has not come back since the last time.
    ///
    /// # Panics
    /// As [`Store::get`].
    pub fn lend<T: Pod>(
        &self,
        index: usize,
        bytes: usize,
        describe: impl FnOnce(&mut M),
    ) -> Option<Block<T, M>> {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= 64) };
        self.0.check();
        // SAFETY: this is the thread that owns the home.
        let head = unsafe { Home::take_at(self.0.home, index) }?;
        // SAFETY: a block that comes out of the free list has no other handle.
        let mut block = unsafe { Block::from_free(head, self.0.block_bytes()) };
        block.describe(bytes, describe);
        Some(block)
    }

    /// Whether a block is not lent, or has come back.
    ///
    /// # Panics
    /// As [`Store::get`].
    pub fn is_back(&self, index: usize) -> bool {
        self.0.check();
        // SAFETY: this is the thread that owns the home.
        unsafe { Home::is_free(self.0.home, index) }
    }
}
