//! Waits for a lock that the thread knows: that of the Python interpreter.

use super::{Took, WindowPiece};
use crate::explain::case::ThreadFacts;
use onbeat_trace::{CauseClass, LockWait};
use std::ops::Range;

impl<'c> WindowPiece<'_, 'c> {
    /// Returns the waits of the thread within a time, in order, without overlaps.
    pub(super) fn lock_waits(
        &self,
        thread: &ThreadFacts,
        at: &Range<u64>,
    ) -> Vec<(&'c LockWait, Range<u64>)> {
        let mut now_ns = at.start;
        let waits = self.case.lock_waits.iter().filter(|wait| wait.tid == thread.tid);
        let mut found = Vec::new();
        for wait in waits {
            let from_ns = wait.from_ns.clamp(now_ns, at.end);
            let to_ns = wait.to_ns.clamp(from_ns, at.end);
            if from_ns < to_ns {
                found.push((wait, from_ns..to_ns));
                now_ns = to_ns;
            }
        }
        found
    }

    /// Adds the time of a wait. What it took the thread to get a core again has its own cause.
    pub(super) fn in_lock_wait(
        &self,
        thread: &ThreadFacts,
        wait: &LockWait,
        at: Range<u64>,
        took: &mut Took,
    ) {
        let mut now_ns = at.start;
        for off in self.cores.lines.off_in(self.slice.worker, &at) {
            let ready_ns = off.runnable_ns.clamp(now_ns, at.end);
            let in_ns = self.end_of(off).clamp(ready_ns, at.end);
            took.add(self.what(CauseClass::GilWait, &*wait.holder, None), ready_ns - now_ns);
            self.ready(thread, off, ready_ns..in_ns, took);
            now_ns = in_ns;
        }
        took.add(self.what(CauseClass::GilWait, &*wait.holder, None), at.end - now_ns);
    }
}
