//! Stations that threads pass in order, each guarded by a ticket lock.

use super::{BUSY, TICKET, TicketGuard, TicketLock};
use crate::sync::atomic::{AtomicBool, Ordering};
use std::fmt;

/// Values at stations in a row. A ticket goes from the first station to the last and has each value for
/// itself; tickets come to each station in the order in which they began.
///
/// An idle thread begins as the next ticket, so each station may have a ticket at once, and any thread may
/// hold any ticket.
///
/// ```
/// use onbeat_queue::TicketedPipeline;
///
/// let pipeline = TicketedPipeline::new([String::new(), String::new()]);
/// let mut first = pipeline.begin().unwrap();
/// assert!(pipeline.begin().is_none());                  // the first station is taken
/// first.arrive().unwrap().push('a');
/// let mut second = pipeline.begin().unwrap();
/// second.arrive().unwrap().push('b');
/// assert!(second.arrive().is_none());                   // the first ticket has not been there yet
/// first.arrive().unwrap().push('a');
/// let mut station = second.arrive().unwrap();
/// station.push('b');
/// assert_eq!(*station, "ab");
/// ```
pub struct TicketedPipeline<T> {
    stations: Box<[TicketLock<T>]>,
    /// Whether a ticket was dropped half-way: later tickets cannot pass the stations that it skipped.
    is_broken: AtomicBool,
}

/// A ticket that has begun, and goes on from station to station.
pub struct Ticket<'p, T> {
    pipeline: &'p TicketedPipeline<T>,
    number: u64,
    /// The next station.
    station: usize,
}

impl<T> TicketedPipeline<T> {
    /// Makes a pipeline with one station for each value.
    ///
    /// # Panics
    /// Without any value.
    pub fn new(values: impl IntoIterator<Item = T>) -> Self {
        let stations: Box<[TicketLock<T>]> = values.into_iter().map(TicketLock::new).collect();
        assert!(!stations.is_empty(), "a pipeline without stations");
        TicketedPipeline { stations, is_broken: AtomicBool::new(false) }
    }

    /// Returns the number of stations.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.stations.len()
    }

    /// Begins as the next ticket. `None` while a ticket is at the first station, and when the pipeline is
    /// broken.
    #[inline]
    pub fn begin(&self) -> Option<Ticket<'_, T>> {
        self.begin_if(|_| true)
    }

    /// As [`begin`](TicketedPipeline::begin), if `may` accepts the value of the first station. If not,
    /// nothing has changed.
    #[inline]
    pub fn begin_if(&self, may: impl FnOnce(&mut T) -> bool) -> Option<Ticket<'_, T>> {
        let first = &self.stations[0];
        let now = first.peek();
        if now & BUSY != 0 || self.is_broken() {
            return None;
        }
        let mut guard = first.enter(now)?;
        let number = now >> TICKET;
        let mut ticket = Ticket { pipeline: self, number, station: 1 };
        // In case `may` panics: the ticket ends after the first station.
        guard.next = (number + 1) << TICKET;
        if may(&mut guard) {
            // BUSY stays: `arrive` makes the guard again.
            std::mem::forget(guard);
            ticket.station = 0;
            return Some(ticket);
        }
        guard.next = now;
        ticket.station = self.stations.len();
        None
    }

    /// Whether a ticket was dropped half-way: later tickets would wait for it for ever. A hint.
    #[inline]
    pub fn is_broken(&self) -> bool {
        // Relaxed: nothing is read through it.
        self.is_broken.load(Ordering::Relaxed)
    }
}

impl<T> Ticket<'_, T> {
    /// Begins the turn at the next station. `None` while the ticket before has not left it, and after the
    /// last one.
    #[inline]
    pub fn arrive(&mut self) -> Option<TicketGuard<'_, T>> {
        let station = self.pipeline.stations.get(self.station)?;
        let guard = if self.station == 0 {
            // SAFETY: `begin_if` has set BUSY for this ticket and forgot the guard.
            unsafe { station.guard((self.number + 1) << TICKET) }
        } else {
            // SAFETY: numbers are given out once each, and these stations are entered this way only.
            unsafe { station.arrive(self.number) }?
        };
        self.station += 1;
        Some(guard)
    }

    /// Whether the ticket has been at all stations.
    #[inline]
    pub fn is_through(&self) -> bool {
        self.station == self.pipeline.stations.len()
    }
}

impl<T> Drop for Ticket<'_, T> {
    fn drop(&mut self) {
        if !self.is_through() {
            // Relaxed: nothing is read through it.
            self.pipeline.is_broken.store(true, Ordering::Relaxed);
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
