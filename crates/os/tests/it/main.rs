//! Tests of the system's interface, on this kernel.
//!
//! Apart: `memory_lock`, because locked memory belongs to the whole process.

mod ftrace;
mod knob;
mod park;
mod perf;
mod signal;
mod socket;
mod terminal;
mod tsc;
