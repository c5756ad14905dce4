//! Y4M files.

use super::{difference, reference, samples};
use crate::harness::files;
use onbeat_operators::image::{ColourMatrix, ColourRange};
use onbeat_operators::{Chroma, VideoFormat, Y4mSink, Y4mSource, registry};
use onbeat_runtime::Pace;
use onbeat_runtime::testing::{Feed, Seen, Trial};
use std::fs;
use std::path::Path;

/// A file with frames of 8 × 6 pixels.
pub fn film(tags: &str, frames: &[&[u8]]) -> Vec<u8> {
    let mut file = format!("YUV4MPEG2 W8 H6 {tags}\n").into_bytes();
    for frame in frames {
        file.extend_from_slice(b"FRAME\n");
        file.extend_from_slice(frame);
    }
    file
}

fn play(source: Y4mSource) -> Seen {
    Trial::new(source.pace(Pace::Fast)).quantum(4096).capacity(2).run()
}

#[test]
fn colours_are_those_of_ffmpeg() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.y4m");
    for (chroma, count) in [("444", 144), ("420jpeg", 72), ("422", 96)] {
        fs::write(&path, film(&format!("F25:1 C{chroma}"), &[&samples(count)])).unwrap();
        for (matrix, name) in [(ColourMatrix::Bt601, "bt601"), (ColourMatrix::Bt709, "bt709")] {
            for (range, short) in [(ColourRange::Limited, "tv"), (ColourRange::Full, "pc")] {
                let source = Y4mSource::new(&path, VideoFormat::Rgb).colours(matrix, Some(range));
                let (seen, expected) = (play(source), reference(&format!("RGB_{chroma}_{name}_{short}")));
                let got = seen.samples::<u8>("out");
                assert_eq!(seen.pieces("out")[0].shape, [6, 8, 3]);
                // For one colour far outside of RGB, ffmpeg turns 0 into 255.
                let far = got.iter().zip(&expected).filter(|(a, b)| a.abs_diff(**b) > 1);
                let wrapped = far.clone().filter(|&pair| pair == (&0, &255) || pair == (&255, &0)).count();
                assert_eq!((far.count(), wrapped <= 1), (wrapped, true), "{chroma}, {name}, {short}");
            }
        }
        let grey = play(Y4mSource::new(&path, VideoFormat::Grey));
        assert_eq!(grey.samples::<u8>("out"), samples(48));
        assert_eq!((grey.pieces("out")[0].shape, grey.rate_hz("out")), ([6, 8, 0], 48.0 * 25.0));
    }
}

#[test]
fn planes_are_those_of_ffmpeg() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b.y4m");
    for (chroma, name, tag) in [(Chroma::Full, "444", "444"), (Chroma::Quarter, "420", "420jpeg")] {
        for (matrix, space) in [(ColourMatrix::Bt601, "bt601"), (ColourMatrix::Bt709, "bt709")] {
            let sink = Y4mSink::new(&path).colours(chroma, matrix, ColourRange::Limited);
            let frames = Feed::frames(vec![([6, 8, 3], samples(144)); 2]).rate(144.0 * 30000.0 / 1001.0);
            Trial::new(sink).feed("in", frames).run();
            let written = fs::read(&path).unwrap();
            let header = format!("YUV4MPEG2 W8 H6 F30000:1001 Ip A1:1 C{tag} XCOLORRANGE=LIMITED\n");
            let expected = reference(&format!("YUV_{name}_{space}"));
            let frames = written.strip_prefix(header.as_bytes()).unwrap();
            assert_eq!(frames.len(), 2 * (6 + expected.len()));
            for frame in frames.chunks(6 + expected.len()) {
                assert!(frame.starts_with(b"FRAME\n"));
                assert!(difference(&frame[6..], &expected) <= 1, "{name}, {space}");
            }
        }
    }
    assert_eq!(files(path.parent().unwrap()), ["b.y4m"]);
}

/// Grey frames come back as they were, and RGB frames nearly, also of odd sizes.
#[test]
fn frames_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.y4m");
    for (rows, columns, channels) in [(1u32, 1u32, 0u32), (5, 7, 0), (5, 7, 3), (1, 9, 3)] {
        let count = (rows * columns * channels.max(1)) as usize;
        let frames: Vec<_> = (0..5u8).map(|n| ([rows, columns, channels], vec![n * 50 + 3; count])).collect();
        for chroma in [Chroma::Full, Chroma::Quarter] {
            let sink = Y4mSink::new(&path).colours(chroma, ColourMatrix::Bt709, ColourRange::Full);
            Trial::new(sink.frame_rate(12.5).unwrap()).feed("in", Feed::frames(frames.clone())).run();
            let format = if channels == 3 { VideoFormat::Rgb } else { VideoFormat::Grey };
            // The range is in the header.
            let source = Y4mSource::new(&path, format).colours(ColourMatrix::Bt709, None).repeat(2);
            let seen = play(source);
            let got = seen.samples::<u8>("out");
            let once: Vec<u8> = frames.iter().flat_map(|(_, samples)| samples.clone()).collect();
            assert!(difference(&got, &[&once[..], &once].concat()) <= if channels == 3 { 1 } else { 0 });
            assert_eq!(seen.rate_hz("out"), 12.5 * count as f64);
            let starts: Vec<u64> = seen.pieces("out").iter().map(|piece| piece.start).collect();
            assert_eq!(starts, (0..10).map(|n| n * count as u64).collect::<Vec<_>>());
        }
    }
}

#[test]
fn frames_keep_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.y4m");
    fs::write(&path, film("F50:1 Cmono", &[&samples(48)[..]; 25])).unwrap();
    let seen = Trial::new(Y4mSource::new(&path, VideoFormat::Grey).repeat(4)).run();
    assert_eq!(seen.record().result.duration_ns, 2_000_000_000);
    let seen = Trial::new(Y4mSource::new(&path, VideoFormat::Rgb).frame_rate(5.0).unwrap()).run();
    assert_eq!(seen.record().result.duration_ns, 5_000_000_000);
    // Mono in limited range: 16 is black and 235 is white.
    let limited = seen.samples::<u8>("out");
    let full = |y: u8| ((f64::from(y) - 16.0) * 255.0 / 219.0 + 0.5).floor().clamp(0.0, 255.0) as u8;
    let expected: Vec<u8> = samples(48).iter().flat_map(|&y| [full(y); 3]).collect();
    assert_eq!(limited[..144], expected);
}

/// Runs a source on a file of these bytes.
fn answer(path: &Path, bytes: &[u8]) -> Result<Seen, String> {
    fs::write(path, bytes).unwrap();
    Trial::new(Y4mSource::new(path, VideoFormat::Grey).pace(Pace::Fast)).quantum(1 << 16).try_run()
}

#[test]
fn damaged_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.y4m");
    let frame = samples(48);
    let good = film("F25:1 Cmono", &[&frame, &frame]);
    for (bytes, expected) in [
        (vec![], "it is empty or was cut off"),
        (b"YUV4MPEG2 W8 H6 Cmono".to_vec(), "it is empty or was cut off"),
        (b"YUV4MPEG2 W8 H6 Cmono\n".to_vec(), "there is no whole frame: one has 48 bytes"),
        (film("C420p10", &[&frame]), "with more than 8 bits"),
        ([&good[..], b"GRAME\n", &frame[..]].concat(), "frame 3 does not begin with `FRAME`"),
        ([&good[..], b"FRAMES\n", &frame[..]].concat(), "frame 3 does not begin with `FRAME`"),
        ([&good[..], b"FRAME ", &[b'x'; 5000]].concat(), "the header of a frame is longer than 4096 bytes"),
        (vec![b'x'; 9000], "the header of a stream is longer than 4096"),
        (b"YUV4MPEG2 W65535 H65535 C444\nFRAME\n".to_vec(), "there is no whole frame"),
    ] {
        let text = answer(&path, &bytes).err().unwrap();
        assert!(text.contains(expected) && text.contains("a.y4m"), "{text}");
    }
    // Frames with parameters, and a file that was cut off within a frame.
    let odd = [&film("It Cmono", &[&frame]), &b"FRAME Ixyz\n"[..], &frame, b"FRAME\n", &frame[..40]].concat();
    let seen = answer(&path, &odd).unwrap();
    assert_eq!(seen.samples::<u8>("out"), [&frame[..], &frame].concat());
    let notes = seen.notes().join("\n");
    assert!(notes.contains("interlaced") && notes.contains("46 bytes of its last frame"), "{notes}");
}

#[test]
fn what_is_no_video_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.y4m");
    let frame = |shape, count: usize| (shape, samples(count));
    for (frames, rate_hz, expected) in [
        (vec![frame([0; 3], 5)], 1.0, "chunks whose shape is none"),
        (vec![frame([2, 3, 2], 12)], 1.0, "whose shape is 2 × 3 × 2"),
        (vec![frame([2, 3, 0], 6)], 0.0, "the frame rate of its input is 0: give `frame_rate`"),
        (vec![frame([2, 3, 0], 6), frame([3, 2, 0], 6)], 1.0, "changed from 2 × 3 to 3 × 2"),
        (vec![frame([2, 3, 0], 5)], 1.0, "has 5 samples instead of 6"),
    ] {
        let text = Trial::new(Y4mSink::new(&path)).feed("in", Feed::frames(frames).rate(rate_hz)).failure();
        assert!(text.contains(expected), "{text}");
        assert!(!path.exists());
    }
    let _ = fs::remove_file(folder.path().join("a.y4m.part"));
    let seen = Trial::new(Y4mSink::new(&path)).feed("in", Feed::samples(Vec::<u8>::new())).run();
    assert!(seen.notes()[0].contains("no input arrived"), "{:?}", seen.notes());
    assert!(files(folder.path()).is_empty());
    for parameters in
        ["path = \"a\"\nrows = 3", "path = \"a\"\nrows = 0\ncolumns = 1", "path = \"a\"\nframe_rate = 0"]
    {
        assert!(registry().operator("y4m.source", parameters).is_err(), "{parameters}");
    }
}
