//! Tests of the queues against plain references, and stress tests (`ONBEAT_STRESS_SECONDS` makes them
//! longer).
//!
//! In a binary of its own: `queue_core`, which `ci/valgrind` runs.
#![cfg(not(loom))]

mod inbox;
mod lossy;
mod ranges;
mod ring;
mod spsc;
mod store;
mod stress;
mod task_pool;
mod ticket;
