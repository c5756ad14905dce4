//! Filters of frames, in grey and in colour.

use super::{difference, filtered, reference, samples};
use onbeat_operators::dsp::Vectors;
use onbeat_operators::image::{ColourMatrix, ColourRange, ColourSpace, Convolve, Recolour};
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial};

#[test]
fn colours_are_those_of_pillow() {
    Vectors::each(|vectors| {
        for (parameters, expected, shape, most) in [
            ("to = \"grey\"", "GREY", [6, 8, 0], 1),
            ("to = \"ycbcr\"", "YCBCR", [6, 8, 3], 1),
            ("to = \"rgb\"\nfrom = \"ycbcr\"", "BACK", [6, 8, 3], 1),
        ] {
            let seen = filtered("image.convert", parameters, vec![([6, 8, 3], samples(144)); 2]);
            let got = seen.samples::<u8>("out");
            let frame = reference(expected);
            assert_eq!(seen.pieces("out")[1].shape, shape);
            assert!(difference(&got, &[&frame[..], &frame].concat()) <= most, "{vectors}, {expected}");
        }
    });
}

/// All colours of a grid go to YCbCr and back, and grey has no colour.
#[test]
fn colours_come_back() {
    let steps = [0u8, 1, 37, 64, 127, 128, 200, 254, 255];
    let colour = |at: usize| [steps[at / 81], steps[at / 9 % 9], steps[at % 9]];
    let rgb: Vec<u8> = (0..729).flat_map(colour).collect();
    for matrix in ["bt601", "bt709"] {
        for (range, most) in [("full", 2), ("limited", 3)] {
            let with = |to: &str, from: &str| {
                format!("to = \"{to}\"\nfrom = \"{from}\"\nmatrix = \"{matrix}\"\nrange = \"{range}\"")
            };
            let there = filtered("image.convert", &with("ycbcr", "rgb"), vec![([27, 27, 3], rgb.clone())]);
            let ycbcr = there.samples::<u8>("out");
            let (low, high) = if range == "full" { (0, 255) } else { (16, 240) };
            assert!(ycbcr.iter().all(|x| (low..=high).contains(x)));
            let back = filtered("image.convert", &with("rgb", "ycbcr"), vec![([27, 27, 3], ycbcr.clone())]);
            assert!(difference(&back.samples::<u8>("out"), &rgb) <= most, "{matrix}, {range}");
            let grey = filtered("image.convert", &with("grey", "ycbcr"), vec![([27, 27, 3], ycbcr)]);
            let direct = filtered("image.convert", &with("grey", "rgb"), vec![([27, 27, 3], rgb.clone())]);
            let same = difference(&grey.samples::<u8>("out"), &direct.samples::<u8>("out"));
            assert!(same <= 1, "{matrix}, {range}: {same}");
            let levels: Vec<u8> = (0..=255).collect();
            let colour = filtered("image.convert", &with("rgb", "rgb"), vec![([16, 16, 0], levels.clone())]);
            let grey: Vec<u8> = levels.iter().flat_map(|&x| [x; 3]).collect();
            assert_eq!(colour.samples::<u8>("out"), grey);
            let ycbcr = filtered("image.convert", &with("ycbcr", "rgb"), vec![([16, 16, 0], levels)]);
            assert!(ycbcr.samples::<u8>("out").chunks(3).all(|pixel| pixel[1..] == [128, 128]));
        }
    }
    let (matrix, range) = (ColourMatrix::Bt601, ColourRange::Full);
    assert!(Recolour::new(ColourSpace::Grey, ColourSpace::Rgb, matrix, range).is_err());
}

#[test]
fn sizes_are_those_of_pillow() {
    for filter in ["nearest", "area", "bilinear", "bicubic", "lanczos"] {
        for (rows, columns, shape, name) in [(5, 4, [11, 13, 3], "SMALL"), (7, 9, [5, 4, 0], "LARGE")] {
            let parameters = format!("rows = {rows}\ncolumns = {columns}\nfilter = \"{filter}\"");
            let count = shape.iter().map(|&length: &u32| length.max(1)).product::<u32>();
            let frames = vec![(shape, samples(count as usize)); 2];
            let seen = filtered("image.resize", &parameters, frames);
            let frame = reference(&format!("{}_{name}", filter.to_uppercase()));
            let off = difference(&seen.samples::<u8>("out"), &[&frame[..], &frame].concat());
            assert_eq!(seen.pieces("out")[0].shape, [rows, columns, shape[2]]);
            assert!(off <= 1, "{filter}, {name}: {off}");
        }
    }
}

#[test]
fn sums_are_those_of_scipy() {
    let parameters =
        "weights = [[1, -2, 0.5, 3, 0], [0, 4, -1, 2, 2], [-3, 1, 0, 1, -1.5]]\ndivide = 7\noffset = 20";
    Vectors::each(|vectors| {
        let grey = filtered("image.convolve", parameters, vec![([7, 9, 0], samples(63))]);
        assert_eq!(grey.samples::<u8>("out"), reference("CORRELATED"), "{vectors}");
        let rgb = filtered("image.convolve", parameters, vec![([6, 8, 3], samples(144))]);
        assert_eq!(rgb.samples::<u8>("out"), reference("CORRELATED_RGB"), "{vectors}");
    });
}

/// With its weights, the sums are those of the blur, also for frames smaller than the weights.
#[test]
fn a_blur_by_weights_is_the_blur() {
    let line = [1, 4, 6, 4, 1];
    let rows: Vec<String> = line.iter().map(|by| format!("{:?}", line.map(|x| x * by))).collect();
    let parameters = format!("weights = [{}]", rows.join(", "));
    for (rows, columns) in [(1, 1), (1, 7), (3, 2), (9, 1), (20, 33)] {
        let frame = vec![([rows, columns, 0], samples((rows * columns) as usize))];
        let ours = filtered("image.convolve", &parameters, frame.clone());
        let blur = filtered("image.blur", "", frame);
        assert_eq!(ours.samples::<u8>("out"), blur.samples::<u8>("out"), "{rows} × {columns}");
    }
}

#[test]
fn a_part_of_a_frame_and_its_tags() {
    let parameters = "top = 1\nleft = 2\nrows = 2\ncolumns = 3";
    let all = samples(4 * 6 * 3);
    // Row 2, column 3, green; and the last sample, which is outside.
    let (inside, outside) = ((2 * 6 + 3) * 3 + 1, 4 * 6 * 3 - 1);
    let feed = Feed::frames([([4, 6, 3], all.clone())]).rate(7200.0).tag(inside, "a", 1).tag(outside, "b", 2);
    let seen = Trial::kind(&registry(), "image.crop", parameters).feed("in", feed).run();
    let expected: Vec<u8> = [1, 2].iter().flat_map(|row| &all[(row * 6 + 2) * 3..][..9]).copied().collect();
    assert_eq!(seen.samples::<u8>("out"), expected);
    assert_eq!((seen.pieces("out")[0].shape, seen.rate_hz("out")), ([2, 3, 3], 1800.0));
    let tags: Vec<_> = seen.tags("out").iter().map(|mark| (mark.0, mark.1.clone())).collect();
    assert_eq!(tags, [((3 + 1) * 3 + 1, "a".to_string()), (17, "b".to_string())]);
}

#[test]
fn wrong_settings_and_frames() {
    let registry = registry();
    let failure = |kind: &str, parameters: &str, shape: [u32; 3]| {
        let count = shape.iter().map(|&length| length.max(1)).product::<u32>() as usize;
        let feed = Feed::frames([(shape, samples(count))]);
        Trial::kind(&registry, kind, parameters).feed("in", feed).failure()
    };
    let text = failure("image.crop", "top = 3\nrows = 2\ncolumns = 2", [4, 6, 0]);
    assert!(text.contains("`top` is 3 and `rows` is 2: together they must be at most 4"), "{text}");
    let text = failure("image.resize", "rows = 2\ncolumns = 2", [4, 6, 4]);
    assert!(text.contains("frames of shape 4 × 6 × 4") && text.contains("three channels"), "{text}");
    let text = failure("image.convert", "to = \"grey\"", [6, 0, 0]);
    assert!(text.contains("frames of shape 6"), "{text}");
    for (weights, expected) in [
        (vec![], "0 rows: it must be an odd number from 1 to 15"),
        (vec![vec![1.0; 4]], "4 columns"),
        (vec![vec![1.0; 17]], "17 columns"),
        (vec![vec![1.0; 3], vec![1.0; 3], vec![1.0; 1]], "3 numbers in its first row and 1 in row 3"),
        (vec![vec![f64::NAN]], "`weights` is NaN"),
    ] {
        let text = Convolve::new(&weights, None, 0.0).err().unwrap().to_string();
        assert!(text.contains(expected), "{text}");
    }
    assert!(Convolve::new(&[vec![1.0]], Some(0.0), 0.0).is_err());
}
