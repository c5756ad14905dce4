//! Files that recorders and other programs write, and that are not as one would write them oneself.

use super::arrays::npy;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Seen, Trial};
use std::fs;
use std::path::Path;

fn trial(kind: &str, path: &Path, more: &str) -> Trial {
    Trial::kind(&registry(), kind, &format!("path = {path:?}\npace = \"fast\"\n{more}"))
}

fn chunk(name: &[u8; 4], length: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = [&name[..], &length.to_le_bytes(), body].concat();
    if body.len() % 2 == 1 {
        bytes.push(0);
    }
    bytes
}

fn whole(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    chunk(name, body.len() as u32, body)
}

/// A chunk `fmt ` for samples at 8 kHz.
fn format(tag: u16, channels: u16, bits: u16) -> Vec<u8> {
    let block = channels * bits.div_ceil(8);
    let mut body = [tag.to_le_bytes(), channels.to_le_bytes()].concat();
    body.extend(8000_u32.to_le_bytes());
    body.extend((8000 * u32::from(block)).to_le_bytes());
    body.extend([block.to_le_bytes(), bits.to_le_bytes()].concat());
    body
}

fn riff(magic: &[u8; 4], length: u32, chunks: &[Vec<u8>]) -> Vec<u8> {
    [&magic[..], &length.to_le_bytes(), b"WAVE", &chunks.concat()].concat()
}

fn bytes(numbers: &[i16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Plays a WAV file of one channel; `strict` refuses it if it is noted.
fn play(bytes: &[u8]) -> (Vec<f32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.wav");
    fs::write(&path, bytes).unwrap();
    let seen = trial("wav.source", &path, "").run();
    let notes = seen.notes().join("; ");
    if !notes.is_empty() {
        let text = trial("wav.source", &path, "").options(|options| options.strict = true).failure();
        assert!(text.contains("strict: "), "{text}");
    }
    (seen.samples("out"), notes)
}

#[test]
fn headers_of_recorders_play() {
    let (data, expected) = (bytes(&[0, 8192, -16384]), [0.0, 0.25, -0.5]);
    let pcm = || whole(b"fmt ", &format(1, 1, 16));
    let extensible = [
        &format(0xFFFE, 1, 16)[..],
        &[22, 0, 16, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 16, 0, 128, 0, 0, 170, 0, 56, 155, 113],
    ]
    .concat();
    let long = [54_u64.to_le_bytes(), 6_u64.to_le_bytes(), 3_u64.to_le_bytes()].concat();
    let rf64 = |magic| {
        let ds64 = whole(b"ds64", &[&long[..], &[0; 4]].concat());
        riff(magic, u32::MAX, &[ds64, pcm(), chunk(b"data", u32::MAX, &data)])
    };
    let list = || whole(b"LIST", b"INFOodd");
    for (name, file, note) in [
        ("plain", riff(b"RIFF", 42, &[pcm(), whole(b"data", &data)]), ""),
        ("extensible", riff(b"RIFF", 66, &[whole(b"fmt ", &extensible), whole(b"data", &data)]), ""),
        ("other chunks", riff(b"RIFF", 0, &[list(), pcm(), list(), whole(b"data", &data), list()]), ""),
        ("RF64", rf64(b"RF64"), ""),
        ("BW64", rf64(b"BW64"), ""),
        (
            "streamed",
            riff(b"RIFF", u32::MAX, &[pcm(), chunk(b"data", u32::MAX, &data)]),
            "does not say how long",
        ),
        ("killed", riff(b"RIFF", 0, &[pcm(), chunk(b"data", 0, &data)]), "does not say how long"),
        (
            "cut",
            riff(b"RIFF", 136, &[pcm(), chunk(b"data", 100, &data)]),
            "announces 100 bytes of samples, and the file has 6",
        ),
        (
            "half a sample",
            riff(b"RIFF", 43, &[pcm(), whole(b"data", &[&data[..], &[9]].concat())]),
            "the last 1 bytes",
        ),
    ] {
        let (samples, notes) = play(&file);
        assert_eq!(samples, expected, "{name}");
        assert!(if note.is_empty() { notes.is_empty() } else { notes.contains(note) }, "{name}: {notes}");
    }
}

#[test]
fn every_width_plays() {
    let file = |tag, bits, data: &[u8]| {
        riff(b"RIFF", 0, &[whole(b"fmt ", &format(tag, 1, bits)), whole(b"data", data)])
    };
    for (name, bytes, expected) in [
        ("8 bits", file(1, 8, &[128, 192, 64]), [0.0, 0.5, -0.5]),
        ("12 bits", file(1, 12, &[0, 0, 0, 64, 0, 192]), [0.0, 0.5, -0.5]),
        ("24 bits", file(1, 24, &[0, 0, 0, 0, 0, 64, 0, 0, 192]), [0.0, 0.5, -0.5]),
        ("32 bits", file(1, 32, &[0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 192]), [0.0, 0.5, -0.5]),
        ("half", file(3, 16, &[0, 0, 0, 0x38, 0, 0xb8]), [0.0, 0.5, -0.5]),
        ("single", file(3, 32, bytemuck::cast_slice(&[0.0_f32, 0.5, -0.5])), [0.0, 0.5, -0.5]),
        ("double", file(3, 64, bytemuck::cast_slice(&[0.0_f64, 0.5, -0.5])), [0.0, 0.5, -0.5]),
        // By the tables of G.711: segment and place.
        ("A-law", file(6, 8, &[0xD5, 0x80, 0x2A]), [8.0 / 32768.0, 5504.0 / 32768.0, -32256.0 / 32768.0]),
        ("µ-law", file(7, 8, &[0xFF, 0x80, 0x00]), [0.0, 32124.0 / 32768.0, -32124.0 / 32768.0]),
    ] {
        assert_eq!(play(&bytes).0, expected, "{name}");
    }
    // High byte first, in the header too.
    let mut big =
        b"RIFX\0\0\0*WAVEfmt \0\0\0\x10\0\x01\0\x01\0\0\x1f\x40\0\0\x3e\x80\0\x02\0\x10data\0\0\0\x06"
            .to_vec();
    big.extend([0, 0, 0x40, 0, 0xc0, 0]);
    assert_eq!(play(&big).0, [0.0, 0.5, -0.5]);
}

#[test]
fn recordings_of_radios_are_complex() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.wav");
    let mut auxi = vec![0; 68];
    for (at, field) in [2020_u16, 2, 0, 3, 4, 5, 6, 7].into_iter().enumerate() {
        auxi[2 * at..2 * at + 2].copy_from_slice(&field.to_le_bytes());
    }
    auxi[32..36].copy_from_slice(&100_000_000_u32.to_le_bytes());
    let (pcm, data) = (whole(b"fmt ", &format(1, 2, 16)), whole(b"data", &bytes(&[8192, -8192, 16384, 0])));
    let auxi = whole(b"auxi", &auxi);
    for chunks in [[pcm.clone(), auxi.clone(), data.clone()], [pcm, data, auxi]] {
        fs::write(&path, riff(b"RIFF", 0, &chunks)).unwrap();
        let seen = trial("wav.source.complex", &path, "").run();
        let samples: Vec<num_complex::Complex<f32>> = seen.samples("out");
        assert_eq!(samples.iter().map(|x| (x.re, x.im)).collect::<Vec<_>>(), [(0.25, -0.25), (0.5, 0.0)]);
        let tags: Vec<String> =
            seen.tags("out").iter().map(|mark| format!("{} {:?}", mark.1, mark.2)).collect();
        assert!(tags[0].starts_with("core:frequency") && tags[0].contains("100000000"), "{tags:?}");
        assert!(tags[1].contains("2020-02-03T04:05:06.007Z"), "{tags:?}");
        let text = trial("wav.source", &path, "").failure();
        assert!(text.contains("play it with `wav.source.complex`"), "{text}");
    }
    let seen = trial("wav.source.complex", &path, "sample_rate = \"38 kHz\"").run();
    assert_eq!(seen.rate_hz("out"), 38_000.0);
    assert!(
        seen.notes()[0].contains("`sample_rate` is 38000 Hz, and its header says 8000 Hz"),
        "{:?}",
        seen.notes()
    );
}

#[test]
fn arrays_of_every_order_play() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let seen = |bytes: Vec<u8>| -> Seen {
        fs::write(&path, bytes).unwrap();
        trial("npy.source", &path, "rate = 100").run()
    };
    let numbers = |order: [f32; 6]| bytemuck::cast_slice::<f32, u8>(&order).to_vec();
    let fortran = |shape: &str, data: &[u8]| {
        let mut bytes = npy("<f4", shape, data, 1);
        let at = bytes.windows(5).position(|word| word == b"False").unwrap();
        bytes[at..at + 5].copy_from_slice(b"True ");
        bytes
    };
    let found = seen(fortran("(3, 2)", &numbers([1.0, 3.0, 5.0, 2.0, 4.0, 6.0])));
    assert_eq!(found.samples::<f32>("out"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(found.lengths("out"), [2, 2, 2]);
    let found = seen(fortran("(1, 2, 3)", &numbers([1.0, 4.0, 2.0, 5.0, 3.0, 6.0])));
    assert_eq!(found.samples::<f32>("out"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let found = seen(npy("<f2", "(3,)", &[0, 0x3c, 0, 0xc0, 0, 0x38], 1));
    assert_eq!(found.samples::<f32>("out"), [1.0, -2.0, 0.5]);
    let found = seen(npy(">i4", "(2,)", &[0, 0, 0, 7, 0xff, 0xff, 0xff, 0xfe], 1));
    assert_eq!(found.samples::<f32>("out"), [7.0, -2.0]);
    let found = seen(npy("<f4", "(1,)", &numbers([9.0; 6]), 1));
    assert_eq!(found.samples::<f32>("out"), [9.0]);
    assert!(found.notes()[0].contains("20 bytes after the array were not played"), "{:?}", found.notes());
}

#[test]
fn samples_come_through_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let data = bytes(&(0..20_000_i16).collect::<Vec<_>>());
    let wav = riff(b"RIFF", u32::MAX, &[whole(b"fmt ", &format(1, 1, 16)), chunk(b"data", u32::MAX, &data)]);
    for (kind, more, content, expected, lost) in [
        ("iq.source.real", "format = \"ri16_le\"\nsample_rate = 8000", data.clone(), 20_000, 0),
        ("iq.source.real", "format = \"ri16_le\"\nsample_rate = 8000\ncount = 7", data.clone(), 7, 0),
        ("iq.source.real", "format = \"rf64_be\"\nsample_rate = 8000", data[..39_999].to_vec(), 4999, 7),
        ("wav.source", "", wav, 20_000, 0),
    ] {
        let seen = std::thread::scope(|scope| {
            scope.spawn(|| {
                use std::io::Write;
                let mut pipe = fs::OpenOptions::new().write(true).open(&path).unwrap();
                for piece in content.chunks(777) {
                    // The reader may have enough.
                    if pipe.write_all(piece).is_err() {
                        break;
                    }
                }
            });
            trial(kind, &path, more).run()
        });
        assert_eq!(seen.samples::<f32>("out").len(), expected, "{kind} {more}");
        assert_eq!(seen.losses().iter().map(|loss| loss.0).sum::<u64>(), lost, "{kind} {more}");
    }
    let text = trial("iq.source.real", &path, "format = \"ru8\"\nsample_rate = 1\nrepeat = 2").failure();
    assert!(text.contains("is a pipe, which can be played once"), "{text}");
}
