//! Tracepoints of single cores, by rings that nobody is woken for.

use super::Refused;
use crate::decode::{Layout, decode};
use crate::nesting::Nesting;
use onbeat_os::perf::{self, Ring};
use onbeat_os::tracefs::Tracefs;
use onbeat_trace::{Class, KernelEvent};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;

/// The rings of some cores, and what came out of them.
#[derive(Debug)]
pub struct Perf {
    layout: Layout,
    cores: Vec<Core>,
    bytes: Vec<u8>,
}

/// One core.
#[derive(Debug)]
pub struct Core {
    ring: Ring,
    nesting: Nesting,
    /// In the order of their ends, which `ends_ns` has.
    events: Vec<KernelEvent>,
    ends_ns: Vec<u64>,
    broken: Vec<Range<u64>>,
    strange: u64,
    forgotten: u64,
    total: u64,
    /// Forgotten events, the last ones, and how many of them.
    keep: usize,
    kept: VecDeque<KernelEvent>,
}

/// Events of one core that are kept for a gap that is not over yet: a second at a million per second.
const EVENTS: usize = 1 << 20;

impl Perf {
    /// Rings of `ring_bytes` each on these cores; nothing is written yet. Of each the last `keep` events are kept for a trace.
    ///
    /// # Errors
    /// What is refused, and the command that grants it.
    pub fn open(cpus: &[usize], ring_bytes: usize, keep: usize) -> Result<Self, Refused> {
        let tracefs = Tracefs::find().map_err(|error| no_tracefs(&error))?;
        let mut layout = Layout::read(&tracefs).map_err(|error| no_tracefs(&error))?;
        let ids = layout.ids();
        allow_many_files(ids.len() * cpus.len());
        let mut cores = Vec::new();
        for &cpu in cpus {
            let opened = Ring::open(cpu, &ids, ring_bytes).map_err(|error| no_perf(cpu, &error))?;
            for (id, error) in opened.refused {
                layout.refused(id, &error.to_string());
            }
            cores.push(Core::new(opened.ring, keep));
        }
        Ok(Perf { layout, cores, bytes: Vec::new() })
    }

    /// What this kernel does not tell, `group:name: why`.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        self.layout.missing().iter().map(|missing| format!("{}: {}", missing.name, missing.why)).collect()
    }

    /// Lets the kernel write.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn enable(&self) -> io::Result<()> {
        self.cores.iter().try_for_each(|core| core.ring.enable())
    }

    /// Lets the kernel write no more.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn disable(&self) -> io::Result<()> {
        self.cores.iter().try_for_each(|core| core.ring.disable())
    }

    /// The last events of all cores.
    pub fn kept(&self) -> impl Iterator<Item = &KernelEvent> {
        self.cores.iter().flat_map(|core| core.kept.iter().chain(&core.events))
    }

    /// The core at this place of the list that it was opened with.
    #[must_use]
    pub fn core(&self, at: usize) -> &Core {
        &self.cores[at]
    }

    /// The same, to be changed.
    pub fn core_mut(&mut self, at: usize) -> &mut Core {
        &mut self.cores[at]
    }

    /// Reads what the ring at this place holds. `stamps` are moments at which thread `pid` had the core, in their order, none
    /// from before the last call's.
    pub fn drain(&mut self, at: usize, pid: i32, stamps: &[u64]) {
        let core = &mut self.cores[at];
        self.bytes.clear();
        core.ring.drain(&mut self.bytes);
        let mut stamps = stamps.iter().copied().peekable();
        let Core { nesting, events, ends_ns, total, .. } = core;
        let strange = decode(&self.bytes, &self.layout, |record| {
            while let Some(stamp_ns) = stamps.next_if(|stamp_ns| *stamp_ns <= record.time_ns) {
                nesting.stamp(pid, stamp_ns, events);
            }
            let end_ns = record.time_ns;
            *total += 1;
            nesting.record(record, events);
            ends_ns.resize(events.len(), end_ns.max(ends_ns.last().copied().unwrap_or(0)));
        });
        core.strange += strange;
        for stamp_ns in stamps {
            core.nesting.stamp(pid, stamp_ns, &mut core.events);
        }
        core.ends_ns.resize(core.events.len(), core.nesting.now_ns());
        core.broken.extend(core.nesting.take_broken());
        core.bound();
    }
}

impl Core {
    fn new(ring: Ring, keep: usize) -> Self {
        let nesting = Nesting::new(ring.cpu() as u32);
        Core {
            ring,
            nesting,
            events: Vec::new(),
            ends_ns: Vec::new(),
            broken: Vec::new(),
            strange: 0,
            forgotten: 0,
            total: 0,
            keep,
            kept: VecDeque::new(),
        }
    }

    /// These threads are measured: no event tells of them.
    pub fn measure(&mut self, pids: &[i32]) {
        self.nesting.measure(pids);
    }

    /// Events that may have to do with this stretch of time: those that end in it or just behind it.
    #[must_use]
    pub fn events(&self, window_ns: Range<u64>) -> &[KernelEvent] {
        let from = self.ends_ns.partition_point(|end_ns| *end_ns < window_ns.start);
        let to = from + self.ends_ns[from..].partition_point(|end_ns| *end_ns <= window_ns.end);
        // What surrounds a gap ends behind those within it.
        &self.events[from..(to + 8).min(self.events.len())]
    }

    /// Up to when the kernel's records have been read.
    #[must_use]
    pub fn known_ns(&self) -> u64 {
        self.nesting.now_ns()
    }

    /// When the last thread that had the core in this stretch of time lost it: the one who measures got it then.
    #[must_use]
    pub fn last_switch_ns(&self, window_ns: &Range<u64>) -> Option<u64> {
        let from = self.ends_ns.partition_point(|end_ns| *end_ns < window_ns.start);
        let to = from + self.ends_ns[from..].partition_point(|end_ns| *end_ns <= window_ns.end);
        let last = (from..to).rev().find(|at| self.events[*at].class == Class::Thread)?;
        Some(self.ends_ns[last])
    }

    /// Whether something is missing in this stretch of time.
    #[must_use]
    pub fn is_broken(&self, window_ns: &Range<u64>) -> bool {
        self.broken.iter().any(|range| range.start <= window_ns.end && range.end >= window_ns.start)
    }

    /// Nobody will ask for what has ended before this moment.
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
        self.broken.retain(|range| range.end >= time_ns);
    }

    fn bound(&mut self) {
        let over = self.events.len().saturating_sub(EVENTS);
        self.events.drain(..over);
        self.ends_ns.drain(..over);
        self.forgotten += over as u64;
        let over = self.broken.len().saturating_sub(EVENTS);
        self.broken.drain(..over);
    }

    /// Records that had no room in the ring, could not be understood, or were more than could be kept.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.nesting.lost() + self.strange + self.forgotten
    }

    /// How often a record did not fit what was known.
    #[must_use]
    pub fn breaks(&self) -> u64 {
        self.nesting.breaks()
    }

    /// How many records there were.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }
}

const SETCAP: &str = "sudo setcap cap_perfmon,cap_ipc_lock,cap_sys_nice+ep \"$(command -v onbeat)\"";

fn no_tracefs(error: &io::Error) -> Refused {
    let (why, fix) = error.to_string().split_once("; ").map_or_else(
        || (error.to_string(), "run as root".to_owned()),
        |(why, fix)| (why.to_owned(), fix.to_owned()),
    );
    Refused { why: format!("tracepoints cannot be read: {why}"), fix }
}

fn no_perf(cpu: usize, error: &io::Error) -> Refused {
    let paranoid = perf::paranoid().map_or("unknown".to_owned(), |level| level.to_string());
    if matches!(error.kind(), io::ErrorKind::PermissionDenied) && !perf::may() {
        return Refused {
            why: format!(
                "perf_event_open is refused ({error}): kernel.perf_event_paranoid is {paranoid} and the capability \
                 CAP_PERFMON is missing"
            ),
            fix: format!("run as root, or: {SETCAP}; in a container: --cap-add PERFMON"),
        };
    }
    let fix = match error.raw_os_error() {
        Some(19) => {
            format!("CPU {cpu} is offline: echo 1 | sudo tee /sys/devices/system/cpu/cpu{cpu}/online")
        }
        Some(24) => "raise the limit on open files: ulimit -n 65536".to_owned(),
        Some(38) => {
            "use a kernel with CONFIG_PERF_EVENTS, or allow perf_event_open in the filter of system calls"
                .to_owned()
        }
        _ => "allow perf_event_open in the filter of system calls (seccomp), if there is one".to_owned(),
    };
    Refused {
        why: format!(
            "perf_event_open is refused on CPU {cpu}: {error} (kernel.perf_event_paranoid is {paranoid})"
        ),
        fix,
    }
}

/// Every tracepoint is a file, on every core.
fn allow_many_files(more: usize) {
    perf::allow_open_files(more as u64 + 256);
}
