//! A watchdog for tests.

use std::sync::mpsc;
use std::time::Duration;

/// Runs a test on its own thread, and fails if it does not return in time.
pub(crate) fn watched<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    let thread = onbeat_os::thread::spawn("watched", move || drop(done.send(test()))).expect("a thread");
    match wait.recv_timeout(Duration::from_secs(240)) {
        Ok(value) => value,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("no end after 240 s"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("it sends before it ends"),
        },
    }
}
