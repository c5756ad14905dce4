//! Rings for the records of single threads: of a trace instance, or of perf if none can be made.
//!
//! The instance comes first because it is cheaper, and because some kernels give perf no events while a core
//! is idle: neither the wake-ups nor the switches from idle. An instance has at least the wake-ups.

use super::FollowedEvent;
use super::layout::FollowedLayout;
use crate::decode::{RingEntry, entries};
use crate::source::{KernelRings, SourceRefusal};
use onbeat_os::CoreSet;
use onbeat_os::tracefs::Tracefs;
use std::io;

/// Size of a core's ring: it holds the switches and wake-ups of a few threads in 50 ms.
const RING_BYTES: usize = 256 << 10;

/// Size of the ring of a core on which these threads run. A page fault takes 72 bytes in two records, and 1.2
/// µs or more: the ring holds all that a thread can have in 30 ms.
const BUSY_RING_BYTES: usize = 2 << 20;

/// Above this number of threads, the reader filters instead of the kernel, whose filters have a maximum
/// length.
const FILTERED: usize = 64;

/// Rings of all cores, because wakers may be on any core.
#[derive(Debug)]
pub(crate) struct FollowingRings {
    layout: FollowedLayout,
    cpus: Vec<usize>,
    rings: KernelRings,
    bytes: Vec<u8>,
}

impl FollowingRings {
    /// Opens rings without starting them. This is slow, and the kernel may wait for every core to respond, so
    /// do it before real-time threads run. The threads run on the cores in `busy`.
    pub fn open(busy: &[usize]) -> Result<Self, SourceRefusal> {
        let wrong =
            |error: io::Error| SourceRefusal { why: error.to_string(), fix: "run as root".to_owned() };
        let tracefs = Tracefs::find().map_err(wrong)?;
        let layout = FollowedLayout::read(&tracefs).map_err(wrong)?;
        let cpus: Vec<usize> = CoreSet::online().map_err(wrong)?.iter().collect();
        let bytes = |cpu: usize| if busy.contains(&cpu) { BUSY_RING_BYTES } else { RING_BYTES };
        let rings = ftrace(&tracefs, &layout, &cpus, &bytes).or_else(|_| perf(&layout, &cpus, &bytes));
        let rings = rings.map_err(wrong)?;
        Ok(FollowingRings { layout, cpus, rings, bytes: Vec::new() })
    }

    /// Lets the kernel write the events of these threads.
    pub fn start(&self, tids: &[i32]) -> io::Result<()> {
        for tracepoint in self.layout.tracepoints().iter().filter(|_| tids.len() <= FILTERED) {
            // The reader drops events that the kernel does not filter.
            let _ = self.rings.filter(tracepoint.name, tracepoint.id, &tracepoint.filter(tids));
        }
        self.rings.enable()
    }

    /// Reads all rings. Returns the number of records that were lost or could not be understood.
    pub(super) fn drain(&mut self, mut take: impl FnMut(FollowedEvent)) -> u64 {
        let FollowingRings { layout, cpus, rings, bytes } = self;
        let mut lost = 0;
        for (at, &cpu) in cpus.iter().enumerate() {
            let form = rings.drain(at, bytes);
            let broken = entries(bytes, form, |time_ns, entry| match entry {
                RingEntry::Lost(more) => lost += more,
                RingEntry::Raw(raw) => match layout.what(raw) {
                    Some(what) => take(FollowedEvent { time_ns, cpu: cpu as u32, what }),
                    None => lost += 1,
                },
            });
            lost += broken;
        }
        lost
    }
}

fn ftrace(
    tracefs: &Tracefs,
    layout: &FollowedLayout,
    cpus: &[usize],
    bytes: &dyn Fn(usize) -> usize,
) -> io::Result<KernelRings> {
    let (names, ids): (Vec<_>, Vec<_>) = layout.tracepoints().iter().map(|it| (it.name, it.id)).unzip();
    let (rings, refused) = KernelRings::ftrace(tracefs, cpus, (&names, &ids), bytes)?;
    match refused.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok(rings),
    }
}

fn perf(layout: &FollowedLayout, cpus: &[usize], bytes: &dyn Fn(usize) -> usize) -> io::Result<KernelRings> {
    let ids: Vec<u64> = layout.tracepoints().iter().map(|tracepoint| tracepoint.id).collect();
    Ok(KernelRings::perf(cpus, &ids, bytes).map_err(|(_, error)| error)?.0)
}
