//! The interpreter's lock: workers take it to call Python code, and say for how long they waited.
//!
//! A worker keeps its Python thread state from the first call to its end, so that taking the lock again is a
//! few tens of nanoseconds. It holds the lock only while Python code runs.

use onbeat_os::tsc::Clock;
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pyo3::{Python, ffi};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A shorter wait than this counts as the cost of taking a free lock, in nanoseconds.
const NOTABLE_NS: u64 = 2_000;

/// A wait for the lock.
#[derive(Debug, Clone)]
pub struct GilWait {
    /// Begin, on `CLOCK_MONOTONIC`.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
    /// Operators whose Python code may have had the lock meanwhile; another Python thread if there is none.
    pub holder: String,
}

/// An operator's place among those that call Python code.
#[derive(Debug)]
struct Caller {
    name: Mutex<String>,
    /// Whether the operator is in its Python code. Relaxed, as below: only names of waits follow from it.
    is_inside: AtomicBool,
    /// When it last left its Python code.
    left_ns: AtomicU64,
}

/// An operator's way to the lock, with a clock of its own.
pub struct GilSeat {
    caller: Arc<Caller>,
    clock: Clock,
}

/// All callers that are alive.
static CALLERS: Mutex<Vec<Weak<Caller>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Caller {
    /// Adds a caller.
    fn new() -> Arc<Self> {
        let caller = Arc::new(Caller {
            name: Mutex::new(String::new()),
            is_inside: AtomicBool::new(false),
            left_ns: AtomicU64::new(0),
        });
        let mut callers = lock(&CALLERS);
        callers.retain(|other| other.strong_count() > 0);
        callers.push(Arc::downgrade(&caller));
        caller
    }

    fn rename(&self, name: &str) {
        name.clone_into(&mut lock(&self.name));
    }

    fn wait(&self, from_ns: u64, to_ns: u64) -> GilWait {
        let callers: Vec<_> = lock(&CALLERS).iter().filter_map(Weak::upgrade).collect();
        let others = callers.iter().filter(|other| !std::ptr::eq(&raw const ***other, self));
        // Those that left meanwhile had it, and those that are inside had it unless they wait as well.
        let inside = others.filter(|other| {
            other.is_inside.load(Ordering::Relaxed) || other.left_ns.load(Ordering::Relaxed) > from_ns
        });
        let names: Vec<String> = inside.map(|other| lock(&other.name).clone()).collect();
        let holder = if names.is_empty() { "another Python thread".to_owned() } else { names.join(" or ") };
        GilWait { from_ns, to_ns, holder }
    }
}

impl GilSeat {
    /// Adds a caller.
    pub fn new() -> Self {
        GilSeat { caller: Caller::new(), clock: Clock::new() }
    }

    /// Sets the name by which others call it if they wait for it.
    pub fn rename(&self, name: &str) {
        self.caller.rename(name);
    }

    /// Runs `f` with the lock. Also returns the wait for it, if it was longer than that for a free lock.
    pub fn enter<R>(&self, f: impl FnOnce(Python<'_>) -> R) -> (R, Option<GilWait>) {
        keep_thread_state();
        let from_ns = self.clock.now_ns();
        Python::attach(|py| {
            let to_ns = self.clock.now_ns();
            let wait = (to_ns.saturating_sub(from_ns) > NOTABLE_NS).then(|| self.caller.wait(from_ns, to_ns));
            self.caller.is_inside.store(true, Ordering::Relaxed);
            let result = f(py);
            self.caller.is_inside.store(false, Ordering::Relaxed);
            self.caller.left_ns.store(self.clock.now_ns(), Ordering::Relaxed);
            (result, wait)
        })
    }
}

/// Python's state of a thread, kept until the thread ends.
struct ThreadState {
    state: *mut ffi::PyThreadState,
    ensured: ffi::PyGILState_STATE,
}

thread_local! {
    static KEPT: RefCell<Option<ThreadState>> = const { RefCell::new(None) };
}

/// Makes the thread's state, if it has none. Later calls of `attach` find it and only take the lock.
fn keep_thread_state() {
    KEPT.with_borrow_mut(|kept| {
        if kept.is_some() {
            return;
        }
        // SAFETY: the interpreter is initialised, because this module was loaded by it.
        let ensured = unsafe { ffi::PyGILState_Ensure() };
        if ensured == ffi::PyGILState_STATE::PyGILState_LOCKED {
            // A thread of Python's own, which has a state already.
            // SAFETY: it undoes the call above, on the same thread.
            unsafe { ffi::PyGILState_Release(ensured) };
            return;
        }
        // SAFETY: this thread has the lock, by the call above.
        let state = unsafe { ffi::PyEval_SaveThread() };
        *kept = Some(ThreadState { state, ensured });
    });
}

impl Drop for ThreadState {
    fn drop(&mut self) {
        // SAFETY: a plain query. After the end of the interpreter, its states are gone as well.
        if unsafe { ffi::Py_IsInitialized() } == 0 {
            return;
        }
        // SAFETY: the state is of this thread, which has not got the lock.
        unsafe { ffi::PyEval_RestoreThread(self.state) };
        // SAFETY: it undoes the call of `PyGILState_Ensure` by the same thread.
        unsafe { ffi::PyGILState_Release(self.ensured) };
    }
}
