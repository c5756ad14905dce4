//! Descriptors (sockets, pipes, devices) that operators wait for: one set for the threads that share parts.
//!
//! A thread without work waits for its set and for its parker in one place. A thread at work looks at the set
//! now and then. Either way it finds out which operators can go on, and notifies the inboxes of their parts.

use crate::base::quiescence::WorkerInbox;
use onbeat_os::poll::{Interest, Poll};
use onbeat_queue::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock, Weak};

/// Number of the item by which an inbox learns that descriptors are ready.
pub(crate) const ITEM: u32 = 2;

/// Time from one look to the next of threads that have work: a look is a system call.
const LOOK_NS: u64 = 50_000;

/// The operators of a part whose descriptors are ready, one bit each.
pub(crate) struct ReadyOperators {
    /// Weak: the inbox wakes its pool, which has this.
    inbox: Weak<WorkerInbox>,
    bits: Box<[AtomicU64]>,
}

impl ReadyOperators {
    pub fn new(inbox: &Arc<WorkerInbox>, operators: usize) -> Self {
        let inbox = Arc::downgrade(inbox);
        ReadyOperators { inbox, bits: (0..operators.div_ceil(64)).map(|_| AtomicU64::new(0)).collect() }
    }

    fn set(&self, operator: u32) {
        if let Some(bits) = self.bits.get(operator as usize / 64) {
            // Relaxed: `schedule` publishes the bit, and the drain of the inbox acquires it.
            bits.fetch_or(1 << (operator % 64), Ordering::Relaxed);
            if let Some(inbox) = self.inbox.upgrade() {
                inbox.schedule(0, ITEM);
            }
        }
    }
}

/// See the [module](self).
pub(crate) struct Descriptors {
    /// Opened when an operator waits for the first time.
    poll: OnceLock<Arc<Poll>>,
    /// By part of the run.
    parts: Arc<[ReadyOperators]>,
    /// Real time before which no thread at work looks again.
    next_look_ns: AtomicU64,
    /// Whether a thread of a pool that has no work waits for the set. Threads at work leave it to that one.
    pub is_watched: AtomicBool,
}

impl Descriptors {
    pub fn new(parts: Arc<[ReadyOperators]>) -> Self {
        Descriptors {
            poll: OnceLock::new(),
            parts,
            next_look_ns: AtomicU64::new(0),
            is_watched: AtomicBool::new(false),
        }
    }

    /// Notifies the operator once when the descriptor is ready. False if it is always ready, as regular files
    /// are.
    pub fn arm(&self, part: u32, operator: u32, fd: BorrowedFd<'_>, what: Interest) -> io::Result<bool> {
        let poll = match self.poll.get() {
            Some(poll) => poll,
            None => {
                let poll = Arc::new(Poll::new()?);
                self.poll.get_or_init(|| poll)
            }
        };
        poll.arm(fd, what, u64::from(part) << 32 | u64::from(operator))
    }

    /// The set; `None` while no operator has waited for a descriptor.
    #[inline]
    pub fn poll(&self) -> Option<&Arc<Poll>> {
        self.poll.get()
    }

    /// Notifies the operators whose descriptors are ready. Returns whether the bell rings.
    pub fn look(&self) -> bool {
        let Some(poll) = self.poll.get() else { return false };
        let rings = poll.look(|token| {
            if let Some(part) = self.parts.get((token >> 32) as usize) {
                part.set(token as u32);
            }
        });
        // The only documented errors are wrong arguments.
        rings.unwrap_or(false)
    }

    /// Real time at which a thread at work looks next. `None` while there is nothing to look at.
    #[inline]
    pub fn next_look_ns(&self) -> Option<u64> {
        // Relaxed: hints.
        let is_open = self.poll.get().is_some() && !self.is_watched.load(Ordering::Relaxed);
        is_open.then(|| self.next_look_ns.load(Ordering::Relaxed))
    }

    /// [`look`](Self::look) at a real time, unless a thread has looked a short time ago.
    #[inline]
    pub fn look_at(&self, real_ns: impl FnOnce() -> u64) {
        let Some(next_ns) = self.next_look_ns() else { return };
        let real_ns = real_ns();
        if real_ns >= next_ns {
            self.look_now(real_ns);
        }
    }

    /// [`look`](Self::look) at a real time; threads at work look next some time after that.
    pub fn look_now(&self, real_ns: u64) -> bool {
        // Relaxed: a hint.
        self.next_look_ns.store(real_ns + LOOK_NS, Ordering::Relaxed);
        self.look()
    }

    /// Calls `ready` with each operator of a part whose descriptor is ready, once.
    pub fn take(&self, part: usize, mut ready: impl FnMut(u32)) {
        let Some(part) = self.parts.get(part) else { return };
        for (word, bits) in (0..).zip(&part.bits) {
            // Relaxed: see `set`.
            let mut left = bits.swap(0, Ordering::Relaxed);
            while left != 0 {
                ready(64 * word + left.trailing_zeros());
                left &= left - 1;
            }
        }
    }
}
