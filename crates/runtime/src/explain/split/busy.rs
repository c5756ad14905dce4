//! Causes while a worker had its core: its own steps, full edges, other steps before the message.

use super::slices::Slice;
use super::{Took, What, WindowPiece, beyond};
use onbeat_trace::{CauseClass, OffCpu, Span};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bound for the time of a worker from one step to the next.
const BETWEEN_NS: u64 = 50_000;

impl WindowPiece<'_, '_> {
    /// Adds a time in which the thread had its core: for a run its own computing, for a wait other steps.
    pub(super) fn own(&self, at: Range<u64>, took: &mut Took, own: &mut BTreeMap<u32, (u64, u64)>) {
        if at.is_empty() {
            return;
        }
        if self.slice.run {
            own.entry(self.slice.operator).or_default().0 += at.end - at.start;
            return;
        }
        self.not_full(at, took).into_iter().for_each(|at| self.busy(at, took, own));
    }

    /// Adds the time in which full edges held the operator. Returns the rest.
    fn not_full(&self, at: Range<u64>, took: &mut Took) -> Vec<Range<u64>> {
        let mut rest = Vec::new();
        let mut now_ns = at.start;
        for (edge, held) in &self.slice.held {
            let held = held.start.clamp(now_ns, at.end)..held.end.clamp(now_ns, at.end);
            self.full(*edge, held.end - held.start, took);
            rest.push(now_ns..held.start);
            now_ns = held.end;
        }
        rest.push(now_ns..at.end);
        rest.retain(|at| at.start < at.end);
        rest
    }

    fn full(&self, edge: u32, ns: u64, took: &mut Took) {
        let Some(edge) = self.case.edges.get(edge as usize) else { return };
        let consumer = self.case.operators.get(edge.to as usize).map_or("", |operator| &operator.name);
        let detail = Some(format!("{consumer} did not take"));
        took.add(What { detail, ..self.what(CauseClass::DownstreamFull, &*edge.name, None) }, ns);
    }

    /// Adds a wait in which the worker ran other steps.
    fn busy(&self, at: Range<u64>, took: &mut Took, own: &mut BTreeMap<u32, (u64, u64)>) {
        let Slice { source, sequence, .. } = *self.slice;
        let mut now_ns = at.start;
        for span in self.steps_in(&at) {
            let (from_ns, to_ns) = (span.start_ns.max(now_ns), span.end_ns.min(at.end));
            if from_ns >= to_ns {
                continue;
            }
            let is_own = (span.source, span.sequence) == (source, sequence)
                && self.case.way.iter().any(|step| step.operator == span.operator);
            self.between(now_ns..from_ns, took);
            if is_own {
                let own = own.entry(span.operator).or_default();
                own.0 += to_ns - from_ns;
                // A step counts in the slice in which it begins.
                own.1 += u64::from(span.start_ns == from_ns);
            } else {
                self.blame(span, to_ns - from_ns, took);
            }
            now_ns = to_ns;
        }
        self.between(now_ns..at.end, took);
    }

    /// Adds a time between steps, with a core and without kernel events. A worker goes from step to step in a
    /// few microseconds at most. A longer time is hardware's if all steps are recorded.
    fn between(&self, at: Range<u64>, took: &mut Took) {
        let ns = at.end.saturating_sub(at.start);
        let is_long = ns >= BETWEEN_NS && self.case.is_complete;
        let class = if is_long { CauseClass::Hardware } else { CauseClass::Unexplained };
        took.add(self.what(class, "", None), ns);
    }

    /// Adds a wait of `waited_ns` for another step: first the causes that made this step longer than usual,
    /// then those that made it late, and for the rest the queue.
    fn blame(&self, step: &Span, mut waited_ns: u64, took: &mut Took) {
        let Some(facts) = self.case.operators.get(step.operator as usize) else { return };
        let queue = What {
            detail: Some(format!("the worker was in {}", facts.name)),
            ..self.what(CauseClass::QueueWait, &*facts.name, None)
        };
        if self.back == 0 {
            took.add(queue, waited_ns);
            return;
        }
        let mut take = |what: What, ns: u64, waited_ns: &mut u64| {
            let ns = ns.min(*waited_ns);
            took.add(what, ns);
            *waited_ns -= ns;
        };
        let slice = |at: Range<u64>, run| Slice {
            at,
            worker: step.worker,
            operator: step.operator,
            run,
            held: Vec::new(),
            source: step.source,
            sequence: step.sequence,
        };
        let until_ns = step.end_ns.min(self.case.end_ns);
        let whole = slice(step.start_ns..until_ns.max(step.start_ns), true);
        let (mut inside, mut own) = (Took::default(), BTreeMap::new());
        WindowPiece { slice: &whole, back: 0, ..*self }.split(&mut inside, &mut own);
        let own_ns = own.get(&step.operator).map_or(0, |own| own.0);
        let allowed_ns = facts.budget_ns.or(facts.usual_ns).unwrap_or(u64::MAX);
        if own_ns > allowed_ns {
            let faults = self.cores.faults(step.worker, &(step.start_ns..until_ns));
            let beyond = beyond(self.case, step.operator, allowed_ns, own_ns - allowed_ns, faults);
            beyond.into_iter().for_each(|(what, ns)| take(what, ns, &mut waited_ns));
        }
        // Causes within the wait are added already. Only those before it pushed the step into the wait.
        if step.start_ns < self.slice.at.start {
            let before = slice(step.start_ns..self.slice.at.start.min(until_ns), true);
            let mut inside = Took::default();
            WindowPiece { slice: &before, back: 0, ..*self }.split(&mut inside, &mut BTreeMap::new());
            inside.excess.into_iter().for_each(|(what, ns)| take(what, ns, &mut waited_ns));
        }
        // The step may have begun late itself.
        if step.due_ns < step.start_ns && step.due_ns < self.slice.at.start {
            let wait = slice(step.due_ns..step.start_ns.min(self.slice.at.start), false);
            let mut inside = Took::default();
            WindowPiece { slice: &wait, back: self.back - 1, ..*self }
                .split(&mut inside, &mut BTreeMap::new());
            let foreign = |what: &What| what.class != CauseClass::Unexplained;
            inside.excess.into_iter().filter(|(what, _)| foreign(what)).for_each(|(what, ns)| {
                take(what, ns, &mut waited_ns);
            });
        }
        took.add(queue, waited_ns);
    }

    /// Adds a time in which the worker slept while its message waited: inside another step, or without known
    /// work.
    pub(super) fn asleep(&self, off: Option<&OffCpu>, at: Range<u64>, took: &mut Took) {
        for at in self.not_full(at, took) {
            let mut now_ns = at.start;
            for span in self.steps_in(&at) {
                let (from_ns, to_ns) = (span.start_ns.max(now_ns), span.end_ns.min(at.end));
                if let (true, Some(off)) = (from_ns < to_ns, off) {
                    self.overslept(from_ns - now_ns, took);
                    took.add(self.waited(off, span.operator), to_ns - from_ns);
                    now_ns = to_ns;
                }
            }
            self.overslept(at.end - now_ns, took);
        }
    }

    fn overslept(&self, ns: u64, took: &mut Took) {
        let what = if self.is_source() {
            self.what(CauseClass::TimerLate, "", None)
        } else {
            // The worker was notified late.
            self.what(CauseClass::RunQueueWait, "wake-up", None)
        };
        took.add(what, ns);
    }

    /// Steps of this worker that overlap a time, by start.
    fn steps_in(&self, at: &Range<u64>) -> Vec<&Span> {
        let overlaps = |span: &&Span| {
            span.worker == self.slice.worker && span.start_ns < at.end && span.end_ns > at.start
        };
        let mut steps: Vec<&Span> = self.case.spans.iter().filter(overlaps).collect();
        steps.sort_by_key(|span| span.start_ns);
        steps
    }

    pub(super) fn is_source(&self) -> bool {
        self.case.operators.get(self.slice.operator as usize).is_some_and(|operator| operator.is_source)
    }
}
