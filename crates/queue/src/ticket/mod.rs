//! A ticket lock: a value and a number that says whose turn it is. See `README.md` beside this file for the
//! states, the protocol and the races it closes.

#[cfg(all(loom, test))]
mod model;
mod pipeline;
mod round_robin;

pub use pipeline::{Ticket, TicketedPipeline};
pub use round_robin::{MemberEntry, MemberGuard, TurnMember, TurnWatch};

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{CachePadded, UnsafeCell, order, planted};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A thread is in its turn.
const BUSY: u64 = 1;
/// No turns are left.
const CLOSED: u64 = 2;
/// Lowest bit of the ticket whose turn it is.
const TICKET: u32 = 2;

/// A value, and the ticket whose turn with the value it is.
struct TicketLock<T> {
    /// On cache lines of its own: threads poll it while another one works on the value.
    word: CachePadded<AtomicU64>,
    value: CachePadded<UnsafeCell<T>>,
}

// SAFETY: one thread at a time touches the value, the one whose turn the word says it is. The value goes from
// thread to thread, so it must be `Send`. See README.md.
unsafe impl<T: Send> Sync for TicketLock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for TicketLock<T> {}

impl<T> TicketLock<T> {
    fn new(value: T) -> Self {
        TicketLock {
            word: CachePadded::new(AtomicU64::new(0)),
            value: CachePadded::new(UnsafeCell::new(value)),
        }
    }

    /// Returns the word. A hint.
    #[inline(always)]
    fn peek(&self) -> u64 {
        // Relaxed: `enter` and `arrive` synchronise.
        self.word.load(Ordering::Relaxed)
    }

    /// Begins a turn if the word is still `now`, which must not have BUSY. The guard leaves `now` behind.
    #[inline]
    fn enter(&self, now: u64) -> Option<TicketGuard<'_, T>> {
        // Acquire, partner: the store of the guard before.
        let acquire = order("relaxed enter", Ordering::Acquire);
        if planted("enter by load and store") {
            if self.word.load(acquire) != now {
                return None;
            }
            self.word.store(now | BUSY, Ordering::Relaxed);
        } else {
            self.word.compare_exchange(now, now | BUSY, acquire, Ordering::Relaxed).ok()?;
        }
        // SAFETY: this call has set BUSY, so no other turn begins until the guard is dropped.
        Some(unsafe { self.guard(now) })
    }

    /// Begins the turn of `ticket` without an exchange, if it is its turn. The guard leaves the next ticket
    /// behind.
    ///
    /// # Safety
    /// Only the caller has this ticket, and all turns begin this way.
    #[inline]
    unsafe fn arrive(&self, ticket: u64) -> Option<TicketGuard<'_, T>> {
        // Acquire, partner: the store of the guard before.
        let now = self.word.load(order("relaxed arrive", Ordering::Acquire));
        if now != ticket << TICKET && !planted("no check of the ticket") {
            return None;
        }
        // SAFETY: nobody else has the ticket whose turn it is.
        Some(unsafe { self.guard((ticket + 1) << TICKET) })
    }

    /// Returns the guard of a turn that has begun; it leaves the word `next` behind.
    ///
    /// # Safety
    /// The turn is the caller's, and no other guard of it exists.
    #[inline(always)]
    unsafe fn guard(&self, next: u64) -> TicketGuard<'_, T> {
        TicketGuard { lock: self, next, value: PhantomData }
    }
}

/// A turn with the value; ends when it is dropped.
///
/// Threads may share it only if they may share the value:
///
/// ```compile_fail,E0277
/// # use onbeat_queue::TicketedPipeline;
/// # use std::cell::Cell;
/// let pipeline = TicketedPipeline::new([Cell::new(0)]);
/// let mut ticket = pipeline.begin().unwrap();
/// let guard = ticket.arrive().unwrap();
/// fn share(_: impl Sync) {}
/// share(&guard);
/// ```
#[must_use]
pub struct TicketGuard<'l, T> {
    lock: &'l TicketLock<T>,
    /// The word after this turn.
    next: u64,
    /// Makes the guard `Sync` only where a `&mut T` is.
    value: PhantomData<&'l mut T>,
}

impl<T> Drop for TicketGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release, partners: the Acquire of `enter` and `arrive`. A store: nobody else changes the word in a
        // turn.
        self.lock.word.store(self.next, order("relaxed leave", Ordering::Release));
    }
}

impl<T> Deref for TicketGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.lock.value.with(|value| {
            // SAFETY: this is the only turn until the guard is dropped, and the value lives as long as the
            // lock.
            unsafe { &*value }
        })
    }
}

impl<T> DerefMut for TicketGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.lock.value.with_mut(|value| {
            // SAFETY: as above, and `self` is borrowed exclusively.
            unsafe { &mut *value }
        })
    }
}

impl<T> fmt::Debug for TicketGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketGuard(then {})", self.next >> TICKET)
    }
}
