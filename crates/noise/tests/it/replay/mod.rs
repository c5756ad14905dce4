//! Constructed streams of kernel records, replayed: their events, and the effect of holes.

mod bytes;
mod gaps;
mod holes;
mod nested;
mod pages;
mod wakes;

use onbeat_noise::Nesting;
use onbeat_noise::decode::{Id, RecordKind, RingRecord};
use onbeat_trace::{Class, KernelEvent};
use std::ops::Range;

/// The measured thread.
const OWN: i32 = 100;

const TIMER: Id = Id { class: Class::Irq, number: Id::VECTORS };
const DISK: Id = Id { class: Class::Irq, number: 36 };
const IPI: Id = Id { class: Class::Irq, number: Id::IPI };
const RCU: Id = Id { class: Class::Softirq, number: 9 };

fn enter(time_ns: u64, pid: i32, id: Id, name: &'static str) -> RingRecord {
    RingRecord { time_ns, pid, is_going: false, kind: RecordKind::Enter(id, name.into()) }
}

fn exit(time_ns: u64, pid: i32, id: Id) -> RingRecord {
    RingRecord { time_ns, pid, is_going: false, kind: RecordKind::Exit(id) }
}

fn nmi(time_ns: u64, pid: i32, duration_ns: u64) -> RingRecord {
    RingRecord { time_ns, pid, is_going: false, kind: RecordKind::Nmi { duration_ns } }
}

fn switch(time_ns: u64, prev: i32, next: i32, comm: &str) -> RingRecord {
    let kind = RecordKind::Switch {
        prev,
        was: None,
        is_prev_runnable: true,
        next,
        comm: comm.into(),
        priority: 120,
    };
    RingRecord { time_ns, pid: prev, is_going: false, kind }
}

/// Replays records on core 1, where thread [`OWN`] runs.
fn replay(records: Vec<RingRecord>) -> (Vec<KernelEvent>, Nesting) {
    let mut nesting = Nesting::new(1);
    nesting.measure(&[OWN]);
    let mut events = Vec::new();
    nesting.stamp(OWN, 0, &mut events);
    for record in records {
        nesting.record(record, &mut events);
    }
    (events, nesting)
}

/// Name, start, duration and depth of each event.
fn shown(events: &[KernelEvent]) -> Vec<(&str, u64, u64, u32)> {
    events.iter().map(|event| (event.name.as_str(), event.start_ns, event.duration_ns, event.depth)).collect()
}

/// Start and end of the stretches in which records are missing.
fn broken(nesting: &mut Nesting) -> Vec<(u64, u64)> {
    pairs(nesting.take_broken())
}

fn pairs(stretches: Vec<Range<u64>>) -> Vec<(u64, u64)> {
    stretches.into_iter().map(|range| (range.start, range.end)).collect()
}
