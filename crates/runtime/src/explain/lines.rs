//! Timeline of each worker: its steps, and the times in which its thread had no core.

use super::case::Case;
use onbeat_trace::{OffCpu, Span};
use std::ops::Range;

/// Timeline of one worker.
#[derive(Debug, Default)]
struct WorkerLine<'c> {
    /// Steps by start.
    steps: Vec<&'c Span>,
    /// Off-core times of its thread by start.
    off: Vec<&'c OffCpu>,
}

/// Timelines of all workers of a case.
///
/// A worker's steps do not overlap, and neither do its off-core times. So both are also sorted by their ends.
#[derive(Debug)]
pub(super) struct WorkerLines<'c>(Vec<WorkerLine<'c>>);

impl<'c> WorkerLines<'c> {
    pub fn new(case: &Case<'c>) -> Self {
        let mut lines: Vec<WorkerLine<'c>> = case.threads.iter().map(|_| WorkerLine::default()).collect();
        for span in case.spans {
            if let Some(line) = lines.get_mut(span.worker as usize) {
                line.steps.push(span);
            }
        }
        for off in case.off_cpu {
            if let Some(worker) = case.threads.iter().position(|thread| thread.tid == off.tid) {
                lines[worker].off.push(off);
            }
        }
        for line in &mut lines {
            line.steps.sort_by_key(|span| span.start_ns);
            line.off.sort_by_key(|off| off.out_ns);
        }
        WorkerLines(lines)
    }

    /// All steps of a worker, by start.
    pub fn steps(&self, worker: u32) -> &[&'c Span] {
        self.0.get(worker as usize).map_or(&[], |line| &line.steps)
    }

    /// Steps of a worker that overlap a time, by start.
    pub fn steps_in(&self, worker: u32, at: &Range<u64>) -> &[&'c Span] {
        let steps = self.steps(worker);
        let from = steps.partition_point(|span| span.end_ns <= at.start);
        let to = from + steps[from..].partition_point(|span| span.start_ns < at.end);
        &steps[from..to]
    }

    /// Off-core times of a worker that overlap a time, by start.
    pub fn off_in(&self, worker: u32, at: &Range<u64>) -> &[&'c OffCpu] {
        let off = self.off(worker);
        let from = off.partition_point(|off| off.in_ns <= at.start);
        let to = from + off[from..].partition_point(|off| off.out_ns < at.end);
        &off[from..to]
    }

    fn off(&self, worker: u32) -> &[&'c OffCpu] {
        self.0.get(worker as usize).map_or(&[], |line| &line.off)
    }

    /// Core that a worker's thread had at a time, as its switches say.
    pub fn core_at(&self, worker: u32, at_ns: u64) -> Option<u32> {
        let off = self.off(worker);
        let next = off.partition_point(|off| off.in_ns <= at_ns);
        match next.checked_sub(1) {
            Some(last) => Some(off[last].cpu),
            None => off.get(next).filter(|off| off.out_ns >= at_ns).map(|off| off.from_cpu),
        }
    }

    /// Worker that ran the last step of an operator that began before a time.
    pub fn worker_of(&self, operator: u32, before_ns: u64) -> Option<u32> {
        let last = |(worker, line): (usize, &WorkerLine<'c>)| {
            let to = line.steps.partition_point(|span| span.start_ns < before_ns);
            let span = line.steps[..to].iter().rev().find(|span| span.operator == operator)?;
            Some((span.start_ns, worker as u32))
        };
        self.0.iter().enumerate().filter_map(last).max().map(|(_, worker)| worker)
    }
}
