//! Grey HD frames: blur, threshold, half the size.

use super::folder::at;
use super::kind::{INPUT, JobInput, JobKind, JobRequest};
use onbeat_operators::image::{Blur, FrameFilter, Reduce, Threshold};
use onbeat_runtime::Map;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

pub(super) const KIND: JobKind = JobKind {
    about: "grey frames of 1080 x 1920: blur of 5 x 5, threshold, means of 2 x 2; a sample is a byte",
    rate_hz: FRAMES_HZ * FRAME as f64,
    seconds: 30.0,
    quality: ("largest error", "levels"),
    pipeline: PIPELINE,
    prepare,
    judge,
    bare: Some(bare),
};

const PIPELINE: &str = r#"
name = "image"
sync_files = false
operator = [
    { name = "film", kind = "npy.source.bytes", path = "input", rate = "25 Hz" },
    { name = "blur", kind = "image.blur" },
    { name = "threshold", kind = "image.threshold", level = 127 },
    { name = "reduce", kind = "image.reduce", factor = 2 },
    { name = "frames", kind = "npy.sink.bytes", path = "result" },
]
edge = [
    { from = "film.out", to = "blur.in", quantum = 2073600 },
    { from = "blur.out", to = "threshold.in", quantum = 2073600 },
    { from = "threshold.out", to = "reduce.in", quantum = 2073600 },
    { from = "reduce.out", to = "frames.in", quantum = 2073600 },
]
"#;

const ROWS: usize = 1080;
const COLUMNS: usize = 1920;
const FRAME: usize = ROWS * COLUMNS;
/// Samples of a frame of the result.
const SMALL: usize = FRAME / 4;
const FRAMES_HZ: f64 = 25.0;
const LEVEL: i64 = 127;
/// Different frames of the input; then they repeat.
const DIFFERENT: usize = 25;
/// Frames that are compared with the reference.
const COMPARED: usize = 3;
/// Bytes of a header.
const HEADER: usize = 192;

/// A scene of soft stripes and noise that moves by some samples from frame to frame.
fn scene() -> Vec<u8> {
    let mut state = 1u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 24)
    };
    let at = |place: usize| {
        let (y, x) = ((place / COLUMNS) as f64, (place % COLUMNS) as f64);
        (y / 41.0).sin() * (x / 67.0).cos()
    };
    (0..FRAME).map(|place| (64.0 + 50.0 * (1.0 + at(place)) + noise() / 4.0) as u8).collect()
}

/// Header of an array of bytes, as the operator `npy.sink.bytes` writes it.
fn header(frames: usize, rows: usize, columns: usize) -> [u8; HEADER] {
    let text =
        format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({frames}, {rows}, {columns},), }}");
    let mut bytes = [b' '; HEADER];
    bytes[..10].copy_from_slice(b"\x93NUMPY\x01\x00\xb6\x00");
    bytes[10..10 + text.len()].copy_from_slice(text.as_bytes());
    bytes[HEADER - 1] = b'\n';
    bytes
}

fn prepare(request: &JobRequest) -> Result<u64, String> {
    let frames = (request.seconds * FRAMES_HZ).round().max(1.0) as usize;
    let path = request.folder.join(INPUT);
    let mut file = File::create(&path).map_err(at(&path))?;
    file.write_all(&header(frames, ROWS, COLUMNS)).map_err(at(&path))?;
    let scene = scene();
    for number in 0..frames {
        let (head, tail) = scene.split_at(number % DIFFERENT * 7 * (COLUMNS + 1));
        file.write_all(tail).and_then(|()| file.write_all(head)).map_err(at(&path))?;
    }
    Ok((frames * FRAME) as u64)
}

/// Largest difference from the result by definition, in grey levels, over some frames.
fn judge(input: &JobInput, result: &Path) -> Result<f64, String> {
    let frames = input.samples / FRAME as u64;
    let expected = frames * SMALL as u64;
    let length = fs::metadata(result).map_err(at(result))?.len();
    let Some(begin) = length.checked_sub(expected).filter(|header| *header <= 256) else {
        return Err(format!("it has {length} bytes: {expected} and a header were expected"));
    };
    let read = |path: &Path, place: u64, count: usize| {
        let mut bytes = vec![0; count];
        let file = File::open(path).map_err(at(path))?;
        file.read_exact_at(&mut bytes, place).map_err(at(path))?;
        Ok::<_, String>(bytes)
    };
    let mut worst = 0;
    for number in (0..frames).step_by((frames as usize / COMPARED).max(1)) {
        let frame = read(&input.path(), HEADER as u64 + number * FRAME as u64, FRAME)?;
        let found = read(result, begin + number * SMALL as u64, SMALL)?;
        let right = reference(&frame);
        worst = right.iter().zip(&found).map(|(right, found)| right.abs_diff(*found)).fold(worst, u8::max);
    }
    Ok(worst.into())
}

/// What the operators should send for a frame. Outside the frame, the nearest sample of its border counts.
fn reference(frame: &[u8]) -> Vec<u8> {
    let weights = [1, 4, 6, 4, 1];
    let near = |place: usize, by: usize, end: usize| (place + by).saturating_sub(2).min(end - 1);
    let sum = |at: &dyn Fn(usize) -> u32| (0..5).map(|by| weights[by] * at(by)).sum::<u32>();
    let along = |y: usize, x: usize| sum(&|by| u32::from(frame[y * COLUMNS + near(x, by, COLUMNS)]));
    let rows: Vec<u32> = (0..FRAME).map(|place| along(place / COLUMNS, place % COLUMNS)).collect();
    let is_white = |y: usize, x: usize| {
        let sum = sum(&|by| rows[near(y, by, ROWS) * COLUMNS + x]);
        u32::from((sum + 128) / 256 > LEVEL as u32)
    };
    let block = |place: usize| {
        let (y, x) = (2 * (place / (COLUMNS / 2)), 2 * (place % (COLUMNS / 2)));
        let white = is_white(y, x) + is_white(y, x + 1) + is_white(y + 1, x) + is_white(y + 1, x + 1);
        ((white * 255 + 2) / 4) as u8
    };
    (0..SMALL).map(block).collect()
}

/// What the operators do, on slices.
fn bare(input: &JobInput, result: &Path) -> Result<(), String> {
    let wrong = |error: onbeat_runtime::Error| error.to_string();
    let (mut blur, mut reduce) = (Blur::new(), Reduce::new(2).map_err(wrong)?);
    let mut threshold = Threshold::new(LEVEL).map_err(wrong)?;
    let shape = [ROWS as u32, COLUMNS as u32, 0];
    blur.shape(shape).and_then(|shape| reduce.shape(shape)).map_err(wrong)?;
    let path = input.path();
    // As large as the reads of the sources of pipelines.
    let mut from = BufReader::with_capacity(1 << 16, File::open(&path).map_err(at(&path))?);
    let mut to = BufWriter::with_capacity(1 << 16, File::create(result).map_err(at(result))?);
    let mut begin = [0; HEADER];
    from.read_exact(&mut begin).map_err(at(&path))?;
    let frames = input.samples as usize / FRAME;
    to.write_all(&header(frames, ROWS / 2, COLUMNS / 2)).map_err(at(result))?;
    let (mut frame, mut smooth, mut small) = (vec![0; FRAME], vec![0; FRAME], vec![0; SMALL]);
    for _ in 0..frames {
        from.read_exact(&mut frame).map_err(at(&path))?;
        blur.filter(&frame, &mut smooth);
        threshold.map(&mut smooth);
        reduce.filter(&smooth, &mut small);
        to.write_all(&small).map_err(at(result))?;
    }
    to.flush().map_err(at(result))
}
