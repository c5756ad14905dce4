//! The ring through which a measuring thread hands its observations to the thread that reads them.

use onbeat_queue::sync::CachePadded;
use onbeat_queue::sync::atomic::{AtomicU64, Ordering};
use onbeat_queue::{Owner, Spsc};
use std::sync::Arc;

/// Observations of one measuring thread, on their way to the reader.
pub(crate) struct Outbox<T> {
    ring: Spsc<T>,
    /// The ring holds every observation from before this time.
    complete_ns: CachePadded<AtomicU64>,
    /// Number of observations for which the ring had no room.
    dropped: CachePadded<AtomicU64>,
}

impl<T: Send> Outbox<T> {
    /// Makes an outbox for `capacity` observations, with its writing and its reading end.
    pub fn new(capacity: usize) -> (Arc<Self>, Owner, Owner) {
        let (writer, reader) = (Owner::new(), Owner::new());
        let outbox = Outbox {
            ring: Spsc::new(&writer, &reader, capacity),
            complete_ns: CachePadded::new(AtomicU64::new(0)),
            dropped: CachePadded::new(AtomicU64::new(0)),
        };
        (Arc::new(outbox), writer, reader)
    }

    /// Adds an observation, or counts it as dropped if there is no room.
    pub fn push(&self, writer: &mut Owner, observation: T) {
        if self.ring.push(writer, observation).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Says that all observations from before `ns` are in the ring. Ordered after the pushes for a reader
    /// that loads it first.
    pub fn complete_until(&self, ns: u64) {
        self.complete_ns.store(ns, Ordering::Release);
    }

    /// Takes all observations out. The first value is the time before which none is missing: it is loaded
    /// before the ring is read.
    pub fn take(&self, reader: &mut Owner) -> (u64, Vec<T>) {
        let complete_ns = self.complete_ns.load(Ordering::Acquire);
        let mut observations = Vec::new();
        self.ring.poll(reader);
        self.ring.drain(reader, |observation| observations.push(observation));
        self.ring.release(reader);
        (complete_ns, observations)
    }

    /// Number of observations for which the ring had no room.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
