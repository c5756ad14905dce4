//! Stations that are passed in order. See `README.md` beside this file for the states, the protocol and the races it closes.

#[cfg(all(loom, test))]
#[path = "pipeline_model.rs"]
mod model;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{CachePadded, UnsafeCell, order, planted};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Somebody is at the first station. At the others the number alone says who may be there.
const BUSY: u64 = 1;
/// Whose turn it is, from this bit on.
const NUMBER: u32 = 1;

/// One value, and whose turn with it it is.
struct Station<T> {
    /// On lines of its own: runners look at it while another one works on the value.
    word: CachePadded<AtomicU64>,
    value: CachePadded<UnsafeCell<T>>,
}

/// Values at stations in a row. A runner goes from the first to the last and has the value of each for itself; all runners come to each
/// station in the order in which they began.
///
/// Who has nothing to do anyway begins as the next runner, so there may be one at each station, and any thread may be any of them.
///
/// ```
/// use onbeat_queue::TicketedPipeline;
///
/// let relay = TicketedPipeline::new([String::new(), String::new()]);
/// let mut first = relay.begin().unwrap();
/// assert!(relay.begin().is_none());                     // somebody is at the first station
/// first.arrive().unwrap().push('a');
/// let mut second = relay.begin().unwrap();
/// second.arrive().unwrap().push('b');
/// assert!(second.arrive().is_none());                   // the first one was not there yet
/// first.arrive().unwrap().push('a');
/// let mut station = second.arrive().unwrap();
/// station.push('b');
/// assert_eq!(*station, "ab");
/// ```
pub struct TicketedPipeline<T> {
    stations: Box<[Station<T>]>,
    /// A runner has given up on its way: nobody comes by there any more.
    is_broken: AtomicBool,
}

// SAFETY: a value is touched by one runner at a time, whose turn the station's word says it is; it goes from thread to thread, so it must be
// `Send`. See README.md.
unsafe impl<T: Send> Sync for TicketedPipeline<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for TicketedPipeline<T> {}

/// One that has begun, and goes on from station to station.
///
/// Dropped before it was at all of them, it breaks the relay: see [`TicketedPipeline::is_broken`].
#[must_use]
pub struct Ticket<'r, T> {
    relay: &'r TicketedPipeline<T>,
    number: u64,
    /// The next one.
    station: usize,
}

/// A runner is at a station, until this is dropped.
///
/// It may be shared among threads only where the value may:
///
/// ```compile_fail
/// # use onbeat_queue::TicketedPipeline;
/// # use std::cell::Cell;
/// let relay = TicketedPipeline::new([Cell::new(0)]);
/// let mut runner = relay.begin().unwrap();
/// let stay = runner.arrive().unwrap();
/// fn share(_: impl Sync) {}
/// share(&stay);
/// ```
#[must_use]
pub struct TicketGuard<'s, 'r, T> {
    runner: &'s mut Ticket<'r, T>,
    /// It is as a `&mut` to the value, also for whoever wants to share it with other threads.
    value: PhantomData<&'s mut T>,
}

impl<T> TicketedPipeline<T> {
    /// One with a station for each value.
    ///
    /// # Panics
    /// Without any.
    pub fn new(values: impl IntoIterator<Item = T>) -> Self {
        let station = |value| Station {
            word: CachePadded::new(AtomicU64::new(0)),
            value: CachePadded::new(UnsafeCell::new(value)),
        };
        let stations: Box<[Station<T>]> = values.into_iter().map(station).collect();
        assert!(!stations.is_empty(), "a relay without stations");
        TicketedPipeline { stations, is_broken: AtomicBool::new(false) }
    }

    /// How many stations there are.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.stations.len()
    }

    /// Begins as the next runner. `None` while there is one at the first station, and when the relay is broken.
    #[inline]
    pub fn begin(&self) -> Option<Ticket<'_, T>> {
        self.begin_if(|_| true)
    }

    /// As [`begin`](TicketedPipeline::begin), if the value of the first station says so; else it is as if nobody had come.
    #[inline]
    pub fn begin_if(&self, may: impl FnOnce(&mut T) -> bool) -> Option<Ticket<'_, T>> {
        let first = &self.stations[0];
        // Relaxed: a look. The exchange below is what counts.
        let now = first.word.load(Ordering::Relaxed);
        if now & BUSY != 0 || self.is_broken() {
            return None;
        }
        // Acquire, partner: the stores of `Station::leave`.
        let acquire = order("relaxed begin", Ordering::Acquire);
        let (busy, relaxed) = (now | BUSY, Ordering::Relaxed);
        if planted("begin by load and store") {
            first.word.store(busy, relaxed);
        } else if first.word.compare_exchange(now, busy, acquire, relaxed).is_err() {
            return None;
        }
        let mut runner = Ticket { relay: self, number: now >> NUMBER, station: 0 };
        let mut stay = TicketGuard { runner: &mut runner, value: PhantomData };
        let may = may(&mut stay);
        // It stays there, or was never there.
        std::mem::forget(stay);
        if may {
            return Some(runner);
        }
        first.leave(now);
        runner.station = self.stations.len();
        None
    }

    /// Whether a runner was dropped on its way: those behind it would wait for it for ever. A hint.
    #[inline]
    pub fn is_broken(&self) -> bool {
        // Relaxed: nothing goes by it.
        self.is_broken.load(Ordering::Relaxed)
    }
}

impl<T> Station<T> {
    #[inline(always)]
    fn leave(&self, word: u64) {
        // Release, partners: `begin_if`, `arrive`. A store: nobody else changes the word meanwhile.
        self.word.store(word, order("relaxed leave", Ordering::Release));
    }
}

impl<'r, T> Ticket<'r, T> {
    /// Comes to the next station. `None` while the runner before has not left it, and behind the last one.
    #[inline]
    pub fn arrive(&mut self) -> Option<TicketGuard<'_, 'r, T>> {
        if self.station > 0 {
            let station = self.relay.stations.get(self.station)?;
            // Acquire, partner: `Station::leave`.
            let now = station.word.load(order("relaxed arrive", Ordering::Acquire));
            if now != self.number << NUMBER && !planted("no look at the number") {
                return None;
            }
        }
        Some(TicketGuard { runner: self, value: PhantomData })
    }

    /// Whether it was at all stations.
    #[inline]
    pub fn is_through(&self) -> bool {
        self.station == self.relay.stations.len()
    }
}

impl<T> TicketGuard<'_, '_, T> {
    fn station(&self) -> &Station<T> {
        &self.runner.relay.stations[self.runner.station]
    }
}

impl<T> Deref for TicketGuard<'_, '_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.station().value.with(|value| {
            // SAFETY: it is this runner's turn at the station until the stay is dropped, and the runner is borrowed exclusively.
            unsafe { &*value }
        })
    }
}

impl<T> DerefMut for TicketGuard<'_, '_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.station().value.with_mut(|value| {
            // SAFETY: as above, and `self` is borrowed exclusively.
            unsafe { &mut *value }
        })
    }
}

impl<T> Drop for TicketGuard<'_, '_, T> {
    #[inline]
    fn drop(&mut self) {
        self.station().leave((self.runner.number + 1) << NUMBER);
        self.runner.station += 1;
    }
}

impl<T> Drop for Ticket<'_, T> {
    fn drop(&mut self) {
        if !self.is_through() {
            // Relaxed: nothing goes by it.
            self.relay.is_broken.store(true, Ordering::Relaxed);
        }
    }
}

impl<T> fmt::Debug for TicketedPipeline<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketedPipeline({} stations)", self.stations.len())
    }
}

impl<T> fmt::Debug for Ticket<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({} before station {})", self.number, self.station)
    }
}

impl<T> fmt::Debug for TicketGuard<'_, '_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketGuard({} at station {})", self.runner.number, self.runner.station)
    }
}
