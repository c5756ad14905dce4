//! What steps know of their waits: for a lock, and for messages from another run.

use super::Context;
use onbeat_trace::{LinkArrival, LockWait};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of entries of each kind that are kept, the latest ones.
const KEPT: usize = 1 << 14;

/// Waits of all threads of a run. A thread writes to it only after it has waited for a lock, or has read a
/// message from a socket; the thread that explains reads it only for late messages.
#[derive(Debug, Default)]
pub(crate) struct WaitLog {
    locks: Latest<LockWait>,
    arrivals: Latest<LinkArrival>,
}

#[derive(Debug)]
struct Latest<T>(Mutex<VecDeque<T>>);

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Latest(Mutex::default())
    }
}

impl<T> Latest<T> {
    fn all(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, entry: T) {
        let mut all = self.all();
        if all.len() == KEPT {
            all.pop_front();
        }
        all.push_back(entry);
    }
}

impl WaitLog {
    /// Returns the waits within a time, in order of their ends.
    pub fn within(&self, at: &Range<u64>) -> Vec<LockWait> {
        let all = self.locks.all();
        let begin = all.iter().rposition(|wait| wait.to_ns < at.start).map_or(0, |last| last + 1);
        let mut found: Vec<LockWait> =
            all.range(begin..).filter(|wait| wait.from_ns < at.end).cloned().collect();
        found.sort_by_key(|wait| wait.to_ns);
        found
    }

    /// Returns the messages from other runs that came within a time.
    pub fn arrivals(&self, at: &Range<u64>) -> Vec<LinkArrival> {
        let all = self.arrivals.all();
        all.iter().rev().filter(|arrival| at.contains(&arrival.came_ns)).cloned().collect()
    }
}

impl Context {
    /// Tells the engine that this step has waited for the lock of the Python interpreter, which explains late
    /// messages. Times are nanoseconds on `CLOCK_MONOTONIC`; `holder` is the operator or thread that had the
    /// lock. Without effect if the run explains nothing.
    #[doc(hidden)]
    pub fn waited_for_gil(&mut self, from_ns: u64, to_ns: u64, holder: &str) {
        if let Some(waits) = &self.waits {
            let tid = onbeat_os::thread::current_id();
            waits.locks.push(LockWait { tid, from_ns, to_ns, holder: holder.to_owned() });
        }
    }

    /// Tells the engine that the message that this step sends came from another run, which explains late
    /// messages. Without effect if the run explains nothing.
    #[doc(hidden)]
    pub fn came_over_link(&mut self, arrival: impl FnOnce(i32) -> LinkArrival) {
        if let Some(waits) = &self.waits {
            waits.arrivals.push(arrival(onbeat_os::thread::current_id()));
        }
    }
}
