//! The kernel's rings of some cores, of either kind.

use crate::decode::Form;
use onbeat_os::ftrace::{Instance, OpenInstance};
use onbeat_os::perf::{OpenRing, PerfRing};
use onbeat_os::tracefs::Tracefs;
use std::io;

/// Rings of some cores, indexed by the place of the core in the list they were opened with. The kernel writes
/// nothing before [`enable`](Self::enable).
#[derive(Debug)]
pub(crate) enum KernelRings {
    /// Rings of `perf_event_open(2)`, one per core.
    Perf(Vec<PerfRing>),
    /// Rings of a trace instance.
    Ftrace(Box<Instance>),
}

/// Tracepoints that the kernel refuses, by number, with the reason.
pub(crate) type RefusedTracepoints = Vec<(u64, io::Error)>;

impl KernelRings {
    /// Opens perf rings, each of the size that `ring_bytes` gives for its core. An error comes with the core
    /// it occurred on.
    pub fn perf(
        cpus: &[usize],
        ids: &[u64],
        ring_bytes: &dyn Fn(usize) -> usize,
    ) -> Result<(Self, RefusedTracepoints), (usize, io::Error)> {
        let (mut rings, mut all) = (Vec::new(), Vec::new());
        for &cpu in cpus {
            let OpenRing { ring, refused } =
                PerfRing::open(cpu, ids, ring_bytes(cpu)).map_err(|error| (cpu, error))?;
            all.extend(refused);
            rings.push(ring);
        }
        Ok((KernelRings::Perf(rings), all))
    }

    /// Opens the rings of a trace instance, for tracepoints with these names and numbers, in the same order.
    pub fn ftrace(
        tracefs: &Tracefs,
        cpus: &[usize],
        (names, ids): (&[(&str, &str)], &[u64]),
        ring_bytes: &dyn Fn(usize) -> usize,
    ) -> io::Result<(Self, RefusedTracepoints)> {
        let OpenInstance { instance, refused } = Instance::open(tracefs, names, cpus, ring_bytes)?;
        let refused = refused.into_iter().map(|(at, error)| (ids[at], error)).collect();
        Ok((KernelRings::Ftrace(Box::new(instance)), refused))
    }

    /// Limits a tracepoint, given by name and number, to the records that pass a filter in the kernel's
    /// filter language.
    pub fn filter(&self, name: (&str, &str), id: u64, filter: &str) -> io::Result<()> {
        match self {
            KernelRings::Perf(rings) => rings.iter().try_for_each(|ring| ring.filter(id, filter)),
            KernelRings::Ftrace(instance) => instance.filter(name, filter),
        }
    }

    /// Lets the kernel write to the rings.
    pub fn enable(&self) -> io::Result<()> {
        match self {
            KernelRings::Perf(rings) => rings.iter().try_for_each(PerfRing::enable),
            KernelRings::Ftrace(instance) => instance.enable(),
        }
    }

    /// Stops the kernel from writing to the rings.
    pub fn disable(&self) -> io::Result<()> {
        match self {
            KernelRings::Perf(rings) => rings.iter().try_for_each(PerfRing::disable),
            KernelRings::Ftrace(instance) => instance.disable(),
        }
    }

    /// State that killed processes had left and that was restored, one line each.
    pub fn cleaned(&self) -> &[String] {
        match self {
            KernelRings::Perf(_) => &[],
            KernelRings::Ftrace(instance) => instance.cleaned(),
        }
    }

    /// Why the kernel no longer writes although it should; `None` while it does, or if that is unknown.
    pub fn silenced(&self) -> Option<String> {
        let KernelRings::Ftrace(instance) = self else { return None };
        match instance.is_enabled() {
            Ok(true) => None,
            Ok(false) => Some(format!("another program has switched off {}", instance.folder().display())),
            Err(error) => Some(format!("{} is no longer readable: {error}", instance.folder().display())),
        }
    }

    /// Moves the content of one ring to `bytes`, replacing the old content. Returns its format.
    pub fn drain<'r>(&'r mut self, at: usize, bytes: &mut Vec<u8>) -> Form<'r> {
        bytes.clear();
        match self {
            KernelRings::Perf(rings) => {
                rings[at].drain(bytes);
                Form::Perf
            }
            KernelRings::Ftrace(instance) => {
                instance.drain(at, bytes);
                Form::Pages(instance.pages())
            }
        }
    }
}
