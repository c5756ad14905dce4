//! The kernel's rings of some cores, of whichever kind.

use crate::decode::Form;
use onbeat_os::ftrace::{Instance, Made};
use onbeat_os::perf::{Opened, Ring};
use onbeat_os::tracefs::Tracefs;
use std::io;

/// The rings of some cores, told apart by the place of their core in the list that they were opened with. Nothing is written before
/// [`enable`](Self::enable).
#[derive(Debug)]
pub(crate) enum KernelRings {
    /// Those of `perf_event_open(2)`, one for each core.
    Perf(Vec<Ring>),
    /// Those of a trace instance.
    Ftrace(Box<Instance>),
}

/// Tracepoints that the kernel refuses, by their number, with its reason.
pub(crate) type RefusedTracepoints = Vec<(u64, io::Error)>;

impl KernelRings {
    /// KernelRings of perf of that size each. The error has the core that it came up with.
    pub fn perf(
        cpus: &[usize],
        ids: &[u64],
        ring_bytes: usize,
    ) -> Result<(Self, RefusedTracepoints), (usize, io::Error)> {
        let (mut rings, mut all) = (Vec::new(), Vec::new());
        for &cpu in cpus {
            let Opened { ring, refused } = Ring::open(cpu, ids, ring_bytes).map_err(|error| (cpu, error))?;
            all.extend(refused);
            rings.push(ring);
        }
        Ok((KernelRings::Perf(rings), all))
    }

    /// KernelRings of a trace instance of that size each, for tracepoints with these names and numbers, in one order.
    pub fn ftrace(
        tracefs: &Tracefs,
        cpus: &[usize],
        (names, ids): (&[(&str, &str)], &[u64]),
        ring_bytes: usize,
    ) -> io::Result<(Self, RefusedTracepoints)> {
        let Made { instance, refused } = Instance::open(tracefs, names, cpus, ring_bytes)?;
        let refused = refused.into_iter().map(|(at, error)| (ids[at], error)).collect();
        Ok((KernelRings::Ftrace(Box::new(instance)), refused))
    }

    /// Of one tracepoint, by its name and number, only those records are written that a filter lets through, in the kernel's own
    /// language.
    pub fn filter(&self, name: (&str, &str), id: u64, filter: &str) -> io::Result<()> {
        match self {
            KernelRings::Perf(rings) => rings.iter().try_for_each(|ring| ring.filter(id, filter)),
            KernelRings::Ftrace(instance) => instance.filter(name, filter),
        }
    }

    /// Lets the kernel write.
    pub fn enable(&self) -> io::Result<()> {
        match self {
            KernelRings::Perf(rings) => rings.iter().try_for_each(Ring::enable),
            KernelRings::Ftrace(instance) => instance.enable(),
        }
    }

    /// Lets the kernel write no more.
    pub fn disable(&self) -> io::Result<()> {
        match self {
            KernelRings::Perf(rings) => rings.iter().try_for_each(Ring::disable),
            KernelRings::Ftrace(instance) => instance.disable(),
        }
    }

    /// What killed processes had left and was put back, a line each.
    pub fn cleaned(&self) -> &[String] {
        match self {
            KernelRings::Perf(_) => &[],
            KernelRings::Ftrace(instance) => instance.cleaned(),
        }
    }

    /// Why the kernel writes no more, although it was told to; `None` while it does, or cannot be asked.
    pub fn silenced(&self) -> Option<String> {
        let KernelRings::Ftrace(instance) = self else { return None };
        match instance.is_enabled() {
            Ok(true) => None,
            Ok(false) => Some(format!("somebody has switched off {}", instance.folder().display())),
            Err(error) => Some(format!("{} cannot be read any more: {error}", instance.folder().display())),
        }
    }

    /// Takes out what the ring at this place holds, instead of what `bytes` held, and says how that is made up.
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
