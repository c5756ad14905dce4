//! The pages of a trace instance (`Documentation/trace/ring-buffer-design.rst`).
//!
//! ```text
//! page    start time (u64) | length and flags | events ... | number of missing records, if flag 30 is set
//! event   type and length (5 bits), time since the last event (27 bits) | more length or time | tracepoint
//! ```

use super::{RingEntry, number};
use onbeat_os::tracefs::Pages;

/// Types of events. A smaller value is the length of the data in words of 4 bytes; with 0, the next word has
/// it in bytes.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Records are missing before the page; the second flag says that their number is stored.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
const LENGTH: u64 = (1 << 27) - 1;

/// Bits of the time in the first word of an event, beside the type.
const DELTA_BITS: u32 = 27;
/// Bits of an absolute time in its event; the upper bits are those of the last time.
const STAMP_BITS: u32 = 59;

/// Passes the entries of the pages in `bytes` to `take`, each with its time in nanoseconds. Returns the
/// number of unreadable pages.
pub(super) fn entries(bytes: &[u8], pages: &Pages, mut take: impl FnMut(u64, RingEntry<'_>)) -> u64 {
    bytes.chunks(pages.page_bytes.max(1)).map(|page| one(page, pages, &mut take)).sum()
}

fn one(page: &[u8], pages: &Pages, take: &mut impl FnMut(u64, RingEntry<'_>)) -> u64 {
    let length = match pages.length_bytes {
        4 => number::<u32>(page, pages.length_at).map(u64::from),
        _ => number::<u64>(page, pages.length_at),
    };
    let (Some(mut time_ns), Some(length)) = (number::<u64>(page, 0), length) else { return 1 };
    let end = pages.data_at + (length & LENGTH) as usize;
    let Some(data) = page.get(pages.data_at..end) else { return 1 };
    if length & MISSED != 0 {
        let stored = (length & MISSED_STORED != 0).then(|| number::<u64>(page, end)).flatten();
        take(time_ns, RingEntry::Lost(stored.unwrap_or(1).max(1)));
    }
    let mut rest = data;
    while let Some(word) = number::<u32>(rest, 0) {
        let (what, delta_ns) = (word & 0x1f, u64::from(word >> 5));
        let more = number::<u32>(rest, 4);
        let (raw_at, length) = match (what, more) {
            // No event follows in this page.
            (PADDING, _) if delta_ns == 0 => break,
            (PADDING, Some(length)) => {
                time_ns = time_ns.saturating_add(delta_ns);
                rest = rest.get(4 + length as usize..).unwrap_or_default();
                continue;
            }
            (TIME_EXTEND, Some(upper)) => {
                time_ns = time_ns.saturating_add(u64::from(upper) << DELTA_BITS | delta_ns);
                rest = &rest[8..];
                continue;
            }
            (TIME_STAMP, Some(upper)) => {
                let known = u64::from(upper) << DELTA_BITS | delta_ns;
                time_ns = time_ns >> STAMP_BITS << STAMP_BITS | known & ((1 << STAMP_BITS) - 1);
                rest = &rest[8..];
                continue;
            }
            (0, Some(length)) if length >= 4 => (8, length as usize - 4),
            (1..PADDING, _) => (4, what as usize * 4),
            // The next event cannot be found.
            _ => return 1,
        };
        time_ns = time_ns.saturating_add(delta_ns);
        let Some(raw) = rest.get(raw_at..raw_at + length) else { return 1 };
        rest = &rest[(raw_at + length).next_multiple_of(4).min(rest.len())..];
        take(time_ns, RingEntry::Raw(raw));
    }
    0
}
