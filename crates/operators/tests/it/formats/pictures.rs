//! Pictures of frames and rows.

use super::write;
use crate::harness::files;
use onbeat_operators::{ColourMap, PngSink};
use onbeat_runtime::testing::{Feed, Trial};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

/// A sink that receives these chunks, with their shapes.
fn drawn(frames: impl IntoIterator<Item = ([u32; 3], Vec<f32>)>, sink: PngSink) -> Trial {
    Trial::new(sink).feed("in", Feed::frames(frames))
}

/// Width, height and pixels.
pub fn read(path: &Path) -> (u32, u32, Vec<u8>) {
    let mut png = png::Decoder::new(BufReader::new(File::open(path).unwrap())).read_info().unwrap();
    let mut pixels = vec![0; png.output_buffer_size().unwrap()];
    let info = png.next_frame(&mut pixels).unwrap();
    (info.width, info.height, pixels)
}

#[test]
fn frames_are_numbered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/frame-{n}.png");
    let all = [
        ([2, 3, 0], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ([1, 2, 0], vec![-7.0, 7.0]),
        ([1, 1, 3], vec![0.0, 5.0, 10.0]),
        ([1, 3, 0], vec![f32::NAN, 1.0, 1.0]),
    ];
    let seen = drawn(all, PngSink::new(&path)).run();
    let folder = path.parent().unwrap();
    assert_eq!(files(folder), [0, 1, 2, 3].map(|n| format!("frame-{n:06}.png")));
    assert_eq!(read(&folder.join("frame-000000.png")), (3, 2, vec![0, 51, 102, 153, 204, 255]));
    assert_eq!(read(&folder.join("frame-000001.png")), (2, 1, vec![0, 255]));
    assert_eq!(read(&folder.join("frame-000002.png")), (1, 1, vec![0, 128, 255]));
    assert_eq!(read(&folder.join("frame-000003.png")), (3, 1, vec![0, 0, 0]));
    assert_eq!(seen.notes(), ["1 samples were not finite and were drawn in the lowest colour"]);
}

#[test]
fn without_a_number_it_is_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last.png");
    let sink = PngSink::new(&path).scale(Some(0.0), Some(51.0)).unwrap().map(ColourMap::Heat);
    drawn([([1, 2, 0], vec![9.0, 9.0]), ([2, 2, 0], vec![-5.0, 0.0, 51.0, 99.0])], sink).run();
    assert_eq!(files(folder.path()), ["last.png"]);
    assert_eq!(read(&path), (2, 2, [[0, 0, 0], [0, 0, 0], [255, 255, 224], [255, 255, 224]].concat()));
}

#[test]
fn rows_scroll_or_turn_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<f32> = (0..19).map(|n| n as f32).collect();
    // Rows of 4; the fifth has 3.
    let sink = |name: &str| {
        let sink = PngSink::new(folder.path().join(name)).scale(Some(0.0), Some(255.0)).unwrap();
        sink.rows(3).unwrap()
    };
    write(samples.clone(), &[4], 0.0, sink("last.png"));
    write(samples.clone(), &[4], 0.0, sink("page-{n}.png"));
    assert_eq!(files(folder.path()), ["last.png", "page-000000.png", "page-000001.png"]);
    let pixels = |range: std::ops::Range<u8>| range.collect::<Vec<u8>>();
    let with_gap = |range| [pixels(range), vec![0]].concat();
    assert_eq!(read(&folder.path().join("last.png")), (4, 3, with_gap(8..19)));
    assert_eq!(read(&folder.path().join("page-000000.png")), (4, 3, pixels(0..12)));
    assert_eq!(read(&folder.path().join("page-000001.png")), (4, 2, with_gap(12..19)));
}

#[test]
fn what_makes_no_picture_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("{n}.png");
    let row = |shape, samples| (shape, vec![0.0; samples]);
    for (chunks, left, expected) in [
        (vec![row([2, 2, 2], 8)], 0, "a chunk of shape 2 × 2 × 2 cannot be added to the image"),
        (vec![row([2, 2, 0], 4), row([4, 0, 0], 4)], 1, "a chunk of shape 4 cannot be added to the image"),
        (vec![row([0; 3], 4), row([0; 3], 5)], 1, "a row of 5 samples arrived, but the first one had 4"),
        (vec![row([2, 2, 0], 3)], 1, "a chunk of shape 2 × 2 has 3 samples"),
    ] {
        let text = drawn(chunks, PngSink::new(&path)).failure();
        assert!(text.contains(expected), "{text}");
        // Completed pictures stay.
        assert_eq!(files(folder.path()).len(), left, "{expected}");
    }
    fs::remove_file(folder.path().join("000000.png")).unwrap();
    let seen = drawn([], PngSink::new(&path)).run();
    assert!(seen.notes()[0].contains("no input arrived"), "{:?}", seen.notes());
    assert!(files(folder.path()).is_empty());
    let text = drawn([], PngSink::new(folder.path().join("{n}/a.png"))).failure();
    assert!(text.contains("is in the name of a folder"), "{text}");
    assert!(PngSink::new("a").scale(Some(1.0), Some(1.0)).is_err());
    assert!(PngSink::new("a").rows(0).is_err());
}
