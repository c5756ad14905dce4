//! Waiting on a 32-bit word, and waking its waiters: `futex(2)`, private to this process.
//!
//! The kernel compares the word with the expected value and puts the thread to sleep in one step with respect
//! to [`wake`] on the same word. So a waker that changes the word first and then wakes cannot be missed.
//! Nothing here orders other memory: the atomic operations on the word do.
//!
//! These are the raw calls. To wait for another thread use [`crate::park`].

#![allow(
    clippy::disallowed_types,
    reason = "the kernel reads this word; no model checker can stand in for it"
)]

use std::io;
use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;

use rustix::io::Errno;
use rustix::thread::futex::{Flags, wait_bitset};

use crate::clock;

/// Wakes any waiter, whatever its bits: `FUTEX_BITSET_MATCH_ANY`.
const ANY: NonZeroU32 = NonZeroU32::MAX;

/// Why [`wait`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "only the word itself says whether what was waited for has come"]
pub enum Wake {
    /// A [`wake`] reached this thread. It may have been meant for an earlier use of the same memory, so check
    /// the word again.
    Woken,
    /// The word was not `expected`: the thread did not sleep.
    Changed,
    /// The deadline has passed.
    TimedOut,
    /// A signal handler ran on this thread.
    Interrupted,
}

/// Sleeps while `word` is `expected`, until a [`wake`], a signal or `deadline_ns`.
///
/// `deadline_ns` is an absolute time on `CLOCK_MONOTONIC` (`FUTEX_WAIT_BITSET`); `None` waits without limit.
/// A deadline that has passed gives [`Wake::TimedOut`], or [`Wake::Changed`] if both hold.
///
/// # Errors
///
/// `futex(2)` documents no error for these arguments; a kernel without futexes or a seccomp filter returns
/// its own.
pub fn wait(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> io::Result<Wake> {
    let deadline = deadline_ns.map(clock::timespec);
    match wait_bitset(word, Flags::PRIVATE, expected, deadline.as_ref(), ANY) {
        Ok(()) => Ok(Wake::Woken),
        Err(Errno::AGAIN) => Ok(Wake::Changed),
        Err(Errno::TIMEDOUT) => Ok(Wake::TimedOut),
        Err(Errno::INTR) => Ok(Wake::Interrupted),
        Err(errno) => Err(errno.into()),
    }
}

/// Wakes up to `count` threads that wait on `word`, and returns their number.
///
/// `i32::MAX` wakes all; a greater `count` means the same.
///
/// # Errors
///
/// As for [`wait`].
pub fn wake(word: &AtomicU32, count: u32) -> io::Result<u32> {
    // The kernel takes a signed count and treats a negative one as 1.
    let count = count.min(i32::MAX as u32);
    if count == 0 {
        // The kernel would wake one thread even then.
        return Ok(0);
    }
    let woken = rustix::thread::futex::wake(word, Flags::PRIVATE, count)?;
    Ok(u32::try_from(woken).expect("the kernel wakes no more than it was asked to"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn a_word_that_differs_does_not_sleep() {
        assert_eq!(wait(&AtomicU32::new(1), 0, None).unwrap(), Wake::Changed);
    }

    #[test]
    fn a_deadline_in_the_past_times_out() {
        assert_eq!(wait(&AtomicU32::new(0), 0, Some(0)).unwrap(), Wake::TimedOut);
    }

    #[test]
    fn the_deadline_is_absolute_monotonic_time() {
        let deadline_ns = clock::monotonic_ns() + 3_000_000;
        let word = AtomicU32::new(0);
        while wait(&word, 0, Some(deadline_ns)).unwrap() != Wake::TimedOut {}
        assert!(clock::monotonic_ns() >= deadline_ns);
    }

    #[test]
    fn nobody_waits_nobody_wakes() {
        let word = AtomicU32::new(0);
        assert_eq!(wake(&word, u32::MAX).unwrap(), 0);
        assert_eq!(wake(&word, 0).unwrap(), 0);
    }

    #[test]
    fn a_wake_reaches_the_waiter() {
        let word = Arc::new(AtomicU32::new(0));
        let shared = Arc::clone(&word);
        let waiter = thread::spawn("waiter", move || {
            while shared.load(SeqCst) == 0 {
                let _why = wait(&shared, 0, None).unwrap();
            }
        })
        .unwrap();
        word.store(1, SeqCst);
        wake(&word, 1).unwrap();
        waiter.join().unwrap();
    }
}
