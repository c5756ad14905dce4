//! Tests of the runtime, through the public interface.
//!
//! In binaries of their own: `no_allocation` and `waves`, which replace the allocator of their processes;
//! `given_back`, which compares threads and locked memory of the whole process; `anyhow`, which measures the
//! memory of the whole process.

// What the derive macro writes begins at `::onbeat`.
extern crate onbeat_runtime as onbeat;

mod aligned;
mod beside;
mod chains;
mod conditions;
mod conformance;
mod control;
mod declared;
mod endings;
mod explain;
mod faults;
mod files;
mod filled_again;
mod graph_errors;
#[path = "random/kernels.rs"]
mod kernels;
mod limits;
mod messages;
mod ones;
#[path = "random/operators.rs"]
mod operators;
mod out_of_place;
mod parking;
mod passes;
mod pinned;
mod pipeline;
#[path = "random/reference.rs"]
mod reference;
mod replicated;
mod response;
mod serve;
#[path = "random/spec.rs"]
mod spec;
#[path = "random/splitmix.rs"]
mod splitmix;
mod tails;
mod testing;
mod two_workers;
mod watchdog;
mod ways;
