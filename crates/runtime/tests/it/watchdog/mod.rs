//! For tests that could hang.

use std::sync::mpsc;
use std::time::Duration;

/// Runs a test in a thread of its own, and fails when it does not come back.
pub fn watched(seconds: u64, test: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = onbeat_os::thread::spawn("watched", move || {
        test();
        let _ = done.send(());
    });
    match wait.recv_timeout(Duration::from_secs(seconds)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("no end after {seconds} s"),
        _ => thread.unwrap().join().unwrap(),
    }
}
