//! Ctrl-C: the first finishes the run, the second ends the process.

use crate::output::to_stderr;
use onbeat::RunHandle;
use onbeat_os::signal::{InterruptGuard, on_interrupt};
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Listens until it is dropped.
pub struct Interrupts {
    state: Arc<Mutex<State>>,
    /// None where listening was refused: Ctrl-C then ends the process as it does without us.
    _guard: Option<InterruptGuard>,
}

#[derive(Default)]
struct State {
    asked: bool,
    handle: Option<RunHandle>,
}

impl Interrupts {
    /// From now on; what comes before there is a run is kept for it.
    pub fn listen(abort: fn() -> !) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let listening = on_interrupt(move |count| {
            // The terminal has written ^C into the line.
            let line = if io::stderr().is_terminal() { "\n" } else { "" };
            if count > 1 {
                to_stderr(&format!("{line}onbeat: aborted; files may be incomplete\n"));
                abort();
            }
            to_stderr(&format!(
                "{line}onbeat: stopping: what is under way is worked off; Ctrl-C again aborts\n"
            ));
            let mut state = locked(&shared);
            state.asked = true;
            if let Some(handle) = &state.handle {
                handle.stop();
            }
        });
        let told =
            listening.inspect_err(|error| to_stderr(&format!("onbeat: cannot listen for Ctrl-C: {error}\n")));
        Interrupts { state, _guard: told.ok() }
    }

    /// Whether somebody has asked for the end.
    pub fn is_asked(&self) -> bool {
        locked(&self.state).asked
    }

    /// The run to be stopped.
    pub fn stop_by(&self, handle: RunHandle) {
        let mut state = locked(&self.state);
        if state.asked {
            handle.stop();
        }
        state.handle = Some(handle);
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // No code that holds the lock leaves it half changed.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
