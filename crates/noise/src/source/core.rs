//! Kernel events of one core.

use crate::decode::RingRecord;
use crate::nesting::Nesting;
use onbeat_trace::{Class, KernelEvent};
use std::collections::VecDeque;
use std::ops::Range;

/// Kernel events of one core.
#[derive(Debug)]
pub struct Core {
    cpu: u32,
    nesting: Nesting,
    /// Sorted by their ends, which are in `ends_ns`.
    events: Vec<KernelEvent>,
    ends_ns: Vec<u64>,
    broken: Vec<Range<u64>>,
    slept: Vec<Range<u64>>,
    strange: u64,
    forgotten: u64,
    total: u64,
    /// Last events that were forgotten, and how many of them to keep.
    keep: usize,
    kept: VecDeque<KernelEvent>,
}

/// Events of one core that are kept for a gap that is not over yet: one second at a million events per
/// second.
const EVENTS: usize = 1 << 20;

impl Core {
    pub(super) fn new(cpu: usize, keep: usize) -> Self {
        let cpu = cpu as u32;
        Core {
            cpu,
            nesting: Nesting::new(cpu),
            events: Vec::new(),
            ends_ns: Vec::new(),
            broken: Vec::new(),
            slept: Vec::new(),
            strange: 0,
            forgotten: 0,
            total: 0,
            keep,
            kept: VecDeque::new(),
        }
    }

    /// Takes in records from `decode`, which returns the number of unreadable ones. `stamps` are times at
    /// which thread `pid` had the core.
    pub(super) fn take(
        &mut self,
        pid: i32,
        stamps: &[u64],
        decode: impl FnOnce(&mut dyn FnMut(RingRecord)) -> u64,
    ) {
        let mut stamps = stamps.iter().copied().peekable();
        let Core { nesting, events, ends_ns, total, .. } = self;
        let strange = decode(&mut |record| {
            while let Some(stamp_ns) = stamps.next_if(|stamp_ns| *stamp_ns <= record.time_ns) {
                nesting.stamp(pid, stamp_ns, events);
            }
            let end_ns = record.time_ns;
            *total += 1;
            nesting.record(record, events);
            ends_ns.resize(events.len(), end_ns.max(ends_ns.last().copied().unwrap_or(0)));
        });
        self.strange += strange;
        for stamp_ns in stamps {
            self.nesting.stamp(pid, stamp_ns, &mut self.events);
        }
        self.ends_ns.resize(self.events.len(), self.nesting.now_ns());
        self.broken.extend(self.nesting.take_broken());
        self.slept.extend(self.nesting.take_slept());
        self.bound();
    }

    /// The core.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Returns the last events, including the forgotten ones that are kept.
    pub fn kept(&self) -> impl Iterator<Item = &KernelEvent> {
        self.kept.iter().chain(&self.events)
    }

    /// Marks these threads as measured: no event is made of them.
    pub fn measure(&mut self, pids: &[i32]) {
        self.nesting.measure(pids);
    }

    /// Returns the events that may concern this window: those that end in it or just after it.
    #[must_use]
    pub fn events(&self, window_ns: Range<u64>) -> &[KernelEvent] {
        let from = self.ends_ns.partition_point(|end_ns| *end_ns < window_ns.start);
        let to = from + self.ends_ns[from..].partition_point(|end_ns| *end_ns <= window_ns.end);
        // An event that surrounds a gap ends after the events within it.
        &self.events[from..(to + 8).min(self.events.len())]
    }

    /// Name and id of the thread that had the core at `time_ns`, if known.
    #[must_use]
    pub fn task_at(&self, time_ns: u64) -> Option<(String, i32)> {
        if let Some((pid, start_ns, name)) = self.nesting.running()
            && start_ns <= time_ns
        {
            return Some((name, pid));
        }
        // An event's duration excludes what interrupted it, so its end is in `ends_ns`.
        let mut threads =
            self.events.iter().zip(&self.ends_ns).filter(|(event, _)| event.class == Class::Thread);
        let had = threads.find(|(event, end_ns)| event.start_ns <= time_ns && **end_ns > time_ns);
        had.map(|(event, _)| (event.name.clone(), event.pid))
    }

    /// Time up to which the kernel's records have been read.
    #[must_use]
    pub fn known_ns(&self) -> u64 {
        self.nesting.now_ns()
    }

    /// Time of the last thread switch in this window: the measured thread got the core then.
    #[must_use]
    pub fn last_switch_ns(&self, window_ns: &Range<u64>) -> Option<u64> {
        let from = self.ends_ns.partition_point(|end_ns| *end_ns < window_ns.start);
        let to = from + self.ends_ns[from..].partition_point(|end_ns| *end_ns <= window_ns.end);
        let last = (from..to).rev().find(|at| self.events[*at].class == Class::Thread)?;
        Some(self.ends_ns[last])
    }

    /// Whether records are missing in this window.
    #[must_use]
    pub fn is_broken(&self, window_ns: &Range<u64>) -> bool {
        self.broken.iter().any(|range| range.start <= window_ns.end && range.end >= window_ns.start)
    }

    /// Whether the measured thread slept voluntarily in this window, and was not preempted.
    #[must_use]
    pub fn has_slept(&self, window_ns: &Range<u64>) -> bool {
        self.slept.iter().any(|range| range.start <= window_ns.end && range.end >= window_ns.start)
    }

    /// Forgets events that ended before `time_ns`: they are not needed any more.
    pub fn forget_before(&mut self, time_ns: u64) {
        let old = self.ends_ns.partition_point(|end_ns| *end_ns < time_ns);
        let keep = self.keep;
        let forgotten = self.events.drain(..old);
        if keep > 0 {
            self.kept.extend(forgotten);
            self.kept.drain(..self.kept.len().saturating_sub(keep));
        } else {
            drop(forgotten);
        }
        self.ends_ns.drain(..old);
        for stretches in [&mut self.broken, &mut self.slept] {
            stretches.retain(|range| range.end >= time_ns);
        }
    }

    fn bound(&mut self) {
        let over = self.events.len().saturating_sub(EVENTS);
        self.events.drain(..over);
        self.ends_ns.drain(..over);
        self.forgotten += over as u64;
        for stretches in [&mut self.broken, &mut self.slept] {
            stretches.drain(..stretches.len().saturating_sub(EVENTS));
        }
    }

    /// Number of records that had no room in the ring, could not be understood, or exceeded the kept events.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.nesting.lost() + self.strange + self.forgotten
    }

    /// Number of records that contradicted the known state.
    #[must_use]
    pub fn breaks(&self) -> u64 {
        self.nesting.breaks()
    }

    /// Number of records.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }
}
