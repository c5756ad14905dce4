//! Tests of the queues against plain references, and stress tests (`ONBEAT_STRESS_SECONDS` makes them longer).
//!
//! Apart: `agenda`, which `ci/valgrind` runs.
#![cfg(not(loom))]

mod crew;
mod inbox;
mod lossy;
mod relay;
mod ring;
mod rota;
mod spsc;
mod store;
mod stress;
