//! Workers on cores that are not theirs: the kernel moves a thread whose only core is taken away.

use super::case::ThreadFacts;
use crate::plan::Plan;
use onbeat_trace::Evidence;
use std::collections::BTreeSet;
use std::ops::Range;

/// What was seen of them.
#[derive(Debug, Default)]
pub(super) struct Strays {
    seen: BTreeSet<usize>,
    /// Up to when that was looked for.
    known_ns: u64,
    /// One for each of them.
    pub notes: Vec<String>,
}

impl Strays {
    /// Looks at what came since the last look. A run begins with its threads where they are bound to.
    pub fn look(
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
                    "{name} ran on core {cpu}, though it is bound to core {core}: that core was taken offline, or somebody moved it"
                ));
            }
        }
    }
}
