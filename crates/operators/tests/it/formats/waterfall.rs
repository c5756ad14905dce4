//! Spectra as a picture with axes: positions of all parts.

use super::pictures::read;
use crate::harness::files;
use onbeat_operators::Waterfall;
use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Trial};
use std::path::Path;

/// Margins of the drawing: left, top, right, bottom; see the picture in the book.
const LEFT: usize = 84;
const ABOVE: usize = 28;
const RIGHT: usize = 120;
const BELOW: usize = 30;

const BLACK: [u8; 3] = [0; 3];
const WHITE: [u8; 3] = [255; 3];
/// The highest power.
const TOP: [u8; 3] = [255, 255, 224];

struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    fn of(path: &Path) -> Self {
        let (width, height, pixels) = read(path);
        let pixels = pixels.chunks(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        Picture { width: width as usize, height: height as usize, pixels }
    }

    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        self.pixels[y * self.width + x]
    }

    /// Number of black pixels in an area.
    fn ink(&self, x: std::ops::Range<usize>, y: std::ops::Range<usize>) -> Vec<(usize, usize)> {
        let all = y.flat_map(|y| x.clone().map(move |x| (x, y)));
        all.filter(|&(x, y)| self.at(x, y) == BLACK).collect()
    }
}

/// Rows of spectra: 5 per second, of a band of 8 columns.
fn rows(rows: &[[f32; 8]]) -> Feed {
    let feed = Feed::samples(rows.concat()).cut(&[8]).rate(40.0);
    feed.tag(0, "axis:first_hz", -4e3).tag(0, "axis:step_hz", 1e3)
}

fn draw(name: &Path, sink: Waterfall, feed: Feed) -> Picture {
    let seen = Trial::new(sink).feed("in", feed).run();
    assert!(seen.notes().is_empty(), "{:?}", seen.notes());
    Picture::of(name)
}

#[test]
fn rows_and_columns_are_where_they_belong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/w.png");
    let mut data = [[-50.0; 8]; 4];
    (data[1][3], data[3][7]) = (-10.0, -10.0);
    let sink = Waterfall::new(&path, 100).unwrap().scale(Some(-50.0), Some(-10.0)).unwrap();
    let picture = draw(&path, sink, rows(&data));
    assert_eq!(files(path.parent().unwrap()), ["w.png"]);
    // Small plots are drawn larger: 64 pixels for each of 8 columns and of 4 rows.
    assert_eq!((picture.width, picture.height), (LEFT + 512 + RIGHT, ABOVE + 256 + BELOW));
    for row in 0..4 {
        for column in 0..8 {
            let middle = picture.at(LEFT + column * 64 + 32, ABOVE + row * 64 + 32);
            let expected = if (row, column) == (1, 3) || (row, column) == (3, 7) { TOP } else { BLACK };
            assert_eq!(middle, expected, "row {row}, column {column}");
        }
    }
    // The middle of column 4 is at 0 Hz and has its tick; half a column next to it there is none.
    let below = ABOVE + 256 + 2;
    assert_eq!((picture.at(LEFT + 4 * 64 + 32, below), picture.at(LEFT + 5 * 64, below)), (BLACK, WHITE));
    // 0 s and 0.4 s are at the start of rows 0 and 2.
    assert_eq!((picture.at(LEFT - 4, ABOVE), picture.at(LEFT - 4, ABOVE + 128)), (BLACK, BLACK));
    assert_eq!(picture.at(LEFT - 4, ABOVE + 60), WHITE);
    // The scale is white at the top and black at the bottom.
    let scale = LEFT + 512 + 24 + 8;
    assert_eq!((picture.at(scale, ABOVE), picture.at(scale, ABOVE + 255)), (TOP, BLACK));
}

#[test]
fn the_last_rows_are_drawn_at_their_time() {
    let folder = tempfile::tempdir().unwrap();
    let draw = |name: &str, count: usize, centre_hz: f64| {
        let path = folder.path().join(name);
        let data: Vec<[f32; 8]> = (0..count).map(|n| [if n == count - 2 { 0.0 } else { -90.0 }; 8]).collect();
        let sink = Waterfall::new(&path, 4).unwrap().centre(centre_hz).unwrap();
        draw(&path, sink, rows(&data))
    };
    let (short, long) = (draw("short.png", 4, 0.0), draw("long.png", 11, 0.0));
    for picture in [&short, &long] {
        let colours = [0, 1, 2, 3].map(|row| picture.at(LEFT + 100, ABOVE + row * 64 + 32));
        assert_eq!(colours, [BLACK, BLACK, TOP, BLACK]);
    }
    // From 0 s, and from 1.4 s.
    let times = |picture: &Picture| picture.ink(0..LEFT - 8, ABOVE.saturating_sub(8)..ABOVE + 256);
    assert!(!times(&short).is_empty() && times(&short) != times(&long));
    // Frequencies are relative to the centre of the band, or have its frequency added.
    let named = draw("named.png", 4, 100e6);
    let frequencies = |picture: &Picture| picture.ink(LEFT..LEFT + 560, ABOVE + 264..ABOVE + 256 + BELOW);
    assert!(!frequencies(&short).is_empty() && frequencies(&short) != frequencies(&named));
}

#[test]
fn what_is_not_known_is_not_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.png");
    // Without rate, frequencies and signal, a picture is still drawn.
    let feed = Feed::samples(vec![-200.0f32; 600]).cut(&[300]);
    let picture = draw(&path, Waterfall::new(&path, 9).unwrap(), feed);
    assert_eq!((picture.width, picture.height), (LEFT + 600 + RIGHT, ABOVE + 256 + BELOW));
    assert!(picture.ink(0..LEFT - 8, 0..20).is_empty(), "seconds, without a rate");
    let unit = LEFT + 600 + 20;
    assert!(
        picture.ink(unit..unit + 60, ABOVE + 256 + 6..ABOVE + 256 + BELOW).is_empty(),
        "hertz, without a rate"
    );
}

#[test]
fn what_cannot_be_drawn_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.png");
    let sink = || Waterfall::new(&path, 9).unwrap();
    let text = Trial::new(sink()).feed("in", Feed::samples(vec![0.0f32; 15]).cut(&[8])).failure();
    assert!(text.contains("a spectrum of 7 columns arrived, but the first one had 8"), "{text}");
    assert!(files(folder.path()).is_empty());
    let seen = Trial::new(sink()).feed("in", Feed::samples(Vec::<f32>::new())).run();
    assert!(seen.notes()[0].contains("no input arrived"), "{:?}", seen.notes());
    assert!(files(folder.path()).is_empty());
    let odd = [0.0, f32::NAN, f32::INFINITY, -20.0, f32::NEG_INFINITY, -60.0, 0.0, 0.0];
    let seen = Trial::new(sink()).feed("in", rows(&[odd])).run();
    assert_eq!(seen.notes(), ["3 samples were not finite and were drawn in the lowest colour"]);
    let picture = Picture::of(&path);
    let colours = [0, 1, 2, 4, 5].map(|column| picture.at(LEFT + column * 64 + 32, ABOVE + 100));
    assert_eq!(colours, [TOP, BLACK, BLACK, BLACK, BLACK]);
    for (parameters, expected) in [
        ("min = 2\nmax = 1", "`max` is 1: it must be above `min`, which is 2"),
        ("max = inf", "`max` is inf"),
        ("rows = 0", "`rows` is 0"),
        ("rows = 16385", "`rows` is 16385"),
        ("centre = nan", "NaN is not a frequency"),
    ] {
        let text =
            registry().operator("waterfall.sink", &format!("path = \"a\"\n{parameters}")).err().unwrap();
        assert!(text.to_string().contains(expected), "{parameters}: {text}");
    }
}
