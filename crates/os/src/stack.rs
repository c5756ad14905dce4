//! The stack of a thread that seems to hang, taken from another thread.
//!
//! The thread is interrupted by a signal ([`SIGNAL`], which has no effect by default). The handler walks the
//! stack and notes the addresses; the caller then resolves their names. The thread continues undisturbed,
//! except that a system call with a time limit may return `EINTR` (`signal(7)`): use this only for threads
//! that seem to hang.

#![allow(clippy::disallowed_types, reason = "a signal handler and the waiting thread share these words")]

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, fs};

use signal_hook::consts::SIGURG;
use signal_hook::low_level;

/// Signal that interrupts the thread: "urgent data", which is ignored without a handler.
pub const SIGNAL: i32 = SIGURG;

/// Number of frames kept, innermost first.
const DEPTH: usize = 128;

/// Thread that should walk its stack; 0 for none.
static WANTED: AtomicI32 = AtomicI32::new(0);
static DONE: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static ADDRESSES: [AtomicUsize; DEPTH] = [const { AtomicUsize::new(0) }; DEPTH];

/// Allows one request at a time.
static TURN: Mutex<()> = Mutex::new(());

/// A call on a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackFrame {
    /// Function, with its path.
    pub name: String,
    /// File and line, if the program has debug information.
    pub place: Option<(PathBuf, u32)>,
}

impl fmt::Display for StackFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.place {
            Some((file, line)) => write!(f, " ({}:{line})", file.display()),
            None => Ok(()),
        }
    }
}

/// Returns the stack of another thread of this process, innermost call first.
///
/// # Errors
///
/// What the kernel reports for the thread or the signal; `TimedOut` if the thread has not answered within
/// `patience`, because it is in an uninterruptible part of the kernel or gets no core.
///
/// # Example
///
/// ```
/// use onbeat_os::{stack, thread};
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// #[inline(never)]
/// fn wait_forever(tell: &mpsc::Sender<i32>, end: &mpsc::Receiver<()>) {
///     tell.send(thread::current_id()).unwrap();
///     let _ = end.recv();
/// }
///
/// let (go, end) = mpsc::channel();
/// let (tell, told) = mpsc::channel();
/// let waiter = thread::spawn("waiter", move || {
///     wait_forever(&tell, &end);
/// })?;
/// let stack = stack::of(told.recv().unwrap(), Duration::from_secs(10))?;
/// assert!(stack.iter().any(|frame| frame.name.contains("wait_forever")));
/// drop(go);
/// waiter.join().unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn of(thread: i32, patience: Duration) -> io::Result<Vec<StackFrame>> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    DONE.store(false, Ordering::Relaxed);
    // Release, partner: the Acquire in `walk`.
    WANTED.store(thread, Ordering::Release);
    // SAFETY: `walk` only accesses atomics and walks the stack of its own thread. The unwinder takes no lock
    // for that if the C library has `_dl_find_object` (glibc 2.35); with an older one it would wait for a
    // thread that is loading a library.
    let handler = unsafe { low_level::register(SIGNAL, walk) }?;
    let asked = interrupt(thread);
    let begin = Instant::now();
    while asked.is_ok() && !DONE.load(Ordering::Acquire) && begin.elapsed() < patience {
        std::thread::sleep(Duration::from_micros(200));
    }
    // A thread that answers later finds that it is no longer wanted.
    let is_late = WANTED.swap(0, Ordering::AcqRel) != 0 && !DONE.load(Ordering::Acquire);
    low_level::unregister(handler);
    asked?;
    if is_late {
        let message = format!("thread {thread} has not shown its stack within {patience:?}");
        return Err(io::Error::new(io::ErrorKind::TimedOut, message));
    }
    // A thread that has begun to walk ends soon.
    while !DONE.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_micros(200));
    }
    let count = COUNT.load(Ordering::Relaxed);
    Ok(ADDRESSES[..count].iter().flat_map(|address| named(address.load(Ordering::Relaxed))).collect())
}

fn interrupt(thread: i32) -> io::Result<()> {
    let process = std::process::id();
    // SAFETY: plain numbers; the kernel checks that the thread is one of this process.
    let done = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, SIGNAL) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Signal handler.
fn walk() {
    let own = crate::thread::current_id();
    // Acquire, partner: the Release in `of`. A signal with another cause finds no request.
    let (acquire, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
    if WANTED.compare_exchange(own, 0, acquire, relaxed).is_err() {
        return;
    }
    let mut count = 0;
    // SAFETY: `of` allows one thread at a time; other users of the crate hold its locks to resolve names,
    // which this does not need.
    unsafe {
        backtrace::trace_unsynchronized(|frame| {
            ADDRESSES[count].store(frame.ip().addr(), Ordering::Relaxed);
            count += 1;
            count < DEPTH
        });
    }
    COUNT.store(count, Ordering::Relaxed);
    // Release, partner: the Acquires in `of`.
    DONE.store(true, Ordering::Release);
}

/// Resolves the calls at an address: several if some are inlined into others.
fn named(address: usize) -> Vec<StackFrame> {
    let mut frames = Vec::new();
    // A return address on the stack comes after its call instruction.
    backtrace::resolve(std::ptr::without_provenance_mut(address.saturating_sub(1)), |symbol| {
        let name = symbol.name().map_or_else(|| format!("{address:#x}"), |name| format!("{name:#}"));
        let place = symbol.filename().zip(symbol.lineno()).map(|(file, line)| (file.to_owned(), line));
        frames.push(StackFrame { name, place });
    });
    if frames.is_empty() {
        frames.push(StackFrame { name: format!("{address:#x}"), place: None });
    }
    frames
}

/// Whether the places of calls can be found: this program has line tables, or a file with them was found by
/// the build identifier (`/usr/lib/debug/.build-id`) or the debug link of the program.
#[must_use]
pub fn has_lines() -> bool {
    // The calls that led here are as good as any.
    let here = backtrace::Backtrace::new();
    here.frames()
        .iter()
        .flat_map(backtrace::BacktraceFrame::symbols)
        .any(|symbol| symbol.filename().is_some())
}

/// State of a thread of this process, by the kernel: "running", "sleeping (futex_wait_queue)". `None` if the
/// thread is gone.
#[must_use]
pub fn activity(thread: i32) -> Option<String> {
    let folder = format!("/proc/self/task/{thread}");
    let stat = fs::read_to_string(format!("{folder}/stat")).ok()?;
    // The name is in parentheses and may contain anything.
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    let word = match state {
        'R' => return Some("running, or ready to".to_owned()),
        'S' => "sleeping",
        'D' => "sleeping so that no signal reaches it",
        'T' | 't' => "stopped",
        _ => return Some(format!("in the state {state}")),
    };
    let place = fs::read_to_string(format!("{folder}/wchan")).unwrap_or_default();
    let place = if place.is_empty() || place == "0" { String::new() } else { format!(" ({place})") };
    Some(format!("{word}{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread;
    use std::sync::Arc;
    use std::sync::mpsc;

    #[inline(never)]
    fn busy_beyond_recall(tell: &mpsc::Sender<i32>, end: &AtomicBool) -> u64 {
        let mut turns = 0;
        tell.send(thread::current_id()).unwrap();
        while !end.load(Ordering::Relaxed) {
            turns += 1;
        }
        turns
    }

    #[test]
    fn a_thread_that_is_busy_shows_its_stack_as_often_as_it_is_asked() {
        let end = Arc::new(AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        let own = Arc::clone(&end);
        let busy = thread::spawn("busy", move || busy_beyond_recall(&tell, &own)).unwrap();
        let id = told.recv().unwrap();
        for _ in 0..20 {
            let stack = of(id, Duration::from_secs(20)).unwrap();
            assert!(stack.iter().any(|frame| frame.name.contains("busy_beyond_recall")), "{stack:?}");
            assert!(activity(id).unwrap().starts_with("running"));
        }
        end.store(true, Ordering::Relaxed);
        assert!(busy.join().unwrap() > 0);
    }

    /// Tests have line tables: see the profile `dev` in Cargo.toml.
    #[test]
    fn a_program_with_line_tables_says_so() {
        assert!(has_lines());
    }

    #[test]
    fn who_is_not_there_has_none() {
        assert!(of(1 << 29, Duration::from_secs(1)).is_err());
        assert_eq!(activity(1 << 29), None);
    }
}
