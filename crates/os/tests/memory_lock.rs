//! Locking memory is for the whole process: a test binary of its own, with one test.

#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

use onbeat_os::memory::{MemoryLock, locked_bytes};

#[test]
fn memory_is_locked_as_long_as_anybody_wants_it() {
    let first = match MemoryLock::take(true) {
        Ok(lock) => lock,
        Err(error) => {
            eprintln!("skipped: memory cannot be locked here: {error}");
            return;
        }
    };
    assert!(locked_bytes() > 0);
    let second = MemoryLock::take(true).expect("what was locked once");
    drop(first);
    assert!(locked_bytes() > 0, "the other one is there");
    drop(second);
    assert_eq!(locked_bytes(), 0);
}
