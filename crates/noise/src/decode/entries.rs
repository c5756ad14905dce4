//! What a ring holds, whoever has written it: the bytes of tracepoints, each with its time.

use super::{RingEntry, number, pages};
use onbeat_os::tracefs::Pages;

/// How the bytes of a ring are made up.
#[derive(Debug, Clone, Copy)]
pub enum Form<'p> {
    /// As records of `perf_event_open(2)`, the first one whole: see [`Ring`](onbeat_os::perf::Ring).
    Perf,
    /// As pages of a trace instance.
    Pages(&'p Pages),
}

/// Gives what `bytes` hold to `take`, each with its time in nanoseconds on `CLOCK_MONOTONIC`, or 0 where none is told. Says how many
/// could not be understood.
pub(crate) fn entries(bytes: &[u8], form: Form<'_>, take: impl FnMut(u64, RingEntry<'_>)) -> u64 {
    match form {
        Form::Perf => records(bytes, take),
        Form::Pages(pages) => pages::entries(bytes, pages, take),
    }
}

/// Types of records of `perf_event_open(2)`.
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
            // Where the next one begins nobody knows.
            return strange + 1;
        }
        let (record, behind) = rest.split_at(size);
        rest = behind;
        let entry = match kind {
            SAMPLE => sample(record),
            LOST => number::<u64>(record, 16).map(|lost| (0, RingEntry::Lost(lost))),
            // Too many at once: the kernel leaves some out, and does not say how many.
            THROTTLE => Some((0, RingEntry::Lost(1))),
            // The kernel may tell other things: none that we have asked for.
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
