//! Ctrl-C, `SIGTERM` and `SIGHUP` (the terminal was closed), as calls on a thread of their own.
//!
//! A signal handler may do very little (`signal-safety(7)`). So the handler only writes to a pipe, and a
//! thread named `onbeat-signal` reads it and makes the call, which is free to lock, allocate and print.
//!
//! While there is no [`InterruptGuard`], the signals end the process as they do by default. A signal that the
//! process was started to ignore (`nohup`, a job in the background of a script) stays ignored.

#![allow(clippy::disallowed_types, reason = "signal-hook reads this flag inside a signal handler")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag::{register, register_conditional_default};
use signal_hook::iterator::{Handle, Signals};

use crate::thread;

/// Signals that ask the process to end, unless it was started to ignore them.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The same signal again within this time is the same request: `timeout`, for one, sends its signal to the
/// process and then to the process group. Nobody presses Ctrl-C twice so fast.
const SAME_REQUEST: Duration = Duration::from_millis(50);

/// Name of the thread that makes the calls.
pub const THREAD_NAME: &str = "onbeat-signal";

/// Calls `f` for every `SIGINT`, `SIGTERM` or `SIGHUP` until the guard is dropped, with the number of signals
/// so far: 1 for the first. Signals that the process was started to ignore stay ignored.
///
/// By convention, the first one asks for a clean end and the second one aborts. Signals of one kind within
/// 50 ms count as one: some programs send theirs twice.
///
/// If `f` panics, the thread ends and the next signal ends the process.
///
/// # Errors
///
/// What the kernel reports for the handler, the pipe or the thread.
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
    // Handlers are called in the order in which they are installed. The one that may end the process comes
    // first: after the pipe is written, the guard may be gone before the next handler runs.
    prepare()?;
    let mut signals = Signals::new(heard())?;
    let listener = SignalListener::new();
    let handle = signals.handle();
    let thread = thread::spawn(THREAD_NAME, move || {
        // Dropped here, so that the default action returns as soon as the thread ends, after a panic too.
        let _listener = listener;
        let mut count = 0_u32;
        let mut last: Option<(i32, Instant)> = None;
        for signal in signals.forever() {
            let now = Instant::now();
            let before = last.replace((signal, now));
            if before.is_some_and(|(same, at)| same == signal && now - at < SAME_REQUEST) {
                continue;
            }
            count = count.saturating_add(1);
            f(count);
        }
    })?;
    Ok(InterruptGuard { handle, thread: Some(thread) })
}

/// The signals of [`ENDING`] that the process was not started to ignore. Found before the first handler is
/// installed.
fn heard() -> &'static [i32] {
    static HEARD: OnceLock<Vec<i32>> = OnceLock::new();
    HEARD.get_or_init(|| ENDING.into_iter().filter(|&signal| !is_ignored(signal)).collect())
}

/// Whether the process ignores a signal at the moment.
fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action, the call only writes the present one to `action`, which has room for it.
    let status = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    if status != 0 {
        return false;
    }
    // SAFETY: the call has succeeded, so it has written the action.
    let action = unsafe { action.assume_init() };
    action.sa_sigaction == libc::SIG_IGN
}

/// Listens until it is dropped. Dropping it ends the thread, waits for a call that is running, and restores
/// the default action of the signals.
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
        // A guard dropped within its own call cannot wait for itself; the thread ends after that call.
        if thread.thread().id() != std::thread::current().id() {
            // The panic hook has printed a panic of the caller's function.
            let _panicked = thread.join();
        }
    }
}

/// A registered listener. signal-hook never removes its handler, so without this type the signals would have
/// no effect after the last listener is gone.
#[derive(Debug)]
struct SignalListener;

struct Listeners {
    count: u32,
    /// True while there is no listener: the handler then takes the default action. Set up once, by the first
    /// listener.
    nobody: Option<Arc<AtomicBool>>,
}

static LISTENERS: Mutex<Listeners> = Mutex::new(Listeners { count: 0, nobody: None });

fn listeners() -> MutexGuard<'static, Listeners> {
    // Code that holds the lock never leaves the state half changed.
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handlers that end the process while nobody listens, unless they are installed.
fn prepare() -> io::Result<()> {
    let mut listeners = listeners();
    if listeners.nobody.is_none() {
        let nobody = Arc::new(AtomicBool::new(true));
        for &signal in heard() {
            register_conditional_default(signal, Arc::clone(&nobody))?;
        }
        listeners.nobody = Some(nobody);
        // Without a handler, a write beyond the limit on file sizes kills the process. With one that does
        // nothing the write fails, and the writer can clean up.
        register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

impl SignalListener {
    fn new() -> Self {
        let mut listeners = listeners();
        if let Some(nobody) = &listeners.nobody {
            nobody.store(false, SeqCst);
        }
        listeners.count += 1;
        Self
    }
}

impl Drop for SignalListener {
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
