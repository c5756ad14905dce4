//! Ctrl-C, `SIGTERM` and `SIGHUP` (the terminal was closed), as a call on a thread of their own.
//!
//! A signal handler may do almost nothing (`signal-safety(7)`); so the handler only writes to a pipe,
//! and a thread named `onbeat-signal` reads it and makes the call, free to lock, allocate and print.
//!
//! While no [`InterruptGuard`] lives, both signals end the process as they do without this module.

#![allow(clippy::disallowed_types, reason = "signal-hook reads this flag inside a signal handler")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag::{register, register_conditional_default};
use signal_hook::iterator::{Handle, Signals};

use crate::thread;

/// Signals by which somebody asks for the end.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The name of the thread that makes the calls.
pub const THREAD_NAME: &str = "onbeat-signal";

/// Calls `f` for every `SIGINT`, `SIGTERM` or `SIGHUP` from now until the guard is dropped, with how many have
/// come so far: 1 for the first.
///
/// By the house's rule the first asks for a clean end and the second aborts. Signals of one kind that
/// come faster than the thread wakes (tens of microseconds) may be seen as one; the kernel does not
/// count them either.
///
/// If `f` panics, the thread ends and the next signal ends the process.
///
/// # Errors
///
/// What the kernel says to the handler, the pipe or the thread.
///
/// # Example
///
/// ```no_run
/// let guard = onbeat_os::signal::on_interrupt(|count| match count {
///     1 => { /* ask the run to stop */ }
///     _ => std::process::abort(),
/// })?;
/// // ... the run ...
/// drop(guard);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn on_interrupt(f: impl Fn(u32) + Send + 'static) -> io::Result<InterruptGuard> {
    // In this order a signal in between is not lost: it waits in the pipe.
    let mut signals = Signals::new(ENDING)?;
    let listener = Listener::new()?;
    let handle = signals.handle();
    let thread = thread::spawn(THREAD_NAME, move || {
        // Here, so that the default action is back as soon as nobody listens, after a panic too.
        let _listener = listener;
        let mut count = 0_u32;
        for _signal in signals.forever() {
            count = count.saturating_add(1);
            f(count);
        }
    })?;
    Ok(InterruptGuard { handle, thread: Some(thread) })
}

/// Listens as long as it lives. Dropping it ends the thread, waits for a call that is running, and
/// gives both signals their default action back.
#[derive(Debug)]
#[must_use = "dropping the guard stops listening"]
pub struct InterruptGuard {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Drop for InterruptGuard {
    fn drop(&mut self) {
        self.handle.close();
        let Some(thread) = self.thread.take() else { return };
        // Dropped by its own call, it cannot wait for itself; the thread ends after that call.
        if thread.thread().id() != std::thread::current().id() {
            // A panic of the caller's function has been printed by the panic hook; there is nobody to
            // carry it to.
            let _panicked = thread.join();
        }
    }
}

/// One who listens. signal-hook leaves its handler in place for good, so without this both signals
/// would do nothing once nobody listens.
#[derive(Debug)]
struct Listener;

struct Listeners {
    count: u32,
    /// True while nobody listens: then the handler does what the kernel would do by default. Set up
    /// once, by the first listener.
    nobody: Option<Arc<AtomicBool>>,
}

static LISTENERS: Mutex<Listeners> = Mutex::new(Listeners { count: 0, nobody: None });

fn listeners() -> MutexGuard<'static, Listeners> {
    // No code that holds the lock leaves it half changed.
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listener {
    fn new() -> io::Result<Self> {
        let mut listeners = listeners();
        match &listeners.nobody {
            Some(nobody) => nobody.store(false, SeqCst),
            None => {
                let nobody = Arc::new(AtomicBool::new(false));
                for signal in ENDING {
                    register_conditional_default(signal, Arc::clone(&nobody))?;
                }
                listeners.nobody = Some(nobody);
                // Without a handler, writing beyond the limit on file sizes kills the process; with one that does nothing
                // the write fails, and whoever writes can clean up.
                register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
            }
        }
        listeners.count += 1;
        Ok(Self)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut listeners = listeners();
        listeners.count -= 1;
        if listeners.count == 0
            && let Some(nobody) = &listeners.nobody
        {
            nobody.store(true, SeqCst);
        }
    }
}
