//! Chunks of another process.

use super::chunk::{Chunk, Info, Sample};
use crate::Error;
use onbeat_queue::LentStore;
use std::os::fd::OwnedFd;

/// The chunks of another process, whose store is in a file (see [`Chunk::place`]). They are read where they
/// are; an operator that changes one gets a copy, as of every shared chunk.
///
/// It belongs to the worker of the operator that opens it in a step. Drop it there, in
/// [`stop`](crate::Operator::stop) at the latest.
#[derive(Debug)]
pub struct LentChunks(LentStore<Info>);

impl LentChunks {
    /// Maps a file with `chunks` chunks of `bytes` bytes. It must be sealed against changes of its size; its
    /// owner must not change a chunk that is lent.
    ///
    /// # Errors
    /// If the file is not sealed, is too short, or cannot be mapped.
    pub fn open(file: OwnedFd, chunks: usize, bytes: usize) -> Result<Self, Error> {
        let cannot = |error| Error::with_source("cannot borrow chunks of another process", error);
        let found = onbeat_os::shared::sealed_bytes(&file).map_err(cannot)?;
        let needed = onbeat_queue::Seed::<Info>::file_bytes(chunks, bytes);
        if needed.is_none_or(|needed| found < needed as u64) {
            return Err(Error::new(format!(
                "the file of {found} bytes that came is too short for {chunks} chunks of {bytes} bytes"
            )));
        }
        LentStore::open(file, chunks, bytes).map(LentChunks).map_err(|error| Error::new(error.to_string()))
    }

    /// Hands out a chunk with its first `samples` samples. `None` if there is no such chunk, or it has not
    /// come back since the last time.
    pub fn lend<T: Sample>(
        &self,
        index: usize,
        samples: usize,
        describe: impl FnOnce(&mut Info),
    ) -> Option<Chunk<T>> {
        let bytes = samples.saturating_mul(size_of::<T>());
        self.0.lend(index, bytes, describe).map(Chunk::from_block)
    }

    /// Whether a chunk is not lent, or has come back.
    pub fn is_back(&self, index: usize) -> bool {
        self.0.is_back(index)
    }
}
