//! Threads that are followed by rings of their own: when they had no core and why, who woke them, their page faults.
//!
//! The kernel filters by the threads' ids, so that these tracepoints cost next to nothing where others pass.

use crate::source::Refused;
use onbeat_os::CoreSet;
use onbeat_os::perf::Ring;
use onbeat_os::tracefs::{Field, Format, Tracefs};
use onbeat_trace::{Left, OffCpu, Waker};
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io;
use std::ops::Range;

/// Off-core times and page faults that are kept, and for how long.
const KEPT: usize = 1 << 17;
const KEPT_NS: u64 = 10_000_000_000;

/// The ring of a core: it holds what a few threads do in 50 ms.
const RING_BYTES: usize = 256 << 10;

/// Threads beyond this are not filtered by the kernel but here: its filters have a length.
const FILTERED: usize = 64;

/// Types of records of `perf_event_open(2)`.
const LOST: u32 = 2;
const THROTTLE: u32 = 5;
const SAMPLE: u32 = 9;

/// In `common_flags`: within an interrupt, of hardware or soft.
const IN_INTERRUPT: u8 = 0x08 | 0x10;

/// The threads, and what is known of them.
#[derive(Debug)]
pub(crate) struct Following {
    rings: Vec<Ring>,
    layout: Layout,
    /// By id.
    threads: HashMap<i32, Followed>,
    wakers: HashMap<i32, (String, bool)>,
    /// Read, and younger than what some other ring was read up to.
    young: Vec<Event>,
    bytes: Vec<u8>,
    off_cpu: VecDeque<OffCpu>,
    faults: VecDeque<(i32, u64)>,
    lost: u64,
}

/// One thread.
#[derive(Debug, Default)]
struct Followed {
    /// It has no core, as far as is known.
    open: Option<OffCpu>,
    /// When it is last known to have had one.
    seen_ns: u64,
}

/// Where the fields lie.
#[derive(Debug)]
struct Layout {
    switch: (u64, Field, Field, Field),
    waking: Option<(u64, Field)>,
    faults: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Event {
    time_ns: u64,
    cpu: u32,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Switch { prev: i32, state: u64, next: i32 },
    Waking { tid: i32, by: i32, is_interrupt: bool },
    Fault { tid: i32 },
}

impl Following {
    /// Of these threads, on all cores: whoever wakes one may be on any.
    pub fn start(tids: &[i32]) -> Result<Self, Refused> {
        let wrong = |error: io::Error| Refused { why: error.to_string(), fix: "run as root".to_owned() };
        let layout = Layout::read(&Tracefs::find().map_err(wrong)?).map_err(wrong)?;
        let ids = layout.ids();
        let any = |fields: &[&str]| {
            let one = |tid: &i32| fields.iter().map(|field| format!("{field} == {tid}")).collect::<Vec<_>>();
            tids.iter().flat_map(one).collect::<Vec<_>>().join(" || ")
        };
        let mut rings = Vec::new();
        for cpu in CoreSet::online().map_err(wrong)?.iter() {
            let ring = Ring::open(cpu, &ids, RING_BYTES).map_err(wrong)?.ring;
            if tids.len() <= FILTERED {
                // What is not filtered by the kernel is left out here.
                let _ = ring.filter(layout.switch.0, &any(&["prev_pid", "next_pid"]));
                if let Some((waking, _)) = &layout.waking {
                    let _ = ring.filter(*waking, &any(&["pid"]));
                }
                layout.faults.iter().for_each(|&fault| drop(ring.filter(fault, &any(&["common_pid"]))));
            }
            ring.enable().map_err(wrong)?;
            rings.push(ring);
        }
        Ok(Following {
            rings,
            layout,
            threads: tids.iter().map(|&tid| (tid, Followed::default())).collect(),
            wakers: HashMap::new(),
            young: Vec::new(),
            bytes: Vec::new(),
            off_cpu: VecDeque::new(),
            faults: VecDeque::new(),
            lost: 0,
        })
    }

    pub fn drain(&mut self) {
        // What is younger may still lack what another ring, read before it, has got since.
        let until_ns = onbeat_os::clock::monotonic_ns();
        for ring in &mut self.rings {
            self.bytes.clear();
            ring.drain(&mut self.bytes);
            let (layout, young, threads) = (&self.layout, &mut self.young, &self.threads);
            let is_known = |tid: &i32| threads.contains_key(tid);
            self.lost += decode(&self.bytes, layout, ring.cpu() as u32, |event| {
                let is_ours = match &event.what {
                    What::Switch { prev, next, .. } => is_known(prev) || is_known(next),
                    What::Waking { tid, .. } | What::Fault { tid } => is_known(tid),
                };
                if is_ours {
                    young.push(event);
                }
            });
        }
        self.young.sort_by_key(|event| event.time_ns);
        let old = self.young.partition_point(|event| event.time_ns < until_ns);
        let old: Vec<Event> = self.young.drain(..old).collect();
        old.into_iter().for_each(|event| self.take(event));
        let before_ns = until_ns.saturating_sub(KEPT_NS);
        while self.off_cpu.front().is_some_and(|off| off.in_ns < before_ns) || self.off_cpu.len() > KEPT {
            self.off_cpu.pop_front();
        }
        while self.faults.front().is_some_and(|(_, at_ns)| *at_ns < before_ns) || self.faults.len() > KEPT {
            self.faults.pop_front();
        }
    }

    fn take(&mut self, event: Event) {
        let Event { time_ns, cpu, what } = event;
        match what {
            What::Switch { prev, state, next } => {
                self.had_core(prev, time_ns, cpu);
                if let Some(thread) = self.threads.get_mut(&prev) {
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
            What::Waking { tid, by, is_interrupt } => {
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
            What::Fault { tid } => {
                self.had_core(tid, time_ns, cpu);
                self.faults.push_back((tid, time_ns));
            }
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

    pub fn faults(&self, window_ns: &Range<u64>) -> Vec<(i32, u64)> {
        self.faults.iter().filter(|(_, at_ns)| window_ns.contains(at_ns)).copied().collect()
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

impl Layout {
    fn read(tracefs: &Tracefs) -> io::Result<Self> {
        let missing =
            |what: &str| io::Error::new(io::ErrorKind::NotFound, format!("this kernel has no {what}"));
        let need = |format: &Format, name: &str| {
            format.field(name).cloned().ok_or_else(|| missing(&format!("field {name} in sched_switch")))
        };
        let switch = tracefs
            .format("sched", "sched_switch")?
            .ok_or_else(|| missing("tracepoint sched:sched_switch"))?;
        let waking = tracefs.format("sched", "sched_waking")?;
        let mut faults = Vec::new();
        for name in ["page_fault_user", "page_fault_kernel"] {
            faults.extend(tracefs.format("exceptions", name)?.map(|format| format.id));
        }
        Ok(Layout {
            switch: (
                switch.id,
                need(&switch, "prev_pid")?,
                need(&switch, "prev_state")?,
                need(&switch, "next_pid")?,
            ),
            waking: waking.and_then(|format| Some((format.id, format.field("pid")?.clone()))),
            faults,
        })
    }

    fn ids(&self) -> Vec<u64> {
        let waking = self.waking.iter().map(|(id, _)| *id);
        [self.switch.0].into_iter().chain(waking).chain(self.faults.iter().copied()).collect()
    }

    /// What the bytes of a tracepoint say; `by` had the core.
    fn what(&self, raw: &[u8], by: i32) -> Option<What> {
        let id = number(raw, 0, 2)?;
        let field = |field: &Field| number(raw, field.offset, field.size);
        let (switch, prev, state, next) = &self.switch;
        if id == *switch {
            let (prev, next) = (field(prev)? as i32, field(next)? as i32);
            return Some(What::Switch { prev, state: field(state)?, next });
        }
        if let Some((waking, pid)) = &self.waking
            && id == *waking
        {
            let is_interrupt = raw.get(2)? & IN_INTERRUPT != 0;
            return Some(What::Waking { tid: field(pid)? as i32, by, is_interrupt });
        }
        self.faults.contains(&id).then_some(What::Fault { tid: by })
    }
}

/// Reads what a ring had. Says how many records were lost or could not be understood.
fn decode(bytes: &[u8], layout: &Layout, cpu: u32, mut take: impl FnMut(Event)) -> u64 {
    let mut lost = 0;
    let mut rest = bytes;
    while !rest.is_empty() {
        let size = number(rest, 6, 2).unwrap_or(0) as usize;
        if size < 8 || size > rest.len() {
            return lost + 1;
        }
        let (record, behind) = rest.split_at(size);
        rest = behind;
        let kind = number(record, 0, 4).map(|kind| kind as u32);
        let sample = || {
            let (tid, time_ns) = (number(record, 12, 4)? as i32, number(record, 16, 8)?);
            let length = number(record, 24, 4)? as usize;
            let what = layout.what(record.get(28..28 + length)?, tid)?;
            Some(Event { time_ns, cpu, what })
        };
        match kind {
            Some(LOST) => lost += number(record, 16, 8).unwrap_or(1),
            // Too many at once: the kernel leaves some out, and does not say how many.
            Some(THROTTLE) => lost += 1,
            Some(SAMPLE) => match sample() {
                Some(event) => take(event),
                None => lost += 1,
            },
            _ => {}
        }
    }
    lost
}

/// A number in the machine's own byte order.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    match *bytes {
        [a] => Some(u64::from(a)),
        [a, b] => Some(u64::from(u16::from_ne_bytes([a, b]))),
        [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
        _ => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
    }
}
