//! Counting `SIGXCPU`, by which the kernel says that a `SCHED_DEADLINE` thread has used up its run time.

#![allow(clippy::disallowed_types, reason = "counted inside a signal handler")]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::SIGXCPU;
use signal_hook::flag::register_conditional_default;
use signal_hook::low_level::register;

static COUNT: AtomicU64 = AtomicU64::new(0);
static LISTENERS: Mutex<(u32, Option<Arc<AtomicBool>>)> = Mutex::new((0, None));

/// Counts the overruns of this process as long as it lives. The signal does not say which thread it was, and it comes at the
/// kernel's tick: who is found out between two ticks, in a system call, and does not run at the next one, is not counted. While none of
/// these lives, the signal does what it does by default: it ends the process.
#[derive(Debug)]
#[must_use = "dropping it ends the counting, and the signal ends the process then"]
pub struct Overruns {
    before: u64,
}

impl Overruns {
    /// Counts from now on.
    ///
    /// # Errors
    /// What the kernel says to the handler.
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
                // SAFETY: what it calls is one atomic addition, which a signal handler may do.
                unsafe { register(SIGXCPU, note) }?;
                listeners.1 = Some(nobody);
            }
        }
        listeners.0 += 1;
        Ok(Overruns { before: COUNT.load(SeqCst) })
    }

    /// How many there were since.
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
