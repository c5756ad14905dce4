//! Entries of a ring of either kind: the bytes of tracepoints, each with its time.

use super::{RingEntry, number, pages};
use onbeat_os::tracefs::Pages;

/// Format of a ring's bytes.
#[derive(Debug, Clone, Copy)]
pub enum Form<'p> {
    /// Records of `perf_event_open(2)`, starting at a record: see [`PerfRing`](onbeat_os::perf::PerfRing).
    Perf,
    /// Pages of a trace instance.
    Pages(&'p Pages),
}

/// Passes the entries in `bytes` to `take`, each with its time in nanoseconds on `CLOCK_MONOTONIC`, or 0 if
/// it has none. Returns the number of unreadable ones.
pub(crate) fn entries(bytes: &[u8], form: Form<'_>, take: impl FnMut(u64, RingEntry<'_>)) -> u64 {
    match form {
        Form::Perf => records(bytes, take),
        Form::Pages(pages) => pages::entries(bytes, pages, take),
    }
}

/// Record types of `perf_event_open(2)`.
const LOST: u32 = 2;
const THROTTLE: u32 = 5;
const SAMPLE: u32 = 9;

fn records(bytes: &[u8], mut take: impl FnMut(u64, RingEntry<'_>)) -> u64 {
    let mut strange = 0;
    let mut rest = bytes;
    while !rest.is_empty() {
        let (Some(kind), Some(size)) = (number::<u32>(rest, 0), number::<u16>(rest, 6)) else {
            return strange + 1;
        };
        let size = usize::from(size);
        if size < 8 || size > rest.len() {
            // The next record cannot be found.
            return strange + 1;
        }
        let (record, behind) = rest.split_at(size);
        rest = behind;
        let entry = match kind {
            SAMPLE => sample(record),
            LOST => number::<u64>(record, 16).map(|lost| (0, RingEntry::Lost(lost))),
            // The kernel omits records when there are too many, without saying how many.
            THROTTLE => Some((0, RingEntry::Lost(1))),
            // Other record types are of no interest.
            _ => continue,
        };
        match entry {
            Some((time_ns, entry)) => take(time_ns, entry),
            None => strange += 1,
        }
    }
    strange
}

fn sample(record: &[u8]) -> Option<(u64, RingEntry<'_>)> {
    let time_ns = number::<u64>(record, 16)?;
    let length = number::<u32>(record, 24)? as usize;
    Some((time_ns, RingEntry::Raw(record.get(28..28 + length)?)))
}
