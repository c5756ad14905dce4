//! The command `onbeat` with the built-in operators.
#![forbid(unsafe_code)]

use onbeat::allocations::CountingAllocator;
use std::process::ExitCode;

/// Counts allocations, for the records of runs.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::system();

fn main() -> ExitCode {
    onbeat_cli::main(&onbeat::operators::registry())
}
