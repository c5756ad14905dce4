//! Shared by the tests with threads: their duration, a watchdog, and pseudo-random numbers.
#![allow(dead_code, reason = "no test needs all of it")]

use std::sync::mpsc;
use std::time::Duration;

/// Returns the duration of a stress test: `ONBEAT_STRESS_SECONDS`, or 2 seconds.
pub fn stress_time() -> Duration {
    match std::env::var("ONBEAT_STRESS_SECONDS") {
        Ok(text) => {
            Duration::from_secs_f64(text.parse().expect("ONBEAT_STRESS_SECONDS is a number of seconds"))
        }
        Err(_) => Duration::from_secs(2),
    }
}

/// Runs a test that takes `time` in a thread of its own, and fails if it does not return.
#[allow(clippy::disallowed_methods, reason = "a test outside the workspace's layers")]
pub fn watched(time: Duration, test: impl FnOnce() + Send + 'static) {
    let limit = time * 2 + Duration::from_secs(60);
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match wait.recv_timeout(limit) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("no end after {limit:?}"),
        _ => thread.join().unwrap(),
    }
}

/// Pseudo-random numbers (xorshift), the same in every run; the seed must not be 0.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// Pauses the calling side now and then.
    pub fn maybe_stop(&mut self) {
        match self.below(20_000) {
            0 => std::thread::sleep(Duration::from_millis(1)),
            1..10 => std::thread::yield_now(),
            _ => {}
        }
    }
}
