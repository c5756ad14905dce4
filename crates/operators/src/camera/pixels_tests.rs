//! Values computed by NumPy in floating point, from the formulas of ITU-R BT.601 and BT.709.

use super::*;
use proptest::prelude::*;

// Planes of 3 rows × 4 columns, with chroma for pairs.
const Y: [[u8; 4]; 3] = [[139, 74, 229, 241], [169, 65, 6, 160], [149, 106, 38, 175]];
const CB: [[u8; 2]; 3] = [[188, 205], [175, 229], [98, 249]];
const CR: [[u8; 2]; 3] = [[95, 86], [147, 198], [66, 39]];
/// BT.601, limited range, chroma of each row.
const LIMITED_422: [u8; 36] = [
    91, 147, 255, 15, 71, 189, 181, 252, 255, 195, 255, 255, 208, 144, 255, 87, 23, 152, 100, 0, 192, 255,
    71, 255, 56, 217, 94, 6, 167, 44, 0, 51, 255, 43, 210, 255,
];
/// The same with the chroma of rows 0 and 1 for two rows each.
const LIMITED_420: [u8; 36] = [
    91, 147, 255, 15, 71, 189, 181, 252, 255, 195, 255, 255, 125, 181, 255, 4, 60, 178, 0, 0, 144, 101, 172,
    255, 185, 121, 250, 135, 71, 200, 137, 0, 229, 255, 89, 255,
];
/// BT.709, full range.
const FULL_422: [u8; 36] = [
    87, 143, 250, 22, 78, 185, 163, 234, 255, 175, 246, 255, 199, 151, 255, 95, 47, 152, 116, 0, 193, 255,
    108, 255, 51, 184, 93, 8, 141, 50, 0, 57, 255, 35, 194, 255,
];

const LIMITED: (ColourMatrix, ColourRange) = (ColourMatrix::Bt601, ColourRange::Limited);
const FULL: (ColourMatrix, ColourRange) = (ColourMatrix::Bt709, ColourRange::Full);

fn layout(size: (u32, u32), pixels: CameraPixels, line_bytes: u32) -> FrameLayout {
    let code = pixels.code();
    FrameLayout { size, code, line_bytes, size_bytes: 0, is_interlaced: false, colours: [0; 3] }
}

fn read(
    pixels: CameraPixels,
    format: VideoFormat,
    colours: (ColourMatrix, ColourRange),
    (size, line_bytes): ((u32, u32), u32),
    frame: &[u8],
) -> Vec<u8> {
    let mut reader = PixelReader::new(&layout(size, pixels, line_bytes), pixels, format, colours).unwrap();
    let samples = size.0 * size.1 * if format == VideoFormat::Grey { 1 } else { 3 };
    let mut out = vec![1; samples as usize];
    reader.read(frame, &mut out).unwrap();
    out
}

/// The rows of a packed format, with `padding` bytes after each.
fn packed(order: impl Fn(u8, u8, u8, u8) -> [u8; 4], padding: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    for ((y, cb), cr) in Y.iter().zip(CB).zip(CR) {
        for at in 0..2 {
            frame.extend(order(y[2 * at], cb[at], y[2 * at + 1], cr[at]));
        }
        frame.extend(vec![99; padding]);
    }
    frame
}

#[test]
fn packed_pixels_become_rgb_and_grey() {
    let luma = Y.as_flattened();
    for padding in [0, 8] {
        let shape = ((4, 3), 8 + padding as u32);
        let yuyv = packed(|a, cb, b, cr| [a, cb, b, cr], padding);
        let uyvy = packed(|a, cb, b, cr| [cb, a, cr, b], padding);
        for (pixels, frame) in [(CameraPixels::Yuyv, &yuyv), (CameraPixels::Uyvy, &uyvy)] {
            assert_eq!(read(pixels, VideoFormat::Rgb, LIMITED, shape, frame), LIMITED_422);
            assert_eq!(read(pixels, VideoFormat::Rgb, FULL, shape, frame), FULL_422);
            assert_eq!(read(pixels, VideoFormat::Grey, LIMITED, shape, frame), luma);
        }
    }
}

#[test]
fn planes_become_rgb_and_grey() {
    for padding in [0, 6] {
        let line = |row: &[u8], length: usize| [row, &vec![99; length - row.len()][..]].concat();
        let wide = 4 + padding;
        let luma: Vec<u8> = Y.iter().flat_map(|row| line(row, wide)).collect();
        let both = (0..2).flat_map(|y| line(&[CB[y][0], CR[y][0], CB[y][1], CR[y][1]], wide));
        let nv12: Vec<u8> = luma.iter().copied().chain(both).collect();
        let apart = [CB, CR]
            .into_iter()
            .flat_map(|plane| plane[..2].iter().flat_map(|row| line(row, wide / 2)).collect::<Vec<u8>>());
        let yu12: Vec<u8> = luma.iter().copied().chain(apart).collect();
        for (pixels, frame) in [(CameraPixels::Nv12, &nv12), (CameraPixels::Yu12, &yu12)] {
            let shape = ((4, 3), wide as u32);
            assert_eq!(read(pixels, VideoFormat::Rgb, LIMITED, shape, frame), LIMITED_420, "{pixels:?}");
            assert_eq!(read(pixels, VideoFormat::Grey, LIMITED, shape, frame), Y.as_flattened());
        }
    }
}

#[test]
fn rgb_and_grey_pixels() {
    const RGB: [u8; 18] = [171, 45, 167, 57, 69, 81, 55, 14, 153, 178, 215, 76, 52, 39, 250, 72, 215, 50];
    const LUMA: [u8; 6] = [97, 67, 42, 188, 67, 153];
    let bgr: Vec<u8> = RGB.as_chunks::<3>().0.iter().flat_map(|[r, g, b]| [*b, *g, *r]).collect();
    let shape = ((3, 2), 0);
    for (pixels, frame) in [(CameraPixels::Rgb, &RGB[..]), (CameraPixels::Bgr, &bgr)] {
        assert_eq!(read(pixels, VideoFormat::Rgb, LIMITED, shape, frame), RGB);
        assert_eq!(read(pixels, VideoFormat::Grey, LIMITED, shape, frame), LUMA);
    }
    let grey = read(CameraPixels::Grey, VideoFormat::Rgb, LIMITED, shape, &LUMA);
    assert_eq!(grey, LUMA.map(|level| [level; 3]).as_flattened());
}

#[test]
fn colours_are_those_of_the_driver() {
    let found = |numbers, matrix, range| {
        let layout = FrameLayout { colours: numbers, ..layout((2, 2), CameraPixels::Yuyv, 4) };
        colours(&layout, matrix, range)
    };
    let (old, new) = (ColourMatrix::Bt601, ColourMatrix::Bt709);
    let (limited, full) = (ColourRange::Limited, ColourRange::Full);
    // sRGB, as most web cameras say; Rec. 709; JPEG; an encoding and a range of their own.
    assert_eq!(found([8, 0, 0], None, None), (old, limited));
    assert_eq!(found([3, 0, 0], None, None), (new, limited));
    assert_eq!(found([7, 0, 0], None, None), (old, full));
    assert_eq!(found([8, 2, 1], None, None), (new, full));
    assert_eq!(found([7, 1, 2], None, None), (old, limited));
    assert_eq!(found([3, 0, 0], Some(old), Some(full)), (old, full));
}

#[test]
fn layouts_that_make_no_sense_are_refused() {
    let refused = |size, pixels, line_bytes| {
        let layout = layout(size, pixels, line_bytes);
        PixelReader::new(&layout, pixels, VideoFormat::Rgb, LIMITED).err().unwrap().to_string()
    };
    assert!(refused((4, 3), CameraPixels::Yuyv, 7).contains("7 bytes in a row, of which 8 are needed"));
    assert!(refused((0, 3), CameraPixels::Grey, 0).contains("0 × 3 pixels"));
    assert!(refused((5, 3), CameraPixels::Nv12, 5).contains("5 columns, and `nv12` needs an even number"));
}

fn any_pixels() -> impl Strategy<Value = CameraPixels> {
    proptest::sample::select(CameraPixels::FOR_RGB.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Frames of any length are read or refused; those of the right length are read.
    #[test]
    fn any_frame_is_read_or_refused(
        pixels in any_pixels(),
        (half, rows) in (1u32..9, 1u32..9),
        padding in 0u32..9,
        is_grey in any::<bool>(),
        length in 0usize..700,
    ) {
        let format = if is_grey { VideoFormat::Grey } else { VideoFormat::Rgb };
        let size = (2 * half, rows);
        let line_bytes = pixels.row_bytes(size.0 as usize) as u32 + padding;
        let mut reader = PixelReader::new(&layout(size, pixels, line_bytes), pixels, format, LIMITED).unwrap();
        let mut out = vec![0; (size.0 * rows) as usize * if is_grey { 1 } else { 3 }];
        let least = reader.least_bytes();
        for length in [length, least, least.saturating_sub(1)] {
            let read = reader.read(&vec![77; length], &mut out);
            if pixels == CameraPixels::Mjpeg {
                prop_assert!(matches!(read, Err(FrameDamage::Jpeg(_))));
            } else {
                prop_assert_eq!(read.is_ok(), length >= least);
            }
        }
    }
}
