//! Pinned threads for measurements without an engine.

use crate::BenchError;
use onbeat_os::{CoreSet, thread};
use std::thread::JoinHandle;

/// Starts a thread, on the given core if there is one.
pub(crate) fn spawn<T: Send + 'static>(
    core: Option<usize>,
    f: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, BenchError> {
    let pinned = move || {
        if let Some(core) = core.and_then(|core| CoreSet::from_cores([core]).ok()) {
            // If the kernel refuses, it places the thread itself, which makes the limit less sharp.
            let _refused = thread::set_cores(&core);
        }
        f()
    };
    thread::spawn("onbeat-bare", pinned)
        .map_err(|error| BenchError::System { what: "cannot start a thread", error })
}

/// Waits for the result; a panic of the thread continues here.
pub(crate) fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
