//! Timeline of each core: which kernel event had it at which moment.

use super::case::Case;
use super::lines::WorkerLines;
use onbeat_trace::{Class, KernelEvent, PageFault};
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::ops::Range;

/// Upper bound for a page fault of unknown duration, in multiples of the estimate. The cost depends on where
/// the page comes from and on the core's other work. Measured in virtual machines: 1.2 µs if the host has
/// provided the page before, 11 to 56 µs if it has not.
const FAULT_MOST: u64 = 4;

/// Time on one core during which one event ran without interruption.
#[derive(Debug, Clone)]
pub(super) struct CoreTurn<'e> {
    pub at: Range<u64>,
    pub event: &'e KernelEvent,
}

/// Lays out the events of one core in time. The duration of an event excludes its interruptions. So an event
/// that begins before another one has had its full duration interrupts that one. No moment has two events.
fn lay_out<'e>(events: &'e [KernelEvent], cpu: u32, window: &Range<u64>) -> Vec<CoreTurn<'e>> {
    let mut order: Vec<&KernelEvent> = events
        .iter()
        .filter(|event| event.cpu == cpu && event.start_ns < window.end && event.duration_ns > 0)
        .filter(|event| event.class <= Class::Thread)
        .collect();
    // Of two events that begin at the same time, the one that can be interrupted is the outer one.
    order.sort_by_key(|event| (event.start_ns, Reverse(event.class)));
    let mut turns = Vec::new();
    // Events with the rest of their duration, the innermost last.
    let mut stack: Vec<(&KernelEvent, u64)> = Vec::new();
    let mut now_ns = 0;
    let mut next = order.into_iter().peekable();
    loop {
        let until_ns = next.peek().map_or(window.end, |event| event.start_ns);
        while now_ns < until_ns
            && let Some((event, left_ns)) = stack.last_mut()
        {
            let step_ns = (*left_ns).min(until_ns - now_ns);
            let at = now_ns.max(window.start)..(now_ns + step_ns).min(window.end);
            if at.start < at.end {
                turns.push(CoreTurn { at, event });
            }
            now_ns += step_ns;
            *left_ns -= step_ns;
            if *left_ns == 0 {
                stack.pop();
            }
        }
        now_ns = now_ns.max(until_ns);
        match next.next() {
            // A thread does not run inside another one. The rest of the previous one is unknown, and dropped.
            Some(event) => {
                if event.class == Class::Thread {
                    stack.clear();
                }
                stack.push((event, event.duration_ns));
            }
            None => return turns,
        }
    }
}

/// Timelines of all cores, each made at its first use, and of all workers.
pub(super) struct Cores<'c> {
    case: &'c Case<'c>,
    pub lines: WorkerLines<'c>,
    window: Range<u64>,
    by_core: Vec<(u32, OnceCell<Vec<CoreTurn<'c>>>)>,
}

impl<'c> Cores<'c> {
    pub fn new(case: &'c Case<'c>) -> Self {
        let mut cpus: Vec<u32> = case.events.iter().map(|event| event.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let first = case.spans.iter().map(|span| span.start_ns).min().unwrap_or(case.due_ns);
        let by_core = cpus.into_iter().map(|cpu| (cpu, OnceCell::new())).collect();
        Cores { case, lines: WorkerLines::new(case), window: first.min(case.due_ns)..case.end_ns, by_core }
    }

    /// Time from which on steps and events are known.
    pub fn begin_ns(&self) -> u64 {
        self.window.start
    }

    /// Events that had this core in a range of time.
    pub fn turns(&self, cpu: Option<u32>, at: &Range<u64>) -> &[CoreTurn<'c>] {
        let Some((cpu, turns)) = self.by_core.iter().find(|(known, _)| Some(*known) == cpu) else {
            return &[];
        };
        let turns = turns.get_or_init(|| lay_out(self.case.events, *cpu, &self.window));
        let from = turns.partition_point(|turn| turn.at.end <= at.start);
        let to = from + turns[from..].partition_point(|turn| turn.at.start < at.end);
        &turns[from..to]
    }

    /// Core of a worker's thread at a time at which it had one.
    pub fn core_of(&self, worker: u32, at_ns: u64) -> Option<u32> {
        let thread = self.case.threads.get(worker as usize)?;
        self.lines.core_at(worker, at_ns).or(thread.core).or_else(|| {
            let of = |event: &&KernelEvent| event.pid == thread.tid && event.class == Class::Thread;
            let last = self.case.events.iter().filter(of).filter(|event| event.start_ns <= at_ns);
            last.max_by_key(|event| event.start_ns).map(|event| event.cpu)
        })
    }

    /// Number of page faults of a worker in a range of time, and the upper bound of their cost in
    /// nanoseconds.
    pub fn faults(&self, worker: u32, at: &Range<u64>) -> (u64, u64) {
        let Some(thread) = self.case.threads.get(worker as usize) else { return (0, 0) };
        let one = |fault: &&PageFault| fault.tid == thread.tid && at.contains(&fault.at_ns);
        let faults = self.case.faults.iter().filter(one);
        let most_ns = |fault: &PageFault| match fault.took_ns {
            // Entering and leaving the kernel takes no longer than a cheap fault.
            Some(took_ns) => took_ns.saturating_add(self.case.fault_ns),
            None => self.case.fault_ns.saturating_mul(FAULT_MOST),
        };
        faults.fold((0, 0), |(count, ns): (u64, u64), fault| (count + 1, ns.saturating_add(most_ns(fault))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(class: Class, name: &str, start_ns: u64, duration_ns: u64) -> KernelEvent {
        KernelEvent { cpu: 1, start_ns, duration_ns, class, name: name.into(), pid: 0, priority: 0, depth: 0 }
    }

    #[test]
    fn an_interruption_does_not_count_for_the_interrupted_event() {
        let events = [
            event(Class::Thread, "a", 0, 80),
            event(Class::Softirq, "RCU", 20, 20),
            event(Class::Irq, "timer", 30, 10),
            event(Class::Thread, "b", 110, 50),
        ];
        let turns = lay_out(&events, 1, &(10..150));
        let shown: Vec<_> = turns.iter().map(|turn| (turn.event.name.as_str(), turn.at.clone())).collect();
        let expected = [
            ("a", 10..20),
            ("RCU", 20..30),
            ("timer", 30..40),
            ("RCU", 40..50),
            ("a", 50..110),
            ("b", 110..150),
        ];
        assert_eq!(shown, expected);
        assert!(lay_out(&events, 0, &(10..150)).is_empty());
    }
}
