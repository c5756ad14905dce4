//! Ctrl-C: the first finishes the run, the second ends the process.

use crate::output::to_stderr;
use onbeat::Stopper;
use onbeat_os::signal::{InterruptGuard, on_interrupt};

/// Listens until the guard is dropped. Where that is refused, Ctrl-C ends the process as it does without us.
pub fn listen(stopper: Stopper, abort: fn() -> !) -> Option<InterruptGuard> {
    let listening = on_interrupt(move |count| {
        if count > 1 {
            to_stderr("\nonbeat: aborted; files may be incomplete\n");
            abort();
        }
        stopper.stop();
        // The terminal has written ^C into the line.
        to_stderr("\nonbeat: stopping: what is under way is worked off; Ctrl-C again aborts\n");
    });
    listening.inspect_err(|error| to_stderr(&format!("onbeat: cannot listen for Ctrl-C: {error}\n"))).ok()
}
