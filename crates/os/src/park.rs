#![doc = include_str!("park.md")]
#![allow(clippy::disallowed_types, reason = "a futex word, shared with the kernel")]

#[cfg(all(loom, test))]
mod model;

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};
#[cfg(not(all(loom, test)))]
use std::sync::{OnceLock, atomic::AtomicU32};

use crate::futex::Wake;
#[cfg(not(all(loom, test)))]
use crate::{futex, poll::Poll};
// The kernel as the models have it.
#[cfg(all(loom, test))]
use self::model::{AtomicU32, ModelOnce as OnceLock, ModelPoll as Poll, futex, planted};

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;
const POLLING: u32 = 3;

/// How a [`Parker::park_until`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Unparked {
    /// An [`Unparker::unpark`] notified it.
    Notified,
    /// A descriptor may be ready. Only [`Parker::park_polling`] returns this.
    Ready,
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
struct ParkWord {
    state: AtomicU32,
    /// Where the waiter waits in [`POLLING`]. Set before the first time.
    poll: OnceLock<Arc<Poll>>,
}

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

    /// As [`park_until`](Self::park_until), but also returns when a descriptor of the poll is ready; the
    /// caller then [looks](Poll::look), and [silences](Poll::silence) a bell that rings. One parker waits at
    /// one poll, always the same.
    ///
    /// # Panics
    ///
    /// If the kernel refuses to wait, for which `ppoll(2)` leaves no reason.
    pub fn park_polling(&self, poll: &Arc<Poll>, deadline_ns: Option<u64>) -> Unparked {
        let first = self.word.poll.get_or_init(|| Arc::clone(poll));
        debug_assert!(Arc::ptr_eq(first, poll), "one parker waits at one poll");
        if !planted("no announcement before the wait")
            && self.word.announce(POLLING) == Announced::AlreadyNotified
        {
            return Unparked::Notified;
        }
        if planted("silence after the announcement") {
            poll.silence();
        }
        let is_ready =
            poll.wait(deadline_ns).unwrap_or_else(|error| panic!("ppoll failed while parking: {error}"));
        match self.word.give_up() {
            Unparked::TimedOut if is_ready => Unparked::Ready,
            // If the unparker has not rung yet, the next wait ends at once, and the caller silences the bell.
            unparked => {
                if unparked == Unparked::Notified {
                    poll.silence();
                }
                unparked
            }
        }
    }

    fn wait(&self, deadline_ns: Option<u64>) -> Unparked {
        if self.word.announce(PARKED) == Announced::AlreadyNotified {
            return Unparked::Notified;
        }
        loop {
            let why = futex::wait(&self.word.state, PARKED, deadline_ns)
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
        match self.word.notify() {
            Notified::NobodyWaits => {}
            Notified::WasParked => {
                futex::wake(&self.word.state, 1)
                    .unwrap_or_else(|error| panic!("futex(FUTEX_WAKE) failed while unparking: {error}"));
            }
            // The waiter set it before it announced itself.
            Notified::WasPolling => self.word.poll.get().into_iter().for_each(|poll| poll.ring()),
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
    WasPolling,
    NobodyWaits,
}

/// State transitions; the numbers are those of the diagram in `park.md`.
impl ParkWord {
    /// Transition 1, or 3 if there is a notification. Waiter only.
    fn announce(&self, how: u32) -> Announced {
        if planted("announced by a store") {
            self.state.store(how, Release);
            return Announced::Parked;
        }
        // Release on success: an unparker that finds `POLLING` reads `poll`; partner: the Acquire in
        // `notify`. Unparkers see the announcement because their swap reads the latest value of this word. A
        // failure reads no data; the swap below acquires.
        let release = order("relaxed announcement", Release);
        match self.state.compare_exchange(EMPTY, how, release, Relaxed) {
            Ok(_) => Announced::Parked,
            Err(found) => {
                debug_assert_eq!(found, NOTIFIED, "only the waiter parks, and it is here");
                // Acquire pairs with the Release in `notify`. It is a swap, not a store: an unparker may have
                // notified again since the exchange, and reading the latest value acquires from it too.
                self.state.swap(EMPTY, Acquire);
                Announced::AlreadyNotified
            }
        }
    }

    /// Transition 2. Any thread.
    fn notify(&self) -> Notified {
        // Release pairs with the Acquire in `announce`, `take` and `give_up`. It swaps even if the word is
        // NOTIFIED already: the write publishes this caller's data to the waiter. Acquire pairs with the
        // Release in `announce`, for `poll`.
        match self.state.swap(NOTIFIED, order("relaxed unpark", AcqRel)) {
            PARKED => Notified::WasParked,
            POLLING => Notified::WasPolling,
            _ => Notified::NobodyWaits,
        }
    }

    /// Transition 3. Waiter only; false while the state is still PARKED.
    fn take(&self) -> bool {
        // Acquire on success pairs with the Release in `notify`; a failure reads no data.
        self.state.compare_exchange(NOTIFIED, EMPTY, Acquire, Relaxed).is_ok()
    }

    /// Transition 4, or 3 if a notification came with the deadline. Waiter only.
    fn give_up(&self) -> Unparked {
        if planted("left by load and store") {
            let found = self.state.load(Acquire);
            self.state.store(EMPTY, Relaxed);
            return if found == NOTIFIED { Unparked::Notified } else { Unparked::TimedOut };
        }
        // Acquire pairs with the Release in `notify`, in case there is a notification.
        match self.state.swap(EMPTY, order("relaxed leave", Acquire)) {
            NOTIFIED => Unparked::Notified,
            _ => Unparked::TimedOut,
        }
    }
}

/// Whether a model has planted this mistake, to show that loom finds it. A constant outside the models.
#[cfg(not(all(loom, test)))]
#[inline(always)]
const fn planted(_: &'static str) -> bool {
    false
}

/// Returns `right`, or Relaxed if a model has planted the mistake `weak`.
#[inline(always)]
fn order(weak: &'static str, right: Ordering) -> Ordering {
    if planted(weak) { Relaxed } else { right }
}
