//! Frames in bits: sync words, lengths, whitening, checksums.
#![forbid(unsafe_code)]

use crate::slices::Dice;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial, cuts};

fn bits_of(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1 == 1)).collect()
}

fn soft(bits: &[bool]) -> Vec<f32> {
    bits.iter().map(|bit| if *bit { 0.8 } else { -1.1 }).collect()
}

fn trial(text: &str, bits: &[bool]) -> Trial {
    Trial::kind(&registry(), "frame.decode", text).feed("in", Feed::samples(soft(bits)).rate(1000.0))
}

fn lines(seen: &Seen) -> Vec<serde_json::Value> {
    let texts = seen.messages::<String>("out");
    texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// Check values of the catalogue of parametrised CRC algorithms: the checksum of `123456789`.
#[test]
fn checksums_are_those_of_the_catalogue() {
    for (name, check) in [
        ("CRC-8/SMBUS", "f4"),
        ("CRC-8", "f4"),
        ("CRC-8/MAXIM-DOW", "a1"),
        ("CRC-16/IBM-3740", "29b1"),
        ("crc-16/ccitt-false", "29b1"),
        ("CRC-16/XMODEM", "31c3"),
        ("CRC-16/GENIBUS", "d64e"),
        // Reflected ones have their least significant byte first.
        ("CRC-16/X-25", "6e90"),
        ("CRC-16/KERMIT", "8921"),
        ("CRC-16/MODBUS", "374b"),
        ("CRC-16/ARC", "3dbb"),
        ("CRC-24/OPENPGP", "21cf02"),
        ("CRC-32", "2639f4cb"),
        ("CRC-32/BZIP2", "fc891918"),
        ("CRC-32C", "839206e3"),
    ] {
        let check: Vec<u8> = (0..check.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&check[at..at + 2], 16).unwrap())
            .collect();
        let bits = bits_of(&[&[0x55, 0x2d, 0xd4], &b"123456789"[..], &check].concat());
        let text = format!("sync = '2dd4'\nlength = 9\ncrc = '{name}'");
        let seen = trial(&text, &bits).run();
        assert_eq!(lines(&seen).len(), 1, "{name}: {:?}", seen.notes());
        assert_eq!(lines(&seen)[0]["data"], "313233343536373839");
        // Another bit is another frame.
        for wrong in [30, 100, bits.len() - 1] {
            let mut bits = bits.clone();
            bits[wrong] = !bits[wrong];
            let seen = trial(&text, &bits).run();
            assert!(lines(&seen).is_empty(), "{name}");
            assert_eq!(seen.notes(), ["0 frames; 1 sync words without a right checksum"]);
        }
    }
}

#[test]
fn frames_come_with_their_times() {
    let frame = |text: &[u8]| [&[0xaa, 0xaa, 0x2d, 0xd4, text.len() as u8], text].concat();
    let bytes = [frame(b"one"), vec![0x0f; 3], frame(b"a second one"), frame(b"")].concat();
    let seen = cuts(|| trial("sync = '0x2dd4'\nlength_at = 0", &bits_of(&bytes)));
    let texts = seen.messages::<String>("out");
    let expected = [
        r#"{"time_s":0.016,"data":"036f6e65"}"#,
        r#"{"time_s":0.104,"data":"0c61207365636f6e64206f6e65"}"#,
        r#"{"time_s":0.24,"data":"00"}"#,
    ];
    assert_eq!(texts, expected);
    assert_eq!(seen.notes(), ["3 frames"]);
}

#[test]
fn bits_can_be_inverted_whitened_and_in_another_order() {
    let white = [0xff, 0xe1, 0x1d, 0x9a, 0xed, 0x85, 0x33, 0x24];
    let plain = b"\x07whitey!";
    let whitened: Vec<u8> = plain.iter().zip(white).map(|(a, b)| a ^ b).collect();
    let bits = bits_of(&[&[0xd3, 0x91], &whitened[..]].concat());
    let inverted: Vec<bool> = bits.iter().map(|bit| !bit).collect();
    let base = "sync = 'd391'\nlength_at = 0\nwhitening = 'pn9'\n";
    let data = |text: &str, bits: &[bool]| {
        let seen = trial(text, bits).run();
        lines(&seen).iter().map(|line| (line["data"].clone(), line["inverted"].clone())).collect::<Vec<_>>()
    };
    let hex: String = plain.iter().map(|byte| format!("{byte:02x}")).collect();
    for (polarity, bits, is_found, is_inverted) in [
        ("normal", &bits, true, false),
        ("normal", &inverted, false, false),
        ("inverted", &inverted, true, true),
        ("either", &bits, true, false),
        ("either", &inverted, true, true),
    ] {
        let found = data(&format!("{base}polarity = '{polarity}'"), bits);
        let inverted = if is_inverted { true.into() } else { serde_json::Value::Null };
        assert_eq!(found, if is_found { vec![(hex.clone().into(), inverted)] } else { vec![] }, "{polarity}");
    }
    let swapped: Vec<u8> = plain.iter().map(|byte| byte.reverse_bits()).collect();
    let bits = bits_of(&[&[0xd3, 0x91], &swapped[..]].concat());
    assert_eq!(data("sync = '0b1101001110010001'\nlength = 8\nbit_order = 'lsb'", &bits)[0].0, hex);
}

#[test]
fn a_false_sync_word_hides_no_frame() {
    // The word comes by chance just before a frame, whose bits would be within its own.
    let frame = [&[0x2d, 0xd4], &b"123456789"[..], &[0x29, 0xb1]].concat();
    let bits = bits_of(&[&[0x2d, 0xd4, 0x00], &frame[..], &[0x2d, 0xd4, 1]].concat());
    let text = "sync = '2dd4'\nlength = 9\ncrc = 'CRC-16/IBM-3740'";
    let seen = cuts(|| trial(text, &bits));
    assert_eq!(lines(&seen).len(), 1);
    assert_eq!(
        seen.notes(),
        ["1 frames; 1 sync words without a right checksum; 1 without a possible length, or cut by the end"]
    );
    let seen = trial(&format!("{text}\nwrong = true"), &bits).run();
    assert_eq!(lines(&seen)[0]["crc_ok"], false);
    // Errors in the sync word.
    let mut bits = bits_of(&frame);
    (bits[3], bits[9]) = (!bits[3], !bits[9]);
    assert!(lines(&trial(&format!("{text}\nsync_errors = 1"), &bits).run()).is_empty());
    assert_eq!(lines(&trial(&format!("{text}\nsync_errors = 2"), &bits).run())[0]["sync_errors"], 2);
}

#[test]
fn noise_has_no_checked_frames() {
    let mut dice = Dice::new(3);
    let bits: Vec<bool> = (0..400_000).map(|_| dice.bits() & 1 == 1).collect();
    for text in ["length = 9", "length_at = 0", "length_at = 3\nlength_bytes = 2\nlongest = 8192"] {
        let text = format!("sync = '2d'\ncrc = 'CRC-32'\n{text}");
        let seen = trial(&text, &bits).run();
        assert!(lines(&seen).is_empty(), "{:?}", seen.notes());
    }
}

#[test]
fn bad_parameters_are_refused() {
    for (text, said) in [
        ("sync = '2dd'", ""),
        ("sync = '2d'\nsync_errors = 3", "`sync_errors` is 3: it must be at most 2"),
        ("sync = 'hello'", "from 8 to 64 bits"),
        ("sync = '+2d4'", "from 8 to 64 bits"),
        ("sync = ''", "from 8 to 64 bits"),
        ("sync = '0b101'", "from 8 to 64 bits"),
        ("sync = '00112233445566778'", "from 8 to 64 bits"),
        ("sync = '2dd4'\ncrc = 'CRC-17'", "`crc` is `CRC-17`: it must be `none` or one of CRC-8/SMBUS, "),
    ] {
        let error = registry().operator("frame.decode", &format!("{text}\nlength = 4")).err();
        let error = error.map_or(String::new(), |error| error.to_string());
        assert!(error.contains(said) && error.is_empty() == said.is_empty(), "{text}: {error}");
    }
    for (text, said) in [
        ("", "needs `length`, or `length_at`"),
        ("length = 0", "`length` is 0"),
        ("length = 3\nlength_at = 0", "has both"),
    ] {
        let error = registry().operator("frame.decode", &format!("sync = '2dd4'\n{text}")).err().unwrap();
        assert!(error.to_string().contains(said), "{text}: {error}");
    }
}
