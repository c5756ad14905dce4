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
    /// Somebody called [`Unparker::unpark`].
    Notified,
    /// The deadline passed and nobody did.
    TimedOut,
}

/// The waiting end; one per thread that waits. See the [module](self) for the protocol.
///
/// Two threads cannot wait on one parker:
///
/// ```compile_fail,E0277
/// fn shared(_: impl Sync) {}
/// shared(onbeat_os::Parker::new());
/// ```
#[derive(Debug, Default)]
pub struct Parker {
    word: Arc<Word>,
    /// Not `Sync`: there is one waiter.
    one_waiter: PhantomData<Cell<()>>,
}

/// The waking end: cheap to clone, for any thread. It keeps nothing alive but the word.
#[derive(Debug, Clone)]
pub struct Unparker {
    word: Arc<Word>,
}

/// The futex word, alone on its cache line (and on the neighbour that the prefetcher brings along), so
/// that a waker does not disturb other data of the waiter.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Word(AtomicU32);

impl Parker {
    /// A parker without a notification.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle that wakes this parker.
    #[must_use]
    pub fn unparker(&self) -> Unparker {
        Unparker { word: Arc::clone(&self.word) }
    }

    /// Waits for a notification and takes it; returns at once if there is one already.
    ///
    /// # Panics
    ///
    /// If the kernel refuses the futex call, which `futex(2)` leaves no reason for: waiting cannot be
    /// done in another way without burning the core.
    pub fn park(&self) {
        let ended = self.wait(None);
        debug_assert_eq!(ended, Unparked::Notified, "no deadline, no time-out");
    }

    /// As [`park`](Self::park), but no longer than until `CLOCK_MONOTONIC` reads `deadline_ns`.
    ///
    /// A notification wins over a deadline that has passed as well. After
    /// [`TimedOut`](Unparked::TimedOut) a notification that comes later is kept for the next call.
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
            // A signal or a stray wake: still PARKED, sleep on.
        }
    }
}

impl Unparker {
    /// Notifies the parker: wakes its thread if that is parked, else makes its next park return at
    /// once. Never blocks; a system call only if the thread is parked.
    ///
    /// # Panics
    ///
    /// If the kernel refuses the futex call, which `futex(2)` leaves no reason for: the other thread
    /// would sleep for ever.
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

/// The transitions; the numbers are those of the diagram in `park.md`.
impl Word {
    /// 1, or 3 where a notification is there. Waiter only.
    fn announce(&self) -> Announced {
        // Relaxed on success: announcing carries no data. Unparkers see it because their swap reads
        // the latest value of this one word. Acquiring is left to the swap below.
        match self.0.compare_exchange(EMPTY, PARKED, Relaxed, Relaxed) {
            Ok(_) => Announced::Parked,
            Err(found) => {
                debug_assert_eq!(found, NOTIFIED, "only the waiter parks, and it is here");
                // Acquire pairs with the Release in `notify`. A swap and not a store: an unparker may
                // have notified again since the exchange, and reading the latest value acquires from
                // it too.
                self.0.swap(EMPTY, Acquire);
                Announced::AlreadyNotified
            }
        }
    }

    /// 2. Any thread.
    fn notify(&self) -> Notified {
        // Release pairs with the Acquire in `announce`, `take` and `give_up`. A swap even if the word
        // is NOTIFIED already: the write is what publishes this caller's data to the waiter.
        match self.0.swap(NOTIFIED, Release) {
            PARKED => Notified::WasParked,
            _ => Notified::NobodyWaits,
        }
    }

    /// 3. Waiter only; false while it is still PARKED.
    fn take(&self) -> bool {
        // Acquire on success pairs with the Release in `notify`; a failure reads no data.
        self.0.compare_exchange(NOTIFIED, EMPTY, Acquire, Relaxed).is_ok()
    }

    /// 4, or 3 where a notification came with the deadline. Waiter only.
    fn give_up(&self) -> Unparked {
        // Acquire pairs with the Release in `notify`, for the case that there is a notification.
        match self.0.swap(EMPTY, Acquire) {
            NOTIFIED => Unparked::Notified,
            _ => Unparked::TimedOut,
        }
    }
}
