//! Threads that are followed in rings of their own: off-core times with reasons, wakers, page faults.
//!
//! The kernel filters by thread id, so these tracepoints cost next to nothing for other threads.

mod layout;
mod rings;

use crate::source::SourceRefusal;
use layout::FollowedRecord;
use onbeat_trace::{Left, OffCpu, PageFault, WakeSource};
pub(crate) use rings::FollowingRings;
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::ops::Range;

/// Number of off-core times and page faults kept, and for how long.
const KEPT: usize = 1 << 17;
const KEPT_NS: u64 = 10_000_000_000;

/// Kinds of memory that the kernel counts (`NR_MM_COUNTERS`).
const KINDS: usize = 4;

/// Followed threads, and what is known of them.
#[derive(Debug)]
pub(crate) struct Following {
    rings: FollowingRings,
    /// Threads by id.
    threads: HashMap<i32, Followed>,
    wakers: HashMap<i32, (String, bool)>,
    /// Events that are newer than the end of some other ring's last read.
    young: Vec<FollowedEvent>,
    off_cpu: VecDeque<OffCpu>,
    faults: VecDeque<PageFault>,
    /// Memory of each kind that the process had when one of these threads last changed it.
    sizes: [u64; KINDS],
    lost: u64,
}

/// A followed thread.
#[derive(Debug, Default)]
struct Followed {
    /// The current off-core time, if the thread has no core.
    open: Option<OffCpu>,
    /// Time at which the thread last had a core.
    seen_ns: u64,
    /// Whether it has begun a page fault and kept its core since.
    is_in_fault: bool,
}

#[derive(Debug, Clone, Copy)]
struct FollowedEvent {
    time_ns: u64,
    cpu: u32,
    what: FollowedRecord,
}

impl Following {
    /// Follows these threads on all cores, because their wakers may be on any core.
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
        // A newer event may precede one that another ring, read earlier, has received since.
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
                    // Time after losing the core does not count towards the fault.
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
                open.woken_by = Some(WakeSource { tid: by, name, is_interrupt, is_ours });
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

    /// Takes in the process's memory of one kind after this thread changed it. An increase ends a page fault;
    /// a decrease means that memory was freed.
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

    /// Notes that a thread had a core. The switch to it is missing if the thread had none before.
    fn had_core(&mut self, tid: i32, time_ns: u64, cpu: u32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.seen_ns = time_ns;
        if let Some(open) = thread.open.take() {
            let runnable_ns = open.runnable_ns.min(time_ns);
            self.off_cpu.push_back(OffCpu { in_ns: time_ns, runnable_ns, cpu, is_end_known: false, ..open });
        }
    }

    /// Returns the off-core times that overlap the window, including unfinished ones.
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

/// Starts an off-core time of a thread.
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

/// Name of a thread, and whether it belongs to this process.
fn who(tid: i32) -> (String, bool) {
    let read = |path: String| fs::read_to_string(path).ok().map(|name| name.trim_end().to_owned());
    match read(format!("/proc/self/task/{tid}/comm")) {
        Some(name) => (name, true),
        None => (read(format!("/proc/{tid}/comm")).unwrap_or_else(|| format!("pid {tid}")), false),
    }
}

/// Reason why a thread leaves its core, from the low bits of its state.
fn left(state: u64) -> Left {
    match state & 0xff {
        0 => Left::Taken,
        state if state & 0x0c != 0 => Left::Stopped,
        state if state & 0x02 != 0 => Left::Blocked,
        _ => Left::Asleep,
    }
}
