//! Operators on frames, compared with plain loops.
#![forbid(unsafe_code)]

use crate::slices::Dice;
use onbeat_operators::dsp::Vectors;
use onbeat_operators::image::{Blur, FromBytes, PerFrame, Reduce, Threshold, ToBytes};
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial};
use onbeat_runtime::{InPlace, Operator, Value};

/// A grey frame: rows, columns and samples.
type GreyFrame = ([u32; 3], Vec<u8>);

fn noise(rows: usize, columns: usize) -> GreyFrame {
    let mut dice = Dice::new((rows * 1000 + columns) as u64);
    let samples = (0..rows * columns).map(|_| (dice.bits() >> 24) as u8).collect();
    ([rows as u32, columns as u32, 0], samples)
}

/// What an operator sends for frames: their shapes and samples.
fn sent(operator: impl Operator, frames: &[GreyFrame]) -> Vec<GreyFrame> {
    let most = frames.iter().map(|(_, samples)| samples.len()).max().unwrap().max(64);
    let seen = Trial::new(operator).quantum(most).feed("in", Feed::frames(frames.to_vec())).run();
    let mut samples = seen.samples::<u8>("out").into_iter();
    let piece = |shape: [u32; 3]| {
        let count = shape.iter().filter(|&&length| length > 0).product::<u32>();
        (shape, samples.by_ref().take(count as usize).collect())
    };
    seen.pieces("out").iter().map(|piece| piece.shape).map(piece).collect()
}

/// The blur by its definition: 25 products around each sample, the nearest one outside of the frame.
fn blurred(&([rows, columns, _], ref samples): &GreyFrame) -> Vec<u8> {
    let weights = [1u32, 4, 6, 4, 1];
    let at = |y: i64, x: i64| {
        let (y, x) = (y.clamp(0, i64::from(rows) - 1), x.clamp(0, i64::from(columns) - 1));
        u32::from(samples[(y * i64::from(columns) + x) as usize])
    };
    let mut result = Vec::new();
    for (y, x) in (0..i64::from(rows)).flat_map(|y| (0..i64::from(columns)).map(move |x| (y, x))) {
        let mut sum = 0;
        for (down, across) in (0..5).flat_map(|down| (0..5).map(move |across| (down, across))) {
            sum += weights[down] * weights[across] * at(y + down as i64 - 2, x + across as i64 - 2);
        }
        // Halves up.
        result.push((f64::from(sum) / 256.0 + 0.5).floor() as u8);
    }
    result
}

#[test]
fn blur_of_any_size() {
    let mut frames: Vec<_> =
        (1..8).flat_map(|rows| (1..12).map(move |columns| noise(rows, columns))).collect();
    frames.extend([noise(3, 333), noise(67, 129), ([4, 5, 0], vec![255; 20]), ([2, 3, 1], vec![7; 6])]);
    Vectors::each(|vectors| {
        let got = sent(PerFrame::new(Blur::new()), &frames);
        assert_eq!(got.len(), frames.len());
        for (frame, got) in frames.iter().zip(&got) {
            assert_eq!(*got, (frame.0, blurred(frame)), "{vectors}, {:?}", frame.0);
        }
    });
}

#[test]
fn means_of_blocks() {
    for factor in [1, 2, 3, 4, 5, 6, 7, 8, 16, 23] {
        let sizes = [(1, 1), (2, 3), (5, 4), (7, 40), (64, 96), (23, 69)];
        let fits = |&(rows, columns): &(usize, usize)| rows.min(columns) >= factor;
        let mut frames: Vec<_> = sizes.into_iter().filter(fits).map(|(r, c)| noise(r, c)).collect();
        frames.push(([23, 24, 1], vec![255; 23 * 24]));
        Vectors::each(|vectors| {
            for frame @ ([rows, columns, planes], samples) in &frames {
                let reduce = Reduce::new(factor as u32).unwrap();
                let got = sent(PerFrame::new(reduce), std::slice::from_ref(frame));
                let (down, across) = (*rows as usize / factor, *columns as usize / factor);
                let block = |at: usize| {
                    let (y, x) = (at / across * factor, at % across * factor);
                    let lines = (y..y + factor).flat_map(|y| {
                        (x..x + factor).map(move |x| f64::from(samples[y * *columns as usize + x]))
                    });
                    (lines.sum::<f64>() / (factor * factor) as f64 + 0.5).floor() as u8
                };
                let expected: Vec<u8> = (0..down * across).map(block).collect();
                assert_eq!(got, [([down as u32, across as u32, *planes], expected)], "{vectors}, {factor}");
            }
        });
    }
}

#[test]
fn thresholds_and_their_changes() {
    let all: Vec<u8> = (0..=255).collect();
    for level in [0, 1, 127, 254, 255] {
        let got = sent(InPlace::new(Threshold::new(level).unwrap()), &[([16, 16, 0], all.clone())]);
        let expected = all.iter().map(|&x| if i64::from(x) > level { 255 } else { 0 }).collect();
        assert_eq!(got, [([16, 16, 0], expected)]);
    }
    let trial =
        |value: i64| {
            Trial::kind(&registry(), "image.threshold", "level = 9")
                .feed("in", Feed::samples(vec![5u8; 8]))
                .set("level", Value::Int(value), Some(6))
        };
    assert_eq!(trial(4).run().samples::<u8>("out"), [0, 0, 0, 0, 0, 0, 255, 255]);
    let text = trial(256).failure();
    assert!(text.contains("`level` is 256: it must be from 0 to 255"), "{text}");
    assert!(Threshold::new(-1).is_err());
}

#[test]
fn bytes_and_back() {
    let reals = [-1e9, -0.6, 0.5, 0.49999997, 1.5, 2.5, 254.4, 254.5, 255.6, f32::INFINITY, f32::NAN, 7.0];
    let frames = Feed::frames([([2, 6, 0], reals.to_vec())]).rate(12.0);
    let seen = Trial::new(PerFrame::new(ToBytes::new())).feed("in", frames).run();
    assert_eq!(seen.samples::<u8>("out"), [0, 0, 0, 0, 2, 2, 254, 254, 255, 255, 0, 7]);
    assert_eq!((seen.pieces("out")[0].shape, seen.rate_hz("out")), ([2, 6, 0], 12.0));

    let bytes = Feed::samples((0..=255).collect::<Vec<u8>>()).cut(&[16]);
    let seen = Trial::new(PerFrame::new(FromBytes::new())).feed("in", bytes).run();
    assert_eq!(seen.samples::<f32>("out"), (0..=255u8).map(f32::from).collect::<Vec<_>>());
}

#[test]
fn heads_follow_the_frames() {
    let frames = Feed::frames([noise(4, 6), noise(4, 6), noise(4, 6)]).rate(2400.0);
    let frames = frames.tag(7, "a", 1).tag(24, "b", 2).tag(37, "c", 3).tag(42, "d", 4);
    let seen = Trial::new(PerFrame::new(Reduce::new(2).unwrap())).feed("in", frames).run();
    let starts: Vec<u64> = seen.pieces("out").iter().map(|piece| piece.start).collect();
    assert_eq!((starts, seen.rate_hz("out")), (vec![0, 6, 12], 600.0));
    let tags: Vec<_> = seen.tags("out").iter().map(|mark| (mark.0, mark.1.clone())).collect();
    // Sample 37 is in row 2 of its frame, column 1, and sample 42 in row 3, column 0.
    let expected = [(0, "a"), (6, "b"), (9, "c"), (9, "d")].map(|(at, key)| (at, key.to_string()));
    assert_eq!(tags, expected);
}

#[test]
fn errors_name_the_fix() {
    let registry = registry();
    let failure = |kind: &str, parameters: &str, feed: Feed, quantum: usize| {
        Trial::kind(&registry, kind, parameters).quantum(quantum).feed("in", feed).failure()
    };
    let text = failure("image.blur", "", Feed::samples(vec![0u8; 99]), 1024);
    assert!(text.contains("chunks without a shape") && text.contains("npy.source"), "{text}");
    let text = failure("image.blur", "", Feed::frames([([2, 2, 3], vec![0u8; 12])]), 1024);
    assert!(text.contains("frames of shape 2 × 2 × 3: it needs grey frames"), "{text}");
    let text = failure("image.reduce", "factor = 4", Feed::frames([noise(3, 40)]), 1024);
    assert!(text.contains("`factor` is 4: it must be at most 3"), "{text}");
    let text = failure("image.real", "", Feed::frames([noise(8, 40)]), 320);
    assert!(text.contains("a result has 320 samples") && text.contains("`quantum = 1280`"), "{text}");
}
