//! The onbeat command.
#![forbid(unsafe_code)]
fn main() {}
