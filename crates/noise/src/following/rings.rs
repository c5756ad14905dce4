//! Where the records of single threads come from: a trace instance, or perf where none can be made.
//!
//! The instance comes first because it is cheaper, and because some kernels tell perf nothing at all of what happens while a core is
//! idle: neither who is woken then nor who gets the core. An instance has the wake-ups at least.

use super::Event;
use super::layout::{Layout, number};
use crate::decode::{Entry, entries};
use crate::source::Refused;
use onbeat_os::CoreSet;
use onbeat_os::ftrace::Instance;
use onbeat_os::perf::Ring;
use onbeat_os::tracefs::Tracefs;
use std::io;

/// The ring of a core: it holds what a few threads do in 50 ms.
const RING_BYTES: usize = 256 << 10;

/// Threads beyond this are not filtered by the kernel but by whoever reads: its filters have a length.
const FILTERED: usize = 64;

/// Types of records of `perf_event_open(2)`.
const LOST: u32 = 2;
const THROTTLE: u32 = 5;
const SAMPLE: u32 = 9;

/// The rings of all cores: whoever wakes a thread may be on any.
#[derive(Debug)]
pub(crate) struct Rings {
    layout: Layout,
    source: Source,
    bytes: Vec<u8>,
}

#[derive(Debug)]
enum Source {
    Ftrace { instance: Box<Instance>, cpus: Vec<usize> },
    Perf(Vec<Ring>),
}

impl Rings {
    /// Rings that are not written yet. It takes its time, and the kernel may wait for every core to come by: not for when real-time
    /// threads run already.
    pub fn open() -> Result<Self, Refused> {
        let wrong = |error: io::Error| Refused { why: error.to_string(), fix: "run as root".to_owned() };
        let tracefs = Tracefs::find().map_err(wrong)?;
        let layout = Layout::read(&tracefs).map_err(wrong)?;
        let cpus: Vec<usize> = CoreSet::online().map_err(wrong)?.iter().collect();
        let source =
            ftrace(&tracefs, &layout, cpus.clone()).or_else(|_| perf(&layout, &cpus)).map_err(wrong)?;
        Ok(Rings { layout, source, bytes: Vec::new() })
    }

    /// What happens to these threads is written from now on.
    pub fn start(&self, tids: &[i32]) -> io::Result<()> {
        // What the kernel does not filter is left out by whoever reads.
        let is_filtered = tids.len() <= FILTERED;
        for tracepoint in self.layout.tracepoints().iter().filter(|_| is_filtered) {
            let filter = tracepoint.filter(tids);
            match &self.source {
                Source::Ftrace { instance, .. } => drop(instance.filter(tracepoint.name, &filter)),
                Source::Perf(rings) => rings.iter().for_each(|it| drop(it.filter(tracepoint.id, &filter))),
            }
        }
        match &self.source {
            Source::Ftrace { instance, .. } => instance.enable(),
            Source::Perf(rings) => rings.iter().try_for_each(Ring::enable),
        }
    }

    /// Reads all of them. Says how many records were lost or could not be understood.
    pub(super) fn drain(&mut self, mut take: impl FnMut(Event)) -> u64 {
        let Rings { layout, source, bytes } = self;
        let mut lost = 0;
        match source {
            Source::Ftrace { instance, cpus } => {
                for (at, &cpu) in cpus.iter().enumerate() {
                    bytes.clear();
                    instance.drain(at, bytes);
                    let broken = entries(bytes, instance.pages(), |time_ns, entry| match entry {
                        Entry::Lost(more) => lost += more,
                        Entry::Raw(raw) => match layout.what(raw) {
                            Some(what) => take(Event { time_ns, cpu: cpu as u32, what }),
                            None => lost += 1,
                        },
                    });
                    lost += broken;
                }
            }
            Source::Perf(rings) => {
                for ring in rings {
                    bytes.clear();
                    ring.drain(bytes);
                    lost += decode(bytes, layout, ring.cpu() as u32, &mut take);
                }
            }
        }
        lost
    }
}

fn ftrace(tracefs: &Tracefs, layout: &Layout, cpus: Vec<usize>) -> io::Result<Source> {
    let names: Vec<_> = layout.tracepoints().iter().map(|tracepoint| tracepoint.name).collect();
    let made = Instance::open(tracefs, &names, &cpus, RING_BYTES)?;
    match made.refused.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok(Source::Ftrace { instance: Box::new(made.instance), cpus }),
    }
}

fn perf(layout: &Layout, cpus: &[usize]) -> io::Result<Source> {
    let ids: Vec<u64> = layout.tracepoints().iter().map(|tracepoint| tracepoint.id).collect();
    let rings = cpus.iter().map(|&cpu| Ok(Ring::open(cpu, &ids, RING_BYTES)?.ring));
    Ok(Source::Perf(rings.collect::<io::Result<Vec<Ring>>>()?))
}

/// Reads what a ring of perf had. Says how many records were lost or could not be understood.
fn decode(bytes: &[u8], layout: &Layout, cpu: u32, take: &mut impl FnMut(Event)) -> u64 {
    let mut lost = 0;
    let mut rest = bytes;
    while !rest.is_empty() {
        let size = number(rest, 6, 2).unwrap_or(0) as usize;
        if size < 8 || size > rest.len() {
            return lost + 1;
        }
        let (record, behind) = rest.split_at(size);
        rest = behind;
        let sample = || {
            let time_ns = number(record, 16, 8)?;
            let length = number(record, 24, 4)? as usize;
            let what = layout.what(record.get(28..28 + length)?)?;
            Some(Event { time_ns, cpu, what })
        };
        match number(record, 0, 4).map(|kind| kind as u32) {
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
