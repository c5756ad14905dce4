//! Chunk stores of a run: made on the starting thread, opened later on the thread of their part.

use crate::operator::chunk::Info;
use crate::plan::Plan;
use crate::run::RunError;
use crate::run::rights;
use onbeat_queue::Seed;
use onbeat_trace::record::Obtained;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// Memory of all chunk stores, and what the machine gave for it.
pub(super) struct Stores {
    /// By part, by rising size: the plan's order.
    pub seeds: Vec<Vec<Seed<Info>>>,
    pub obtained: Vec<Obtained>,
}

impl Stores {
    /// Allocates every store of the plan.
    ///
    /// # Errors
    /// [`RunError::Begin`] if a store cannot be allocated.
    pub fn make(plan: &Plan) -> Result<Self, RunError> {
        let mut seeds: Vec<Vec<Seed<Info>>> = plan.parts.iter().map(|_| Vec::new()).collect();
        let mut memory_settings = rights::StoreMemory::new(plan);
        for store in &plan.stores {
            let mut prepare = |memory: &mut [MaybeUninit<u8>]| memory_settings.prepare(store.part, memory);
            let bytes = store.quantum_bytes as usize;
            let file = if store.is_shared { file(store.chunks, bytes)? } else { None };
            let seed = match file {
                Some(file) => Seed::<Info>::in_file(file, store.chunks, bytes, &mut prepare),
                None => Seed::<Info>::new_in(store.chunks, bytes, &mut prepare),
            };
            let seed = seed.map_err(|error| RunError::Begin(error.to_string()))?;
            seeds[store.part].push(seed);
        }
        Ok(Stores { seeds, obtained: memory_settings.obtained(plan.stores.len()) })
    }
}

/// A file for a store that other processes can map; `None` if the store is too large, which its making says.
fn file(chunks: usize, bytes: usize) -> Result<Option<OwnedFd>, RunError> {
    let Some(bytes) = Seed::<Info>::file_bytes(chunks, bytes) else { return Ok(None) };
    let file = onbeat_os::shared::memory_file("onbeat-chunks", bytes).map_err(|error| {
        let text = format!("a chunk store of {bytes} bytes cannot be shared with other processes: {error}");
        RunError::Begin(text)
    })?;
    Ok(Some(file))
}
