//! Causes for which a worker had no core.

use super::{SliceSums, Took, What, WindowPiece};
use crate::explain::case::{Scheduling, ThreadFacts};
use onbeat_trace::{CauseClass, Class, KernelEvent, Left, OffCpu};
use std::ops::Range;

/// Lowest kernel priority number of threads without a real-time policy.
const FAIR_PRIORITY: i32 = 100;

impl WindowPiece<'_, '_> {
    /// Adds a time in which the thread had no core.
    pub(super) fn without_core(
        &self,
        thread: &ThreadFacts,
        off: &OffCpu,
        at: Range<u64>,
        sums: &mut SliceSums,
    ) {
        let ready_ns = off.runnable_ns.clamp(at.start, at.end);
        let asleep_ns = ready_ns - at.start;
        if asleep_ns > 0 {
            match off.why {
                Left::Stopped => {
                    sums.took.add(self.what(CauseClass::Stopped, "", Some(off.from_cpu)), asleep_ns);
                }
                _ if !self.slice.run => self.asleep(Some(off), at.start..ready_ns, sums),
                _ => sums.took.add(self.waited(off, self.slice.operator), asleep_ns),
            }
        }
        self.ready(thread, off, ready_ns..at.end, &mut sums.took);
    }

    /// Cause of a wait inside a step of this operator.
    pub(super) fn waited(&self, off: &OffCpu, operator: u32) -> What {
        let waker = off.woken_by.as_ref();
        let holder = waker.filter(|waker| waker.is_ours && !waker.is_interrupt);
        if let Some(holder) = holder {
            return self.what(CauseClass::Lock, &*holder.name, Some(off.from_cpu));
        }
        let facts = self.case.operators.get(operator as usize);
        let (name, is_source) = facts.map_or(("", false), |facts| (&*facts.name, facts.is_source));
        let class = if is_source { CauseClass::InputLate } else { CauseClass::SystemCall };
        let detail = waker.map(|waker| {
            let by = if waker.is_interrupt { "an interrupt" } else { &*waker.name };
            format!("woken by {by}")
        });
        What { detail, ..self.what(class, name, Some(off.from_cpu)) }
    }

    /// Adds a time in which the thread was runnable without a core.
    pub(super) fn ready(&self, thread: &ThreadFacts, off: &OffCpu, at: Range<u64>, took: &mut Took) {
        if at.is_empty() {
            return;
        }
        let core = Some(off.cpu);
        let mut now_ns = at.start;
        for turn in self.cores.turns(core, &at) {
            let event = turn.event;
            let (from_ns, to_ns) = (turn.at.start.max(now_ns), turn.at.end.min(at.end));
            if from_ns >= to_ns || event.class == Class::Thread && event.pid == thread.tid {
                continue;
            }
            let what = match event.class {
                Class::Thread => self.occupied_by(thread, off, event),
                _ => self.interrupted(event, core),
            };
            self.without_event(thread, off, from_ns - now_ns, took);
            took.add(what, to_ns - from_ns);
            now_ns = to_ns;
        }
        self.without_event(thread, off, at.end - now_ns, took);
    }

    /// Adds a time in which the thread was runnable and no event is known on the core.
    fn without_event(&self, thread: &ThreadFacts, off: &OffCpu, ns: u64, took: &mut Took) {
        if thread.scheduling == Scheduling::Deadline && off.why == Left::Taken {
            // Used-up run time keeps a deadline thread from all cores.
            took.add(self.what(CauseClass::DeadlineBudget, "", Some(off.cpu)), ns);
        } else if off.from_cpu == off.cpu {
            took.add(self.what(CauseClass::RunQueueWait, "", Some(off.cpu)), ns);
        } else {
            let name = format!("core {} → {}", off.from_cpu, off.cpu);
            took.add(self.what(CauseClass::Migration, name, Some(off.cpu)), ns);
        }
    }

    /// Cause for which the core ran the event's thread, or was idle, while our thread was runnable.
    fn occupied_by(&self, thread: &ThreadFacts, off: &OffCpu, event: &KernelEvent) -> What {
        let core = Some(off.cpu);
        let is_idle = event.pid == 0;
        let was_taken = off.why == Left::Taken;
        let is_fair = event.priority >= FAIR_PRIORITY;
        match thread.scheduling {
            Scheduling::Deadline if was_taken && (is_idle || event.priority >= 0) => {
                let detail = (!is_idle).then(|| format!("{} ran", event.name));
                What { detail, ..self.what(CauseClass::DeadlineBudget, "", core) }
            }
            Scheduling::RealTime if was_taken && (is_idle || is_fair) => {
                let detail = (!is_idle).then(|| format!("{} ran", event.name));
                let name = if self.case.has_fair_server && !is_idle { "fair server" } else { "rt-throttle" };
                What { detail, ..self.what(CauseClass::RtThrottling, name, core) }
            }
            Scheduling::Fair if is_idle && (was_taken || thread.has_quota) => {
                self.what(CauseClass::RunQueueWait, "throttled (cpu.max)", core)
            }
            _ if is_idle => {
                let late = (!self.slice.run).then(|| self.woke_late("idle exit", core)).flatten();
                late.unwrap_or_else(|| self.what(CauseClass::RunQueueWait, "idle exit", core))
            }
            _ => self.preempted(event, core),
        }
    }
}

/// Policy for a kernel priority, in the notation of rtla.
pub(super) fn policy(priority: i32) -> String {
    match priority {
        ..0 => "d".to_owned(),
        0..FAIR_PRIORITY => format!("f:{}", FAIR_PRIORITY - 1 - priority),
        _ => format!("o:{}", priority - 120),
    }
}
