//! Where the records of single threads come from: a trace instance, or perf where none can be made.
//!
//! The instance comes first because it is cheaper, and because some kernels tell perf nothing at all of what happens while a core is
//! idle: neither who is woken then nor who gets the core. An instance has the wake-ups at least.

use super::Event;
use super::layout::Layout;
use crate::decode::{Entry, entries};
use crate::source::{Refused, Rings};
use onbeat_os::CoreSet;
use onbeat_os::tracefs::Tracefs;
use std::io;

/// The ring of a core: it holds what a few threads do in 50 ms.
const RING_BYTES: usize = 256 << 10;

/// Threads beyond this are not filtered by the kernel but by whoever reads: its filters have a length.
const FILTERED: usize = 64;

/// The rings of all cores: whoever wakes a thread may be on any.
#[derive(Debug)]
pub(crate) struct Ready {
    layout: Layout,
    cpus: Vec<usize>,
    rings: Rings,
    bytes: Vec<u8>,
}

impl Ready {
    /// Rings that are not written yet. It takes its time, and the kernel may wait for every core to come by: not for when real-time
    /// threads run already.
    pub fn open() -> Result<Self, Refused> {
        let wrong = |error: io::Error| Refused { why: error.to_string(), fix: "run as root".to_owned() };
        let tracefs = Tracefs::find().map_err(wrong)?;
        let layout = Layout::read(&tracefs).map_err(wrong)?;
        let cpus: Vec<usize> = CoreSet::online().map_err(wrong)?.iter().collect();
        let rings = ftrace(&tracefs, &layout, &cpus).or_else(|_| perf(&layout, &cpus)).map_err(wrong)?;
        Ok(Ready { layout, cpus, rings, bytes: Vec::new() })
    }

    /// What happens to these threads is written from now on.
    pub fn start(&self, tids: &[i32]) -> io::Result<()> {
        for tracepoint in self.layout.tracepoints().iter().filter(|_| tids.len() <= FILTERED) {
            // What the kernel does not filter is left out by whoever reads.
            let _ = self.rings.filter(tracepoint.name, tracepoint.id, &tracepoint.filter(tids));
        }
        self.rings.enable()
    }

    /// Reads all of them. Says how many records were lost or could not be understood.
    pub(super) fn drain(&mut self, mut take: impl FnMut(Event)) -> u64 {
        let Ready { layout, cpus, rings, bytes } = self;
        let mut lost = 0;
        for (at, &cpu) in cpus.iter().enumerate() {
            let form = rings.drain(at, bytes);
            let broken = entries(bytes, form, |time_ns, entry| match entry {
                Entry::Lost(more) => lost += more,
                Entry::Raw(raw) => match layout.what(raw) {
                    Some(what) => take(Event { time_ns, cpu: cpu as u32, what }),
                    None => lost += 1,
                },
            });
            lost += broken;
        }
        lost
    }
}

fn ftrace(tracefs: &Tracefs, layout: &Layout, cpus: &[usize]) -> io::Result<Rings> {
    let (names, ids): (Vec<_>, Vec<_>) = layout.tracepoints().iter().map(|it| (it.name, it.id)).unzip();
    let (rings, refused) = Rings::ftrace(tracefs, cpus, (&names, &ids), RING_BYTES)?;
    match refused.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok(rings),
    }
}

fn perf(layout: &Layout, cpus: &[usize]) -> io::Result<Rings> {
    let ids: Vec<u64> = layout.tracepoints().iter().map(|tracepoint| tracepoint.id).collect();
    Ok(Rings::perf(cpus, &ids, RING_BYTES).map_err(|(_, error)| error)?.0)
}
