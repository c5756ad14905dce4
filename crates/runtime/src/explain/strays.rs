//! Strays: workers found on foreign cores. The kernel moves a thread whose only core goes offline.

use super::case::ThreadFacts;
use crate::plan::Plan;
use onbeat_trace::Evidence;
use std::collections::BTreeSet;
use std::ops::Range;

/// Strays found so far.
#[derive(Debug, Default)]
pub(super) struct Strays {
    /// Workers that have a note.
    seen: BTreeSet<usize>,
    /// End of the time examined so far.
    known_ns: u64,
    /// One note for each stray.
    pub notes: Vec<String>,
}

impl Strays {
    /// Examines the evidence since the previous call. At the start of a run each thread is on its own core.
    pub fn examine(
        &mut self,
        evidence: &mut dyn Evidence,
        threads: &[ThreadFacts],
        plan: &Plan,
        run: Range<u64>,
    ) {
        if self.seen.len() == threads.len() || run.is_empty() {
            return;
        }
        let since_ns = self.known_ns.max(run.start);
        self.known_ns = run.end;
        for off in evidence.off_cpu(since_ns..run.end) {
            let Some(worker) = threads.iter().position(|thread| thread.tid == off.tid) else { continue };
            let Some(core) = threads[worker].core.filter(|core| *core != off.cpu) else { continue };
            let is_back = off.is_end_known && off.in_ns != u64::MAX && off.in_ns > run.start;
            if is_back && self.seen.insert(worker) {
                let (name, cpu) = (&plan.workers[worker].name, off.cpu);
                self.notes.push(format!(
                    "{name} ran on core {cpu} although it is bound to core {core}: core {core} was taken offline, or another program moved the thread"
                ));
            }
        }
    }
}
