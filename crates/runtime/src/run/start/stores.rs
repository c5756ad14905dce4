//! Chunk stores of a run: made on the starting thread, opened later on the thread of their part.

use crate::operator::chunk::Info;
use crate::plan::Plan;
use crate::run::RunError;
use crate::run::rights;
use onbeat_queue::Seed;
use onbeat_trace::record::Obtained;

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
            let seed = Seed::<Info>::new_in(store.chunks, store.quantum_bytes as usize, &mut |memory| {
                memory_settings.prepare(store.part, memory);
            })
            .map_err(|error| RunError::Begin(error.to_string()))?;
            seeds[store.part].push(seed);
        }
        Ok(Stores { seeds, obtained: memory_settings.obtained(plan.stores.len()) })
    }
}
