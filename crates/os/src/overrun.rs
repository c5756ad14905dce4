//! Counts `SIGXCPU`, the kernel's signal that a `SCHED_DEADLINE` thread has used up its run time.

#![allow(clippy::disallowed_types, reason = "counted inside a signal handler")]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::SIGXCPU;
use signal_hook::flag::register_conditional_default;
use signal_hook::low_level::register;

static COUNT: AtomicU64 = AtomicU64::new(0);
static LISTENERS: Mutex<(u32, Option<Arc<AtomicBool>>)> = Mutex::new((0, None));

/// Counts the overruns of this process until it is dropped. The signal does not name the thread, and comes at
/// the kernel's tick. An overrun that the kernel notices between two ticks, in a system call, is not counted
/// if the thread does not run at the next tick. Without this object the signal has its default effect: it
/// ends the process.
#[derive(Debug)]
#[must_use = "dropping it ends the counting, and the signal then ends the process"]
pub struct Overruns {
    before: u64,
}

impl Overruns {
    /// Starts counting.
    ///
    /// # Errors
    /// What the kernel reports for the handler.
    pub fn count() -> io::Result<Self> {
        let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        match &listeners.1 {
            Some(nobody) => nobody.store(false, SeqCst),
            None => {
                let nobody = Arc::new(AtomicBool::new(false));
                register_conditional_default(SIGXCPU, Arc::clone(&nobody))?;
                let note = || {
                    COUNT.fetch_add(1, SeqCst);
                };
                // SAFETY: it calls one atomic addition, which a signal handler may do.
                unsafe { register(SIGXCPU, note) }?;
                listeners.1 = Some(nobody);
            }
        }
        listeners.0 += 1;
        Ok(Overruns { before: COUNT.load(SeqCst) })
    }

    /// Number of overruns so far.
    #[must_use]
    pub fn so_far(&self) -> u64 {
        COUNT.load(SeqCst) - self.before
    }
}

impl Drop for Overruns {
    fn drop(&mut self) {
        let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.0 -= 1;
        if let (0, Some(nobody)) = &*listeners {
            nobody.store(true, SeqCst);
        }
    }
}
