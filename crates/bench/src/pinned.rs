//! Threads of what is measured without an engine.

use crate::BenchError;
use onbeat_os::{CoreSet, thread};
use std::thread::JoinHandle;

/// On that core, if one is given.
pub(crate) fn spawn<T: Send + 'static>(
    core: Option<usize>,
    f: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, BenchError> {
    let pinned = move || {
        if let Some(core) = core.and_then(|core| CoreSet::from_cores([core]).ok()) {
            // Refused: then the kernel places it, which costs the limit some of its sharpness.
            let _refused = thread::set_cores(&core);
        }
        f()
    };
    thread::spawn("onbeat-bare", pinned)
        .map_err(|error| BenchError::System { what: "cannot start a thread", error })
}

/// What came of it; its panic goes on here.
pub(crate) fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
