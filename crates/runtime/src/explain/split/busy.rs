//! Causes while a worker had its core: its own steps, full edges, other steps before the message.

use super::backlog::BehindStep;
use super::slices::Slice;
use super::{SliceSums, What, WindowPiece};
use onbeat_trace::{CauseClass, OffCpu};
use std::ops::Range;

/// Bound for the time of a worker from one step to the next.
pub(super) const BETWEEN_NS: u64 = 50_000;

impl WindowPiece<'_, '_> {
    /// Adds a time in which the thread had its core: for a run its own computing, for a wait other steps.
    pub(super) fn own(&self, at: Range<u64>, sums: &mut SliceSums) {
        if at.is_empty() {
            return;
        }
        if self.slice.run {
            sums.own.entry(self.slice.operator).or_default().0 += at.end - at.start;
            return;
        }
        for (at, full) in self.not_full(at, true, sums) {
            self.busy(at, full, sums);
        }
    }

    /// Adds the time in which full edges held the operator. Returns the rest, and the time in which this
    /// worker computed what an edge had no room for, with the edge.
    fn not_full(
        &self,
        at: Range<u64>,
        is_awake: bool,
        sums: &mut SliceSums,
    ) -> Vec<(Range<u64>, Option<u32>)> {
        let mut rest = Vec::new();
        let mut now_ns = at.start;
        for full in &self.slice.held {
            let held = full.at.start.clamp(now_ns, at.end)..full.at.end.clamp(now_ns, at.end);
            rest.push((now_ns..held.start, None));
            now_ns = held.end;
            let held = self.until_awaited(full, &held, sums)..held.end;
            if held.is_empty() {
                continue;
            }
            if is_awake && self.consumer(full.edge, held.end) == Some(self.slice.worker) {
                rest.push((held, Some(full.edge)));
            } else {
                self.held_up(full.edge, held, sums);
            }
        }
        rest.push((now_ns..at.end, None));
        rest.retain(|(at, _)| at.start < at.end);
        rest
    }

    /// Worker that took from an edge before a time.
    pub(super) fn consumer(&self, edge: u32, before_ns: u64) -> Option<u32> {
        let edge = self.case.edges.get(edge as usize)?;
        self.cores.lines.worker_of(edge.to, before_ns)
    }

    pub(super) fn full(&self, edge: u32) -> Option<What> {
        let edge = self.case.edges.get(edge as usize)?;
        let consumer = self.case.operators.get(edge.to as usize).map_or("", |operator| &operator.name);
        let detail = Some(format!("{consumer} did not take"));
        Some(What { detail, ..self.what(CauseClass::DownstreamFull, &*edge.name, None) })
    }

    /// Adds a wait in which the worker ran other steps. `full` is the edge that had no room meanwhile.
    pub(super) fn busy(&self, at: Range<u64>, full: Option<u32>, sums: &mut SliceSums) {
        let Slice { worker, source, sequence, .. } = *self.slice;
        let mut now_ns = at.start;
        for span in self.cores.lines.steps_in(worker, &at) {
            let (from_ns, to_ns) = (span.start_ns.max(now_ns), span.end_ns.min(at.end));
            if from_ns >= to_ns {
                continue;
            }
            let is_own = (span.source, span.sequence) == (source, sequence)
                && self.case.way.iter().any(|step| step.operator == span.operator);
            self.between(now_ns..from_ns, full, sums);
            if is_own {
                let own = sums.own.entry(span.operator).or_default();
                own.0 += to_ns - from_ns;
                // A step counts in the slice in which it begins.
                own.1 += u64::from(span.start_ns == from_ns);
            } else {
                BehindStep::add(&mut sums.behind, span, full, to_ns - from_ns);
            }
            now_ns = to_ns;
        }
        self.between(now_ns..at.end, full, sums);
    }

    /// Adds a time between steps, with a core and without kernel events. A worker goes from step to step in a
    /// few microseconds at most. A longer time is hardware's if all steps are recorded.
    fn between(&self, at: Range<u64>, full: Option<u32>, sums: &mut SliceSums) {
        let ns = at.end.saturating_sub(at.start);
        let is_long = ns >= BETWEEN_NS && self.case.is_complete;
        let what = full.and_then(|edge| self.full(edge)).unwrap_or_else(|| match is_long {
            true => self.what(CauseClass::Hardware, "", None),
            // A worker that has work looks now and then.
            false => self.in_socket(None).unwrap_or_else(|| self.what(CauseClass::Unexplained, "", None)),
        });
        sums.took.add(what, ns);
    }

    /// Adds a time in which the worker slept while its message waited: inside another step, or without known
    /// work.
    pub(super) fn asleep(&self, off: Option<&OffCpu>, at: Range<u64>, sums: &mut SliceSums) {
        for (at, _) in self.not_full(at, false, sums) {
            let mut now_ns = at.start;
            for span in self.cores.lines.steps_in(self.slice.worker, &at) {
                let (from_ns, to_ns) = (span.start_ns.max(now_ns), span.end_ns.min(at.end));
                if let (true, Some(off)) = (from_ns < to_ns, off) {
                    self.overslept(from_ns - now_ns, sums);
                    sums.took.add(self.waited(off, span.operator), to_ns - from_ns);
                    now_ns = to_ns;
                }
            }
            self.overslept(at.end - now_ns, sums);
        }
    }

    /// Adds a time in which the worker slept and nothing woke it. Only a source asks to be woken.
    fn overslept(&self, ns: u64, sums: &mut SliceSums) {
        let what = self.woke_late("", None);
        sums.took.add(what.unwrap_or_else(|| self.what(CauseClass::Unexplained, "", None)), ns);
    }

    /// Cause of a source's late step where nothing kept it from its core. `why`: why it woke late.
    pub(super) fn woke_late(&self, why: &str, core: Option<u32>) -> Option<What> {
        let is_timer = || self.is_source().then(|| self.what(CauseClass::TimerLate, why, core));
        self.in_socket(core).or_else(is_timer)
    }

    /// Cause of a source's wait for a worker that has not found its data yet.
    fn in_socket(&self, core: Option<u32>) -> Option<What> {
        let facts = self.case.operators.get(self.slice.operator as usize)?;
        let is_so = facts.is_source && facts.awaits_descriptors && !self.slice.run;
        is_so.then(|| self.what(CauseClass::SocketWait, &*facts.name, core))
    }

    pub(super) fn is_source(&self) -> bool {
        self.case.operators.get(self.slice.operator as usize).is_some_and(|operator| operator.is_source)
    }
}
