//! Chunks for the current step, and the errors of a push.

use super::{Context, STARVED, flag};
use crate::Error;
use crate::operator::chunk::{Chunk, Info, Sample};
use onbeat_queue::Block;

impl Context {
    #[inline(always)]
    pub(crate) fn new_chunk<T: Sample>(&mut self, quantum: Option<u32>) -> Option<Chunk<T>> {
        let quantum = quantum? as usize;
        // Nearly all workers have one store.
        match self.stores.first() {
            Some(first) if first.block_bytes() == quantum => self.new_chunk_from(0),
            _ => self.new_chunk_elsewhere(quantum),
        }
    }

    /// Like [`new_chunk`](Self::new_chunk), for callers that can do without a chunk: an empty store starves
    /// nobody.
    #[inline]
    pub(crate) fn chunk_if_free<T: Sample>(&self, quantum: Option<u32>) -> Option<Chunk<T>> {
        let quantum = quantum? as usize;
        let store = self.stores.iter().find(|store| store.block_bytes() == quantum)?;
        store.get_if_free().map(Chunk::from_block)
    }

    #[inline(never)]
    fn new_chunk_elsewhere<T: Sample>(&mut self, quantum: usize) -> Option<Chunk<T>> {
        self.stores
            .iter()
            .position(|store| store.block_bytes() == quantum)
            .and_then(|at| self.new_chunk_from(at))
    }

    #[inline(always)]
    fn new_chunk_from<T: Sample>(&mut self, store: usize) -> Option<Chunk<T>> {
        let block = self.stores[store].get();
        if block.is_none() {
            self.starve(store);
        }
        block.map(Chunk::from_block)
    }

    /// Marks the current step as starved. It is repeated when chunks are back in `store`.
    #[cold]
    fn starve(&mut self, store: usize) {
        self.waiting.starved = store;
        self.hot[self.current as usize].flags |= flag::STARVED;
        if self.next < STARVED {
            self.ready.set(self.next);
        }
        self.next = STARVED;
    }

    /// Whether the current step found a store empty.
    pub(crate) fn is_starved(&self) -> bool {
        self.hot[self.current as usize].flags & flag::STARVED != 0
    }

    /// Replaces a shared block by a copy of its own, and counts the copy.
    ///
    /// # Errors
    /// If no store of this block size has a block left.
    #[cold]
    pub(crate) fn copy_chunk<T: Sample>(&self, block: &mut Block<T, Info>) -> Result<(), Error> {
        let bytes = block.block_bytes();
        let store = self.stores.iter().find(|store| store.block_bytes() == bytes);
        match store.and_then(|store| store.make_unique(block).map(|_| ())) {
            Some(()) => {
                let copies = &self.copies[self.current as usize];
                copies.set(copies.get() + 1);
                Ok(())
            }
            None => Err(Error::new(format!(
                "no chunk of {bytes} bytes is left for a copy: an operator keeps more chunks than its ports declare \
                 (`holds`)"
            ))),
        }
    }

    /// The error of a push to a full edge.
    #[cold]
    pub(crate) fn no_room(&self, edge: u32) -> Error {
        let name = &self.names.edges[edge as usize];
        if self.names.errors[edge as usize] {
            return Error::new(format!(
                "the edge {name} is full, and its `when_full` is \"error\": raise its `capacity`, or choose \"wait\" or one \
                 that drops messages"
            ));
        }
        Error::new(format!(
            "the edge {name} is full: push one message per step, or check `room` before you push more, or \
             choose another `when_full` for the edge"
        ))
    }

    /// The error of a push of a chunk with more bytes than the quantum of the edge.
    #[cold]
    pub(crate) fn over_quantum(&self, edge: u32, bytes: usize) -> Error {
        Error::new(format!(
            "a chunk of {bytes} bytes was pushed on the edge {}, whose quantum is {} bytes: raise the quantum or send \
             smaller chunks",
            self.names.edges[edge as usize], self.names.quanta[edge as usize]
        ))
    }
}
