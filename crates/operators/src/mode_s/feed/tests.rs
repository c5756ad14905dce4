//! Both formats of frames: written and read again, with garbage and cuts in between.

use super::avr::{self, AvrReader};
use super::beast::{self, BeastReader};
use super::ticks::ticks;
use super::unit::{FeedFrame, FeedUnit, Skipped};
use crate::mode_s::Frame;
use proptest::prelude::*;

fn avr(bytes: &[u8]) -> (Vec<FeedUnit>, Skipped) {
    let (mut reader, mut skipped) = (AvrReader::default(), Skipped::default());
    let units = bytes.iter().filter_map(|byte| reader.take(*byte, &mut skipped)).collect();
    (units, skipped)
}

fn beast(bytes: &[u8]) -> (Vec<FeedUnit>, Skipped) {
    let (mut reader, mut skipped) = (BeastReader::default(), Skipped::default());
    let units = bytes.iter().filter_map(|byte| reader.take(*byte, &mut skipped)).collect();
    (units, skipped)
}

fn frames(units: &[FeedUnit]) -> Vec<FeedFrame> {
    let frame = |unit: &FeedUnit| match unit {
        FeedUnit::Frame(frame) => Some(*frame),
        _ => None,
    };
    units.iter().filter_map(frame).collect()
}

fn frame() -> impl Strategy<Value = Frame> {
    // 0x1a is frequent, because it is doubled.
    let byte = prop_oneof![any::<u8>(), Just(0x1a), Just(b'*')];
    let bytes = prop_oneof![prop::collection::vec(byte.clone(), 7..=7), prop::collection::vec(byte, 14..=14)];
    (bytes, 0.0..2e7, -48.0f32..0.0)
        .prop_map(|(bytes, time_s, level_db)| Frame::new(&bytes, time_s, level_db).unwrap())
}

proptest! {
    #[test]
    fn frames_come_back(all in prop::collection::vec(frame(), 1..20)) {
        let mut skipped = Skipped::default();
        let (mut text, mut timed, mut binary) = (Vec::new(), Vec::new(), Vec::new());
        for frame in &all {
            avr::write(frame, false, &mut text);
            avr::write(frame, true, &mut timed);
            beast::write(frame, &mut binary);
        }
        for (found, ticked) in [(avr(&text), false), (avr(&timed), true), (beast(&binary), true)] {
            prop_assert_eq!(found.1, Skipped::default());
            let found = frames(&found.0);
            prop_assert_eq!(found.len(), all.len());
            for (found, frame) in found.iter().zip(&all) {
                prop_assert_eq!(&found.bytes[..found.length], frame.bytes());
                prop_assert_eq!(found.ticks, ticked.then(|| ticks(frame.time_s)));
            }
        }
        for (found, frame) in frames(&beast(&binary).0).iter().zip(&all) {
            let level = f64::from(found.level.unwrap());
            let amplitude = 255.0 * 10f64.powf(f64::from(frame.level_db) / 20.0);
            prop_assert!((level - amplitude).abs() <= 0.5 + 1e-3);
            let _checked = found.checked(0.0, &mut skipped);
        }
    }

    /// Every byte is in a message or counted, and no bytes crash it.
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(
        prop_oneof![any::<u8>(), prop::sample::select(b"*@%<;0aF\x1a\x1a123\n".to_vec())], 0..2000)) {
        for (units, skipped) in [avr(&bytes), beast(&bytes)] {
            prop_assert!(units.len() as u64 + skipped.bytes + skipped.cut <= bytes.len() as u64);
        }
    }

    /// After a cut and garbage, at most the next message is lost.
    #[test]
    fn it_finds_the_next_message(
        all in prop::collection::vec(frame(), 3..6),
        garbage in prop::collection::vec(any::<u8>(), 0..40),
        at in any::<prop::sample::Index>(),
    ) {
        let last = *all.last().unwrap();
        let (mut text, mut binary) = (Vec::new(), Vec::new());
        avr::write(&all[0], true, &mut text);
        beast::write(&all[0], &mut binary);
        text.truncate(at.index(text.len()));
        binary.truncate(at.index(binary.len()));
        for out in [&mut text, &mut binary] {
            out.extend_from_slice(&garbage);
        }
        for frame in &all[1..] {
            avr::write(frame, true, &mut text);
            beast::write(frame, &mut binary);
        }
        for found in [avr(&text).0, beast(&binary).0] {
            let found = frames(&found);
            prop_assert!(found.len() >= all.len() - 2);
            let end = found.last().unwrap();
            prop_assert_eq!(&end.bytes[..end.length], last.bytes());
        }
    }
}

#[test]
fn odd_messages_are_counted() {
    let text = b"*5D4D20237A55A6;\r\n*0000;\n*5D4D;*5D4D20237A55A;*;@12;@0000;junk*5D4D2\n<000000000010ff5d4d20237a55a6;";
    let (units, skipped) = avr(text);
    let hex = [0x5d, 0x4d, 0x20, 0x23, 0x7a, 0x55, 0xa6];
    let plain = FeedUnit::frame(&hex, None, None);
    let leveled = FeedUnit::frame(&hex, Some(16), Some(255));
    let odd = FeedUnit::Odd;
    assert_eq!(units, [plain, FeedUnit::Other, FeedUnit::Other, odd, odd, odd, odd, leveled]);
    assert_eq!((skipped.bytes, skipped.cut), (4, 1));
    let text = b"\x1a1\0\0\0\0\0\0\0\0\0\x1a\x1a9\x1a9\x1a2\x1a3";
    let (units, skipped) = beast(text);
    assert_eq!(units, [FeedUnit::Other]);
    assert_eq!((skipped.bytes, skipped.cut), (5, 1));
    let too_long = [&b"*"[..], &[b'0'; 100], b";"].concat();
    assert_eq!(avr(&too_long).1.cut, 1);
}

#[test]
fn frames_are_checked() {
    let mut skipped = Skipped::default();
    let mut check = |bytes: &[u8]| {
        let FeedUnit::Frame(frame) = FeedUnit::frame(bytes, None, None) else { panic!("{bytes:?}") };
        frame.checked(1.0, &mut skipped).map(|frame| frame.hex())
    };
    let good = [0x5d, 0x4d, 0x20, 0x23, 0x7a, 0x55, 0xa6];
    assert_eq!(check(&good).as_deref(), Some("5d4d20237a55a6"));
    assert_eq!(check(&[0x5d, 0x4d, 0x20, 0x23, 0x7a, 0x54, 0xa6]), None);
    assert_eq!(check(&[0x8d; 14]), None);
    assert_eq!(check(&[0x8d; 7]), None);
    assert_eq!(check(&[0x20; 14]), None);
    assert_eq!((skipped.parity, skipped.odd), (2, 2));
    assert_eq!(skipped.list().unwrap(), "2 frames of a wrong length, 2 frames with a wrong parity");
}
