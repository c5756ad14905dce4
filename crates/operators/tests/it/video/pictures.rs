//! PNG pictures as frames, and frames as pictures.

use super::{difference, filtered, numbers, reference, samples};
use crate::harness::files;
use onbeat_operators::{PictureFormat, PngFrameSink, PngSource, registry};
use onbeat_runtime::Pace;
use onbeat_runtime::testing::{Feed, Seen, Trial};
use std::fs;
use std::path::Path;

fn play(path: &Path) -> Seen {
    Trial::new(PngSource::new(path).unwrap()).quantum(1024).run()
}

/// Some channels of the small picture of 3 × 4 pixels.
fn channels(wanted: std::ops::Range<usize>) -> Vec<u8> {
    samples(48).chunks(4).flat_map(|pixel| pixel[wanted.clone()].to_vec()).collect()
}

fn reduced(wide: &[u32]) -> Vec<u8> {
    wide.iter().map(|&x| (f64::from(x) / 257.0).round() as u8).collect()
}

#[test]
fn pictures_of_all_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    for (name, shape, expected) in [
        ("PNG_L", [3, 4, 0], channels(0..1)),
        ("PNG_LA", [3, 4, 0], channels(0..1)),
        ("PNG_RGB", [3, 4, 3], channels(0..3)),
        ("PNG_RGBA", [3, 4, 3], channels(0..3)),
        ("PNG_P", [3, 4, 3], reference("PNG_P_PIXELS")),
        ("PNG_1", [3, 4, 0], reference("PNG_1_PIXELS")),
        ("PNG_16", [3, 4, 0], reduced(&numbers("WIDE"))),
        ("PNG_RGB48", [3, 4, 3], reduced(&numbers("WIDE3"))),
    ] {
        fs::write(&path, reference(name)).unwrap();
        let seen = play(&path);
        assert_eq!((seen.samples::<u8>("out"), seen.pieces("out")[0].shape), (expected, shape), "{name}");
    }
    fs::write(&path, reference("PNG_RGB")).unwrap();
    let grey = Trial::new(PngSource::new(&path).unwrap().format(Some(PictureFormat::Grey))).run();
    let converted = filtered("image.convert", "to = \"grey\"", vec![([3, 4, 3], channels(0..3))]);
    assert_eq!(grey.samples::<u8>("out"), converted.samples::<u8>("out"));
    fs::write(&path, reference("PNG_LA")).unwrap();
    let rgb = Trial::new(PngSource::new(&path).unwrap().format(Some(PictureFormat::Rgb))).run();
    assert_eq!(rgb.samples::<u8>("out"), channels(0..1).iter().flat_map(|&x| [x; 3]).collect::<Vec<_>>());
}

#[test]
fn numbered_frames_come_back() {
    let folder = tempfile::tempdir().unwrap();
    for (name, first, last) in
        [("b/%03d.png", "000.png", "011.png"), ("c/f{n}.png", "f000000.png", "f000011.png")]
    {
        let path = folder.path().join(name);
        let frames: Vec<_> = (0..12usize).map(|n| ([5, 7, 3], samples(105 + n)[n..].to_vec())).collect();
        let all: Vec<u8> = frames.iter().flat_map(|(_, samples)| samples.clone()).collect();
        Trial::new(PngFrameSink::new(&path).unwrap()).feed("in", Feed::frames(frames)).run();
        let written = files(path.parent().unwrap());
        assert_eq!((written.len(), &written[0][..], &written[11][..]), (12, first, last));
        for path in [&path, path.parent().unwrap()] {
            let source = PngSource::new(path).unwrap().repeat(2).frame_rate(10.0, Pace::Real).unwrap();
            let seen = Trial::new(source).run();
            assert_eq!(difference(&seen.samples::<u8>("out"), &[&all[..], &all].concat()), 0);
            assert_eq!(seen.record().result.duration_ns, 2_400_000_000);
            assert_eq!((seen.rate_hz("out"), seen.pieces("out")[23].start), (1050.0, 23 * 105));
        }
        fs::remove_file(path.parent().unwrap().join(&written[4])).unwrap();
        let seen = play(&path);
        assert_eq!(seen.pieces("out").len(), 11);
        assert!(seen.notes()[0].contains("1 numbers between the first and the last one are missing"));
    }
}

#[test]
fn without_a_number_it_is_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last.png");
    let frames = [([2, 2, 0], vec![1u8, 2, 3, 4]), ([1, 2, 1], vec![9, 8])];
    Trial::new(PngFrameSink::new(&path).unwrap()).feed("in", Feed::frames(frames)).run();
    assert_eq!(files(folder.path()), ["last.png"]);
    assert_eq!(play(&path).samples::<u8>("out"), [9, 8]);
}

#[test]
fn pictures_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let failure = |name: &str| Trial::new(PngSource::new(at(name)).unwrap()).failure();
    assert!(failure("%02d.png").contains("No such file"));
    assert!(failure("").contains("it is a folder without PNG files"));
    fs::write(at("1.png"), reference("PNG_L")).unwrap();
    fs::write(at("2.png"), reference("PNG_RGB")).unwrap();
    let text = failure("%d.png");
    assert!(text.contains("2.png: it has colours, and") && text.contains("give `format`"), "{text}");
    Trial::new(PngFrameSink::new(at("2.png")).unwrap())
        .feed("in", Feed::frames([([3, 3, 0], samples(9))]))
        .run();
    let text = failure("%d.png");
    assert!(text.contains("2.png: it has 3 × 3 pixels") && text.contains("one size"), "{text}");
    let whole = reference("PNG_RGB");
    for (bytes, expected) in [
        (vec![], "it is not a PNG file"),
        (b"GIF89a, and so on".to_vec(), "it is not a PNG file"),
        (whole[..whole.len() - 30].to_vec(), "it is damaged and cannot be decoded"),
    ] {
        fs::write(at("1.png"), bytes).unwrap();
        let text = failure("1.png");
        assert!(text.contains("1.png") && text.contains(expected), "{text}");
    }
    // Each byte of a picture in turn is another one: there is an error or a frame, and no panic.
    for place in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x81;
        fs::write(at("1.png"), bytes).unwrap();
        if let Err(text) = Trial::new(PngSource::new(at("1.png")).unwrap()).try_run() {
            assert!(!text.contains("panic"), "{place}: {text}");
        }
    }
    let sink = |shape, count: usize| {
        let sink = PngFrameSink::new(at("x-{n}.png")).unwrap();
        Trial::new(sink).feed("in", Feed::frames([(shape, samples(count))])).failure()
    };
    assert!(sink([0; 3], 4).contains("a chunk has no shape"));
    assert!(sink([2, 2, 4], 16).contains("a frame of shape 2 × 2 × 4 is not a picture"));
    assert!(sink([2, 2, 0], 3).contains("has 3 samples, which does not match its shape"));
    assert!(files(folder.path()).iter().all(|name| !name.starts_with('x')));
    assert!(registry().operator("png.sink.bytes", "path = \"{n}/a.png\"").is_err());
}
