//! Made-up pages of a trace instance, in the kernel's format.

use super::bytes::{raw, x86};
use onbeat_noise::decode::{Form, Id, RecordKind, RingRecord, decode};
use onbeat_os::tracefs::Pages;
use onbeat_trace::Class;
use proptest::prelude::*;

const PAGES: Pages = Pages { page_bytes: 256, length_at: 8, length_bytes: 8, data_at: 16 };
const TIMER: Id = Id { class: Class::Irq, number: Id::VECTORS };

fn event(what: u32, delta_ns: u32, rest: &[u8]) -> Vec<u8> {
    [&(what | delta_ns << 5).to_ne_bytes(), rest].concat()
}

/// A tracepoint of 12 bytes of thread 7: three words.
fn tracepoint(id: u16) -> Vec<u8> {
    raw(id, &[(4, &7i32.to_ne_bytes())])[..12].to_vec()
}

fn page(time_ns: u64, flags: u64, events: &[Vec<u8>]) -> Vec<u8> {
    let data = events.concat();
    let mut page = [time_ns.to_ne_bytes(), (data.len() as u64 | flags).to_ne_bytes()].concat();
    page.extend(data);
    page.resize(PAGES.page_bytes, 0);
    page
}

fn decoded(bytes: &[u8]) -> (Vec<RingRecord>, u64) {
    let folder = tempfile::tempdir().unwrap();
    let (layout, mut records) = (x86(folder.path()), Vec::new());
    let strange = decode(bytes, Form::Pages(&PAGES), &layout, |record| records.push(record));
    (records, strange)
}

#[test]
fn times_are_added_up_and_pages_follow_each_other() {
    let first = page(
        1_000,
        0,
        &[
            event(3, 5, &tracepoint(10)),
            // Twice 2^27 ns and 9 ns more, then nothing for a while.
            event(30, 9, &2u32.to_ne_bytes()),
            event(3, 1, &tracepoint(11)),
            // Padding with a time; another tracepoint; the same with its length in a separate word.
            event(29, 10, &[&8u32.to_ne_bytes()[..], &[0; 4]].concat()),
            event(3, 1, &tracepoint(999)),
            event(0, 1, &[&16u32.to_ne_bytes()[..], &tracepoint(10)].concat()),
            // An absolute time.
            event(31, 77, &3u32.to_ne_bytes()),
            event(3, 2, &tracepoint(11)),
            event(29, 0, &[0; 8]),
            event(3, 2, &tracepoint(11)),
        ],
    );
    let second = page(5 << 27, 0, &[event(3, 0, &tracepoint(10))]);
    let (records, strange) = decoded(&[first, second].concat());
    let found: Vec<(u64, i32, RecordKind)> =
        records.into_iter().map(|r| (r.time_ns, r.pid, r.kind)).collect();
    let (enter, exit) = (RecordKind::Enter(TIMER, "local_timer".into()), RecordKind::Exit(TIMER));
    let late_ns = 1_005 + (2 << 27) + 9;
    assert_eq!(
        (found, strange),
        (
            vec![
                (1_005, 7, enter.clone()),
                (late_ns + 1, 7, exit.clone()),
                (late_ns + 13, 7, enter.clone()),
                ((3 << 27) + 77 + 2, 7, exit),
                (5 << 27, 7, enter),
            ],
            0
        )
    );
}

#[test]
fn what_was_overwritten_is_told() {
    let mut known = page(10, 1 << 31 | 1 << 30, &[event(3, 1, &tracepoint(10))]);
    known[32..40].copy_from_slice(&42u64.to_ne_bytes());
    let unknown = page(20, 1 << 31, &[]);
    let (records, strange) = decoded(&[known, unknown].concat());
    let kinds: Vec<RecordKind> = records.into_iter().map(|record| record.kind).collect();
    assert_eq!(
        kinds,
        [RecordKind::Lost(42), RecordKind::Enter(TIMER, "local_timer".into()), RecordKind::Lost(1)]
    );
    assert_eq!(strange, 0);
}

#[test]
fn what_is_no_page_is_counted() {
    for (bytes, expected) in [
        (vec![], 0),
        (vec![1; 10], 1),
        // Longer than the page.
        (page(1, 4000, &[]), 1),
        // An event beyond its end, and one without its second word.
        (page(1, 0, &[event(28, 0, &[0; 4])]), 1),
        (page(1, 0, &[event(30, 0, &[])]), 1),
        (page(1, 0, &[event(0, 0, &2u32.to_ne_bytes())]), 1),
    ] {
        let (records, strange) = decoded(&bytes);
        assert_eq!((records.len(), strange), (0, expected), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_fall(bytes in prop::collection::vec(any::<u8>(), 0..600), length in 0u64..300) {
        decoded(&bytes);
        // With a length that could be, so that more of it is read.
        let mut page = bytes;
        page.resize(PAGES.page_bytes, 0);
        page[8..16].copy_from_slice(&length.to_ne_bytes());
        decoded(&page);
    }
}
