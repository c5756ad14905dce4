//! Causes of late and long frames, from kernel events.

use super::frames::{FrameLog, FrameTimes};
use onbeat_noise::decode::Extent;
use onbeat_noise::{Gap, GapThread, TracepointEvidence, attribute};
use onbeat_trace::{Class, Evidence, KernelEvent};
use serde::Serialize;
use std::collections::BTreeMap;

/// A frame this late or long is an outlier, as in the published benchmark.
pub const OUTLIER_NS: u64 = 100_000;

/// Name of the cause when no kernel event explains a delay.
pub const MACHINE: &str = "hardware or hypervisor";

/// A frame that was late or took long, with its cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outlier {
    /// Index of the frame in its pass.
    pub frame: usize,
    /// Whether the frame began late; otherwise it took long.
    pub is_late: bool,
    /// Excess in nanoseconds, relative to the frame of its pass with the least delay or the shortest
    /// duration.
    pub excess_ns: u64,
    /// The cause with the largest part.
    pub cause: String,
    /// Causes with their times in nanoseconds, the longest first. Time that no kernel event explains counts
    /// for the machine: a core that was idle although a timer was due, or time without an event.
    pub parts: Vec<(String, u64)>,
}

/// Finds outliers and their causes during a pass.
pub struct FrameCauses {
    evidence: Option<TracepointEvidence>,
    /// Number of frames of this pass examined so far.
    seen: usize,
    shortest_ns: u64,
    soonest_ns: u64,
    pub outliers: Vec<Outlier>,
}

impl FrameCauses {
    /// Opens the kernel events of these cores. If the kernel refuses, outliers have no cause, and `notes`
    /// says why.
    pub fn open(cores: &[usize], notes: &mut Vec<String>) -> FrameCauses {
        let evidence = match TracepointEvidence::open(cores, 4 << 20, Extent::Cores) {
            Ok(evidence) => Some(evidence),
            Err(refused) => {
                notes.push(format!("outliers have no cause: {}; {}", refused.why, refused.fix));
                None
            }
        };
        FrameCauses { evidence, seen: 0, shortest_ns: u64::MAX, soonest_ns: u64::MAX, outliers: Vec::new() }
    }

    /// Begins a pass.
    pub fn begin(&mut self) {
        (self.seen, self.shortest_ns, self.soonest_ns) = (0, u64::MAX, u64::MAX);
        self.outliers.clear();
    }

    /// Explains the frames made since the last call.
    pub fn update(&mut self, frames: &FrameLog) {
        let new = frames.since(self.seen);
        for frame in &new {
            let took_ns = frame.end_ns.saturating_sub(frame.start_ns);
            self.shortest_ns = self.shortest_ns.min(took_ns);
            let late_ns = frame.start_ns.saturating_sub(frame.due_ns);
            self.soonest_ns = self.soonest_ns.min(late_ns);
            let later_ns = late_ns - self.soonest_ns;
            if later_ns > OUTLIER_NS {
                self.explain(frame, true, later_ns);
            }
            let longer_ns = took_ns - self.shortest_ns;
            if longer_ns > OUTLIER_NS {
                self.explain(frame, false, longer_ns);
            }
            self.seen += 1;
        }
        if let Some(evidence) = &mut self.evidence {
            evidence.drain();
        }
    }

    fn explain(&mut self, frame: &FrameTimes, is_late: bool, excess_ns: u64) {
        let (start_ns, end_ns) =
            if is_late { (frame.due_ns, frame.start_ns) } else { (frame.start_ns, frame.end_ns) };
        let gap = Gap { cpu: frame.cpu, start_ns, end_ns };
        let events = self.evidence.as_mut().map(|evidence| evidence.events(frame.cpu, start_ns..end_ns));
        let parts = events.map_or(Vec::new(), |events| parts(gap, &events, frame.tid, excess_ns));
        let cause = parts.first().map_or("unknown".to_owned(), |part| part.0.clone());
        self.outliers.push(Outlier { frame: self.seen, is_late, excess_ns, cause, parts });
    }
}

/// Splits the excess between named events, and the machine for the remainder.
fn parts(gap: Gap, events: &[KernelEvent], own: i32, excess_ns: u64) -> Vec<(String, u64)> {
    let others: Vec<KernelEvent> =
        events.iter().filter(|event| event.class != Class::Thread || event.pid != own).cloned().collect();
    let verdict = attribute(gap, &others, GapThread::Sleeper);
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for part in &verdict.interferences {
        // On an idle core only the machine can delay a frame.
        let is_idle = part.class == Class::Thread && part.pid == 0;
        let name = match part.class {
            _ if is_idle => continue,
            Class::Thread => format!("thread {}", part.name),
            Class::Softirq => format!("softirq {}", part.name),
            Class::Irq => format!("irq {}", part.name),
            Class::Nmi => format!("nmi {}", part.name),
            Class::Hardware => MACHINE.to_owned(),
            // These are points in time, and they are not requested here.
            Class::Wakeup | Class::Migration | Class::PageFault => continue,
        };
        *sums.entry(name).or_default() += part.duration_ns;
    }
    let named: u64 = sums.values().sum();
    if let Some(rest_ns) = excess_ns.checked_sub(named).filter(|&ns| ns > 0) {
        *sums.entry(MACHINE.to_owned()).or_default() += rest_ns;
    }
    let mut parts: Vec<(String, u64)> = sums.into_iter().filter(|part| part.1 > 0).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.1));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(class: Class, name: &str, pid: i32, start_ns: u64, duration_ns: u64) -> KernelEvent {
        KernelEvent { cpu: 0, start_ns, duration_ns, class, name: name.into(), pid, priority: 120, depth: 0 }
    }

    #[test]
    fn what_had_most_is_the_cause_and_the_rest_is_the_machines() {
        let gap = Gap { cpu: 0, start_ns: 1_000, end_ns: 2_000 };
        let events = [
            event(Class::Thread, "swapper/0", 0, 900, 300),
            event(Class::Irq, "local_timer", 0, 1_200, 100),
            event(Class::Thread, "kworker/0:1", 9, 1_300, 600),
            event(Class::Thread, "frame", 7, 1_900, 400),
        ];
        let found = parts(gap, &events, 7, 1_000);
        let wanted = [("thread kworker/0:1", 600), (MACHINE, 300), ("irq local_timer", 100)]
            .map(|(n, ns)| (n.to_owned(), ns));
        assert_eq!(found, wanted);
        assert_eq!(parts(gap, &[], 7, 1_000), [(MACHINE.to_owned(), 1_000)]);
    }
}
