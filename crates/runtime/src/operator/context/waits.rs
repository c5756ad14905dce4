//! Waits of steps for a lock that they know.

use super::Context;
use onbeat_trace::LockWait;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of waits that are kept, the latest ones.
const KEPT: usize = 1 << 14;

/// Waits of all threads of a run. A thread writes to it only after it has waited for a lock anyway.
#[derive(Debug, Default)]
pub(crate) struct WaitLog(Mutex<VecDeque<LockWait>>);

impl WaitLog {
    fn all(&self) -> MutexGuard<'_, VecDeque<LockWait>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, wait: LockWait) {
        let mut all = self.all();
        if all.len() == KEPT {
            all.pop_front();
        }
        all.push_back(wait);
    }

    /// Returns the waits within a time, in order of their ends.
    pub fn within(&self, at: &Range<u64>) -> Vec<LockWait> {
        let all = self.all();
        let begin = all.iter().rposition(|wait| wait.to_ns < at.start).map_or(0, |last| last + 1);
        let mut found: Vec<LockWait> =
            all.range(begin..).filter(|wait| wait.from_ns < at.end).cloned().collect();
        found.sort_by_key(|wait| wait.to_ns);
        found
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
            waits.push(LockWait { tid, from_ns, to_ns, holder: holder.to_owned() });
        }
    }
}
