//! Threads that are followed by rings of their own: when they had no core and why, who woke them, their page faults.
//!
//! The kernel filters by the threads' ids, so that these tracepoints cost next to nothing where others pass.

mod layout;
mod rings;

use crate::source::SourceRefusal;
use layout::FollowedRecord;
use onbeat_trace::{Left, OffCpu, PageFault, Waker};
pub(crate) use rings::FollowingRings;
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::ops::Range;

/// Off-core times and page faults that are kept, and for how long.
const KEPT: usize = 1 << 17;
const KEPT_NS: u64 = 10_000_000_000;

/// Kinds of memory that the kernel counts (`NR_MM_COUNTERS`).
const KINDS: usize = 4;

/// The threads, and what is known of them.
#[derive(Debug)]
pub(crate) struct Following {
    rings: FollowingRings,
    /// By id.
    threads: HashMap<i32, Followed>,
    wakers: HashMap<i32, (String, bool)>,
    /// Read, and younger than what some other ring was read up to.
    young: Vec<FollowedEvent>,
    off_cpu: VecDeque<OffCpu>,
    faults: VecDeque<PageFault>,
    /// How much memory of each kind the process had when one of these threads last changed that.
    sizes: [u64; KINDS],
    lost: u64,
}

/// One thread.
#[derive(Debug, Default)]
struct Followed {
    /// It has no core, as far as is known.
    open: Option<OffCpu>,
    /// When it is last known to have had one.
    seen_ns: u64,
    /// It has begun a page fault, and has had its core since.
    is_in_fault: bool,
}

#[derive(Debug, Clone, Copy)]
struct FollowedEvent {
    time_ns: u64,
    cpu: u32,
    what: FollowedRecord,
}

impl Following {
    /// Of these threads, on all cores: whoever wakes one may be on any.
    pub fn start(rings: FollowingRings, tids: &[i32]) -> Result<Self, SourceRefusal> {
        rings.start(tids).map_err(|error| SourceRefusal {
            why: format!("their rings cannot be switched on: {error}"),
            fix: "run as root".to_owned(),
        })?;
        Ok(Following {
            rings,
            threads: tids.iter().map(|&tid| (tid, Followed::default())).collect(),
            wakers: HashMap::new(),
            young: Vec::new(),
            off_cpu: VecDeque::new(),
            faults: VecDeque::new(),
            sizes: [0; KINDS],
            lost: 0,
        })
    }

    pub fn drain(&mut self) {
        // FollowedRecord is younger may still lack what another ring, read before it, has got since.
        let until_ns = onbeat_os::clock::monotonic_ns();
        let Following { rings, young, threads, .. } = self;
        let is_known = |tid: &i32| threads.contains_key(tid);
        self.lost += rings.drain(|event| {
            let is_ours = match &event.what {
                FollowedRecord::Switch { prev, next, .. } => is_known(prev) || is_known(next),
                FollowedRecord::Waking { tid, .. }
                | FollowedRecord::Fault { tid }
                | FollowedRecord::Memory { tid, .. } => is_known(tid),
            };
            if is_ours {
                young.push(event);
            }
        });
        self.young.sort_by_key(|event| event.time_ns);
        let old = self.young.partition_point(|event| event.time_ns < until_ns);
        let old: Vec<FollowedEvent> = self.young.drain(..old).collect();
        old.into_iter().for_each(|event| self.take(event));
        let before_ns = until_ns.saturating_sub(KEPT_NS);
        while self.off_cpu.front().is_some_and(|off| off.in_ns < before_ns) || self.off_cpu.len() > KEPT {
            self.off_cpu.pop_front();
        }
        while self.faults.front().is_some_and(|fault| fault.at_ns < before_ns) || self.faults.len() > KEPT {
            self.faults.pop_front();
        }
    }

    fn take(&mut self, event: FollowedEvent) {
        let FollowedEvent { time_ns, cpu, what } = event;
        match what {
            FollowedRecord::Switch { prev, state, next } => {
                self.had_core(prev, time_ns, cpu);
                if let Some(thread) = self.threads.get_mut(&prev) {
                    // FollowedRecord others do meanwhile is no cost of the fault.
                    thread.is_in_fault = false;
                    let why = left(state);
                    let runnable_ns = if why == Left::Taken { time_ns } else { u64::MAX };
                    thread.open = Some(OffCpu { runnable_ns, why, ..away(prev, time_ns, cpu) });
                }
                let Some(thread) = self.threads.get_mut(&next) else { return };
                let is_first = thread.seen_ns == 0;
                let unseen = || OffCpu { is_begin_known: false, ..away(next, thread.seen_ns, cpu) };
                let open = thread.open.take().unwrap_or_else(unseen);
                thread.seen_ns = time_ns;
                if !is_first {
                    let runnable_ns = open.runnable_ns.min(time_ns);
                    self.off_cpu.push_back(OffCpu { in_ns: time_ns, runnable_ns, cpu, ..open });
                }
            }
            FollowedRecord::Waking { tid, by, is_interrupt } => {
                self.had_core(by, time_ns, cpu);
                let Some(thread) = self.threads.get_mut(&tid) else { return };
                let seen_ns = thread.seen_ns;
                if thread.open.is_none() && seen_ns == 0 {
                    return;
                }
                let unseen = || OffCpu { is_begin_known: false, ..away(tid, seen_ns, cpu) };
                let open = thread.open.get_or_insert_with(unseen);
                if open.runnable_ns != u64::MAX {
                    return;
                }
                open.runnable_ns = time_ns;
                let (name, is_ours) = self.wakers.entry(by).or_insert_with(|| who(by)).clone();
                open.woken_by = Some(Waker { tid: by, name, is_interrupt, is_ours });
            }
            FollowedRecord::Fault { tid } => {
                self.had_core(tid, time_ns, cpu);
                self.faults.push_back(PageFault { tid, at_ns: time_ns, took_ns: None });
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.is_in_fault = true;
                }
            }
            FollowedRecord::Memory { tid, kind, bytes } => self.memory(tid, kind, bytes, time_ns),
        }
    }

    /// The process has so much memory of that kind now, by what this thread did. More of it is what ends a fault; less was given back.
    fn memory(&mut self, tid: i32, kind: usize, bytes: u64, time_ns: u64) {
        let Some(size) = self.sizes.get_mut(kind) else { return };
        let is_more = bytes > std::mem::replace(size, bytes);
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        if std::mem::take(&mut thread.is_in_fault)
            && is_more
            && let Some(fault) = self.faults.iter_mut().rev().find(|fault| fault.tid == tid)
        {
            fault.took_ns = Some(time_ns.saturating_sub(fault.at_ns));
        }
    }

    /// A thread does something, so it has a core: where it was not seen to get one, it got it as soon as it could run.
    fn had_core(&mut self, tid: i32, time_ns: u64, cpu: u32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.seen_ns = time_ns;
        if let Some(open) = thread.open.take() {
            let in_ns = open.runnable_ns.min(time_ns);
            let is_end_known = open.runnable_ns != u64::MAX;
            self.off_cpu.push_back(OffCpu { in_ns, runnable_ns: in_ns, cpu, is_end_known, ..open });
        }
    }

    /// Those that overlap, and those that are not over.
    pub fn off_cpu(&self, window_ns: &Range<u64>) -> Vec<OffCpu> {
        let open = self.threads.values().filter_map(|thread| thread.open.as_ref());
        let overlaps = |off: &&OffCpu| off.out_ns < window_ns.end && off.in_ns > window_ns.start;
        let mut all: Vec<OffCpu> = self.off_cpu.iter().chain(open).filter(overlaps).cloned().collect();
        all.sort_by_key(|off| off.out_ns);
        all
    }

    pub fn faults(&self, window_ns: &Range<u64>) -> Vec<PageFault> {
        self.faults.iter().filter(|fault| window_ns.contains(&fault.at_ns)).copied().collect()
    }

    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// A thread has no core from now on.
fn away(tid: i32, out_ns: u64, cpu: u32) -> OffCpu {
    OffCpu {
        tid,
        out_ns,
        is_begin_known: true,
        runnable_ns: u64::MAX,
        in_ns: u64::MAX,
        is_end_known: true,
        why: Left::Asleep,
        from_cpu: cpu,
        cpu,
        woken_by: None,
    }
}

/// A thread's name, and whether it is of this process.
fn who(tid: i32) -> (String, bool) {
    let read = |path: String| fs::read_to_string(path).ok().map(|name| name.trim_end().to_owned());
    match read(format!("/proc/self/task/{tid}/comm")) {
        Some(name) => (name, true),
        None => (read(format!("/proc/{tid}/comm")).unwrap_or_else(|| format!("pid {tid}")), false),
    }
}

/// The low bits of a thread's state say why it leaves its core.
fn left(state: u64) -> Left {
    match state & 0xff {
        0 => Left::Taken,
        state if state & 0x0c != 0 => Left::Stopped,
        state if state & 0x02 != 0 => Left::Blocked,
        _ => Left::Asleep,
    }
}
