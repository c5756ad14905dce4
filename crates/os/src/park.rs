#![doc = include_str!("park.md")]
#![allow(clippy::disallowed_types, reason = "a futex word, shared with the kernel")]

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::futex::{self, Wake};

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;

/// How a [`Parker::park_until`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Unparked {
    /// An [`Unparker::unpark`] notified it.
    Notified,
    /// The deadline passed without a notification.
    TimedOut,
}

/// Waiting end; one per thread that waits. The [module](self) describes the protocol.
///
/// Two threads cannot wait on one parker:
///
/// ```compile_fail,E0277
/// fn shared(_: impl Sync) {}
/// shared(onbeat_os::Parker::new());
/// ```
#[derive(Debug, Default)]
pub struct Parker {
    word: Arc<ParkWord>,
    /// Not `Sync`: there is only one waiter.
    one_waiter: PhantomData<Cell<()>>,
}

/// Waking end: cheap to clone, for any thread. It keeps only the word alive.
#[derive(Debug, Clone)]
pub struct Unparker {
    word: Arc<ParkWord>,
}

/// Futex word, alone on its cache line and the adjacent line that the prefetcher fetches, so that a waker
/// does not disturb other data of the waiter.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ParkWord(AtomicU32);

impl Parker {
    /// Makes a parker without a notification.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a handle that wakes this parker.
    #[must_use]
    pub fn unparker(&self) -> Unparker {
        Unparker { word: Arc::clone(&self.word) }
    }

    /// Waits for a notification and consumes it; returns at once if there is one already.
    ///
    /// # Panics
    ///
    /// If the kernel refuses the futex call, for which `futex(2)` leaves no reason: waiting in another way
    /// would burn the core.
    pub fn park(&self) {
        let ended = self.wait(None);
        debug_assert_eq!(ended, Unparked::Notified, "no deadline, no time-out");
    }

    /// As [`park`](Self::park), but only until `CLOCK_MONOTONIC` reads `deadline_ns`.
    ///
    /// A notification takes precedence over a deadline that has also passed. A notification that comes after
    /// [`TimedOut`](Unparked::TimedOut) is kept for the next call.
    ///
    /// # Panics
    ///
    /// As [`park`](Self::park).
    pub fn park_until(&self, deadline_ns: u64) -> Unparked {
        self.wait(Some(deadline_ns))
    }

    fn wait(&self, deadline_ns: Option<u64>) -> Unparked {
        if self.word.announce() == Announced::AlreadyNotified {
            return Unparked::Notified;
        }
        loop {
            let why = futex::wait(&self.word.0, PARKED, deadline_ns)
                .unwrap_or_else(|error| panic!("futex(FUTEX_WAIT_BITSET) failed while parking: {error}"));
            if why == Wake::TimedOut {
                return self.word.give_up();
            }
            if self.word.take() {
                return Unparked::Notified;
            }
            // A signal or a stray wake: the state is still PARKED, so sleep again.
        }
    }
}

impl Unparker {
    /// Notifies the parker: wakes its thread if it is parked, otherwise makes its next park return at once.
    /// Never blocks; makes a system call only if the thread is parked.
    ///
    /// # Panics
    ///
    /// If the kernel refuses the futex call, for which `futex(2)` leaves no reason: the other thread would
    /// sleep forever.
    pub fn unpark(&self) {
        if self.word.notify() == Notified::WasParked {
            futex::wake(&self.word.0, 1)
                .unwrap_or_else(|error| panic!("futex(FUTEX_WAKE) failed while unparking: {error}"));
        }
    }
}

#[derive(PartialEq)]
#[must_use]
enum Announced {
    Parked,
    AlreadyNotified,
}

#[derive(PartialEq)]
#[must_use]
enum Notified {
    WasParked,
    NobodyWaits,
}

/// State transitions; the numbers are those of the diagram in `park.md`.
impl ParkWord {
    /// Transition 1, or 3 if there is a notification. Waiter only.
    fn announce(&self) -> Announced {
        // Relaxed on success: the announcement carries no data. Unparkers see it because their swap reads the
        // latest value of this word. The swap below acquires.
        match self.0.compare_exchange(EMPTY, PARKED, Relaxed, Relaxed) {
            Ok(_) => Announced::Parked,
            Err(found) => {
                debug_assert_eq!(found, NOTIFIED, "only the waiter parks, and it is here");
                // Acquire pairs with the Release in `notify`. It is a swap, not a store: an unparker may have
                // notified again since the exchange, and reading the latest value acquires from it too.
                self.0.swap(EMPTY, Acquire);
                Announced::AlreadyNotified
            }
        }
    }

    /// Transition 2. Any thread.
    fn notify(&self) -> Notified {
        // Release pairs with the Acquire in `announce`, `take` and `give_up`. It swaps even if the word is
        // NOTIFIED already: the write publishes this caller's data to the waiter.
        match self.0.swap(NOTIFIED, Release) {
            PARKED => Notified::WasParked,
            _ => Notified::NobodyWaits,
        }
    }

    /// Transition 3. Waiter only; false while the state is still PARKED.
    fn take(&self) -> bool {
        // Acquire on success pairs with the Release in `notify`; a failure reads no data.
        self.0.compare_exchange(NOTIFIED, EMPTY, Acquire, Relaxed).is_ok()
    }

    /// Transition 4, or 3 if a notification came with the deadline. Waiter only.
    fn give_up(&self) -> Unparked {
        // Acquire pairs with the Release in `notify`, in case there is a notification.
        match self.0.swap(EMPTY, Acquire) {
            NOTIFIED => Unparked::Notified,
            _ => Unparked::TimedOut,
        }
    }
}
