//! Tracepoints of single cores, in rings that are read without wake-ups.

use super::SourceRefusal;
use super::core::Core;
use super::rings::{KernelRings, RefusedTracepoints};
use crate::decode::{Extent, TracepointLayout, decode};
use onbeat_os::perf;
use onbeat_os::tracefs::Tracefs;
use onbeat_trace::KernelEvent;
use std::io;

/// Rings of some cores, and the events read from them.
#[derive(Debug)]
pub struct Tracepoints {
    layout: TracepointLayout,
    rings: KernelRings,
    cores: Vec<Core>,
    bytes: Vec<u8>,
}

/// Shape of the rings.
#[derive(Debug, Clone, Copy)]
pub struct RingShape {
    /// Size of each ring.
    pub ring_bytes: usize,
    /// Number of each core's last events that are kept for a trace.
    pub keep: usize,
    /// Tracepoints to record.
    pub extent: Extent,
}

impl Default for RingShape {
    fn default() -> Self {
        RingShape { ring_bytes: 4 << 20, keep: 0, extent: Extent::Cores }
    }
}

impl Tracepoints {
    /// Opens perf rings on these cores; the kernel writes nothing yet.
    ///
    /// # Errors
    /// The reason of a refusal, and the command that grants the right.
    pub fn perf(cpus: &[usize], shape: RingShape) -> Result<Self, SourceRefusal> {
        let (_, layout) = layout(shape.extent)?;
        let ids = layout.ids();
        allow_many_files(ids.len() * cpus.len());
        let opened = KernelRings::perf(cpus, &ids, &|_| shape.ring_bytes)
            .map_err(|(cpu, error)| no_perf(cpu, &error))?;
        Ok(Self::new(layout, opened, cpus, shape))
    }

    /// Opens the rings of a trace instance on these cores; the kernel writes nothing yet.
    ///
    /// # Errors
    /// As those of [`perf`](Self::perf).
    pub fn ftrace(cpus: &[usize], shape: RingShape) -> Result<Self, SourceRefusal> {
        let (tracefs, layout) = layout(shape.extent)?;
        // A core that is offline would have an empty ring, without any error.
        if let Some(cpu) = cpus.iter().find(|cpu| is_offline(**cpu)) {
            return Err(no_perf(*cpu, &io::Error::from_raw_os_error(ENODEV)));
        }
        let names = layout.names();
        let opened = KernelRings::ftrace(&tracefs, cpus, (&names, &layout.ids()), &|_| shape.ring_bytes)
            .map_err(|error| no_instance(&error))?;
        Ok(Self::new(layout, opened, cpus, shape))
    }

    fn new(
        mut layout: TracepointLayout,
        (rings, refused): (KernelRings, RefusedTracepoints),
        cpus: &[usize],
        shape: RingShape,
    ) -> Self {
        for (id, error) in refused {
            layout.refused(id, &error.to_string());
        }
        let cores = cpus.iter().map(|cpu| Core::new(*cpu, shape.keep)).collect();
        Tracepoints { layout, rings, cores, bytes: Vec::new() }
    }

    /// State that killed processes had left and that was restored, one line each.
    #[must_use]
    pub fn cleaned(&self) -> &[String] {
        self.rings.cleaned()
    }

    /// Tracepoints that this kernel does not have, as `group:name: why`.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        self.layout.missing().iter().map(|missing| format!("{}: {}", missing.name, missing.why)).collect()
    }

    /// Lets the kernel write to the rings.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn enable(&self) -> io::Result<()> {
        self.rings.enable()
    }

    /// Why the kernel no longer writes although it should; `None` while it does, or if that is unknown.
    #[must_use]
    pub fn silenced(&self) -> Option<String> {
        self.rings.silenced()
    }

    /// Stops the kernel from writing to the rings.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn disable(&self) -> io::Result<()> {
        self.rings.disable()
    }

    /// Last events of all cores.
    pub fn kept(&self) -> impl Iterator<Item = &KernelEvent> {
        self.cores.iter().flat_map(Core::kept)
    }

    /// Core at this place of the list the rings were opened with.
    #[must_use]
    pub fn core(&self, at: usize) -> &Core {
        &self.cores[at]
    }

    /// Mutable [`core`](Self::core).
    pub fn core_mut(&mut self, at: usize) -> &mut Core {
        &mut self.cores[at]
    }

    /// Reads one ring. `stamps` are times at which thread `pid` had the core, in order, and later than those
    /// of the last call.
    pub fn drain(&mut self, at: usize, pid: i32, stamps: &[u64]) {
        let Tracepoints { layout, rings, cores, bytes } = self;
        let form = rings.drain(at, bytes);
        cores[at].take(pid, stamps, |take| decode(bytes, form, layout, take));
    }

    /// Number of cores.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cores.len()
    }

    /// Whether there are no cores.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cores.is_empty()
    }
}

fn layout(extent: Extent) -> Result<(Tracefs, TracepointLayout), SourceRefusal> {
    let tracefs = Tracefs::find().map_err(|error| no_tracefs(&error))?;
    let layout = TracepointLayout::read(&tracefs, extent).map_err(|error| no_tracefs(&error))?;
    Ok((tracefs, layout))
}

fn is_offline(cpu: usize) -> bool {
    onbeat_os::CoreSet::online().is_ok_and(|online| !online.contains(cpu))
}

const ENODEV: i32 = 19;

/// All capabilities that any part of onbeat needs, since each `setcap` replaces the one before.
const SETCAP: &str = "sudo setcap cap_sys_nice,cap_ipc_lock,cap_perfmon+ep \"$(command -v onbeat)\"";

fn no_tracefs(error: &io::Error) -> SourceRefusal {
    let (why, fix) = error.to_string().split_once("; ").map_or_else(
        || (error.to_string(), "run as root".to_owned()),
        |(why, fix)| (why.to_owned(), fix.to_owned()),
    );
    // Reading the tracepoint descriptions is not enough: the rings need a right as well.
    let is_half = error.kind() == io::ErrorKind::PermissionDenied && !perf::may();
    let fix = if is_half { format!("{fix}, and: {SETCAP}") } else { fix };
    SourceRefusal { why: format!("tracepoints cannot be read: {why}"), fix }
}

fn no_instance(error: &io::Error) -> SourceRefusal {
    SourceRefusal {
        why: format!("no trace instance can be made: {error}"),
        fix: "run as root, on a kernel with trace instances".to_owned(),
    }
}

fn no_perf(cpu: usize, error: &io::Error) -> SourceRefusal {
    let paranoid = perf::paranoid().map_or("unknown".to_owned(), |level| level.to_string());
    if matches!(error.kind(), io::ErrorKind::PermissionDenied) && !perf::may() {
        return SourceRefusal {
            why: format!(
                "perf_event_open is refused ({error}): kernel.perf_event_paranoid is {paranoid} and the capability \
                 CAP_PERFMON is missing"
            ),
            fix: format!("run as root, or: {SETCAP}; in a container: --cap-add PERFMON"),
        };
    }
    let fix = match error.raw_os_error() {
        Some(ENODEV) => {
            format!("CPU {cpu} is offline: echo 1 | sudo tee /sys/devices/system/cpu/cpu{cpu}/online")
        }
        Some(24) => "raise the limit on open files: ulimit -n 65536".to_owned(),
        Some(38) => {
            "use a kernel with CONFIG_PERF_EVENTS, or allow perf_event_open in the system call filter"
                .to_owned()
        }
        _ => "allow perf_event_open in the system call filter (seccomp), if there is one".to_owned(),
    };
    SourceRefusal {
        why: format!(
            "perf_event_open is refused on CPU {cpu}: {error} (kernel.perf_event_paranoid is {paranoid})"
        ),
        fix,
    }
}

/// Raises the limit on open files: every tracepoint is a file, on every core.
fn allow_many_files(more: usize) {
    perf::allow_open_files(more as u64 + 256);
}
