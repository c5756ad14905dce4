//! Ctrl-C: the first one stops the run, the second one ends the process.

use crate::stderr::to_stderr;
use onbeat::RunHandle;
use onbeat_os::signal::{InterruptGuard, on_interrupt};
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Handler of Ctrl-C, until it is dropped.
pub struct CtrlC {
    state: Arc<Mutex<StopRequest>>,
    /// `None` if the handler could not be installed. Ctrl-C then ends the process.
    _guard: Option<InterruptGuard>,
}

#[derive(Default)]
struct StopRequest {
    is_asked: bool,
    handle: Option<RunHandle>,
}

impl CtrlC {
    /// Installs the handler. A Ctrl-C before the run starts is kept for it.
    pub fn listen(abort: fn() -> !) -> Self {
        let state = Arc::new(Mutex::new(StopRequest::default()));
        let shared = Arc::clone(&state);
        let listening = on_interrupt(move |count| {
            // The terminal has printed ^C on the line.
            let line = if io::stderr().is_terminal() { "\n" } else { "" };
            if count > 1 {
                to_stderr(&format!("{line}onbeat: aborted; files may be incomplete\n"));
                abort();
            }
            to_stderr(&format!(
                "{line}onbeat: stopping: finishing messages in flight; press Ctrl-C again to abort\n"
            ));
            let mut state = locked(&shared);
            state.is_asked = true;
            if let Some(handle) = &state.handle {
                handle.stop();
            }
        });
        let guard =
            listening.inspect_err(|error| to_stderr(&format!("onbeat: cannot handle Ctrl-C: {error}\n")));
        CtrlC { state, _guard: guard.ok() }
    }

    /// Whether Ctrl-C was pressed.
    pub fn is_asked(&self) -> bool {
        locked(&self.state).is_asked
    }

    /// Sets the run to stop.
    pub fn stop_by(&self, handle: RunHandle) {
        let mut state = locked(&self.state);
        if state.is_asked {
            handle.stop();
        }
        state.handle = Some(handle);
    }
}

fn locked(state: &Mutex<StopRequest>) -> MutexGuard<'_, StopRequest> {
    // The state is consistent even after a panic.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
