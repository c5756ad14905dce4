//! NumPy arrays: shapes, types, frames.

use super::{C32, play, write};
use crate::harness::files;
use onbeat_operators::{NpySink, NpySource, NullSink};
use onbeat_runtime::testing::{Feed, Trial};
use onbeat_runtime::{Chunk, Graph, Options, Pace};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// An NPY file as NumPy writes it.
pub fn npy(descr: &str, shape: &str, data: &[u8], version: u8) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while !(text.len() + 13).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((text.len() as u16).to_le_bytes()),
        _ => bytes.extend((text.len() as u32).to_le_bytes()),
    }
    [&bytes, text.as_bytes(), data].concat()
}

/// Chunks received: shape, start and samples.
fn chunks(path: &Path, quantum: usize) -> Vec<([u32; 3], u64, Vec<f32>)> {
    let seen = play(NpySource::<f32>::new(path), quantum);
    let mut samples = seen.samples::<f32>("out").into_iter();
    let pieces = seen.pieces("out").into_iter();
    pieces.map(|piece| (piece.shape, piece.start, samples.by_ref().take(piece.length).collect())).collect()
}

#[test]
fn every_type_is_taken_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let values = [0.0f64, 1.0, 100.0, 7.0];
    let signed = [0.0f64, -1.0, 100.0, -128.0];
    macro_rules! bytes {
        ($values:expr, $type:ty) => {
            $values.iter().flat_map(|x| (*x as $type).to_le_bytes()).collect::<Vec<u8>>()
        };
    }
    for (descr, values, data) in [
        ("|u1", values, bytes!(values, u8)),
        ("|i1", signed, bytes!(signed, i8)),
        ("<u2", values, bytes!(values, u16)),
        ("<i2", signed, bytes!(signed, i16)),
        ("<u4", values, bytes!(values, u32)),
        ("<i4", signed, bytes!(signed, i32)),
        ("<u8", values, bytes!(values, u64)),
        ("<i8", signed, bytes!(signed, i64)),
        ("<f4", signed, bytes!(signed, f32)),
        ("<f8", signed, bytes!(signed, f64)),
        ("|b1", [0.0, 1.0, 1.0, 1.0], vec![0, 1, 5, 255]),
    ] {
        for version in [1, 2, 3] {
            fs::write(&path, npy(descr, "(4,)", &data, version)).unwrap();
            let seen = play(NpySource::<f32>::new(&path), 1000);
            let read: Vec<f64> = seen.samples::<f32>("out").into_iter().map(Into::into).collect();
            assert_eq!(read, values, "{descr}, version {version}");
        }
    }
    let pairs = [C32::new(1.0, -2.0), C32::new(0.25, 1e6)];
    let parts: Vec<f32> = pairs.iter().flat_map(|pair| [pair.re, pair.im]).collect();
    for (descr, data) in [("<c8", bytes!(parts, f32)), ("<c16", bytes!(parts, f64))] {
        fs::write(&path, npy(descr, "(2,)", &data, 1)).unwrap();
        assert_eq!(play(NpySource::<C32>::new(&path), 1000).samples::<C32>("out"), pairs, "{descr}");
    }
}

/// Bytes are played and written without a detour over other numbers.
#[test]
fn frames_of_bytes_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from.npy"), folder.path().join("to.npy"));
    // More than a buffer of either side.
    let data: Vec<u8> = (0..3 * 200 * 300).map(|n| (n * 7 / 5) as u8).collect();
    for descr in ["|u1", "|b1"] {
        fs::write(&from, npy(descr, "(3, 200, 300)", &data, 1)).unwrap();
        let seen = play(NpySource::<u8>::new(&from), 60_000);
        assert!(seen.samples::<u8>("out") == data, "{descr}");
        assert_eq!(
            seen.pieces("out").iter().map(|piece| piece.shape).collect::<Vec<_>>(),
            [[200, 300, 0]; 3]
        );
    }
    let frames: Vec<_> = data.chunks(60_000).map(|frame| ([200, 300, 0], frame.to_vec())).collect();
    Trial::new(NpySink::<u8>::new(&to)).quantum(60_000).feed("in", Feed::frames::<u8>(frames)).run();
    let written = fs::read(&to).unwrap();
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 200, 300,), }";
    assert!(written[10..].starts_with(header.as_bytes()) && written[192..] == data);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Frames of any shape are played one by one and written to an equal file.
    #[test]
    fn frames_come_back(shape in prop::collection::vec(1u64..7, 1..5), seed in any::<u32>()) {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from.npy"), folder.path().join("to.npy"));
        let count: u64 = shape.iter().product();
        let data: Vec<u8> = (0..count).flat_map(|n| ((seed as f32) + n as f32).to_le_bytes()).collect();
        let text: String = shape.iter().map(|length| format!("{length}, ")).collect();
        let file = npy("<f4", &format!("({text})"), &data, 1);
        fs::write(&from, &file).unwrap();
        let came = chunks(&from, 4 << 10);
        if shape.len() > 1 {
            prop_assert_eq!(came.len() as u64, shape[0]);
            let mut axes = [0; 3];
            axes.iter_mut().zip(&shape[1..]).for_each(|(axis, length)| *axis = *length as u32);
            let samples = count / shape[0];
            for (n, (shape, start, frame)) in came.iter().enumerate() {
                prop_assert_eq!((*shape, *start), (axes, n as u64 * samples));
                prop_assert_eq!(frame.len() as u64, samples);
            }
        }
        let frames = came.iter().map(|(shape, _, samples)| (*shape, samples.clone()));
        Trial::new(NpySink::<f32>::new(&to)).feed("in", Feed::frames(frames)).run();
        let written = fs::read(&to).unwrap();
        prop_assert!(written.ends_with(&data) && written.len() == 192 + data.len());
        prop_assert_eq!(chunks(&to, 4 << 10), came);
    }
}

#[test]
fn frames_keep_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    fs::write(&path, npy("|u1", "(50, 4, 5)", &[7; 1000], 1)).unwrap();
    let seen = play(NpySource::<f32>::new(&path).rate(25.0, Pace::Real).unwrap().repeat(3), 16 << 10);
    assert_eq!(seen.record().result.duration_ns, 6_000_000_000);
    assert_eq!((seen.lengths("out"), seen.rate_hz("out")), (vec![20; 150], 500.0));
}

#[test]
fn a_stream_of_complex_samples_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b.npy");
    let samples: Vec<C32> = (0..5000).map(|n| C32::new(n as f32, -(n as f32) / 3.0)).collect();
    write(samples.clone(), &[333], 1e3, NpySink::<C32>::new(&path));
    assert_eq!(play(NpySource::<C32>::new(&path), 1 << 10).samples::<C32>("out"), samples);
    assert_eq!(files(path.parent().unwrap()), ["b.npy"]);
}

#[test]
fn what_fits_no_array_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let row = |shape, samples| (shape, vec![0.0f32; samples]);
    for (chunks, expected) in [
        (vec![row([2, 3, 0], 6), row([3, 2, 0], 6)], "the shape of the chunks changed from 2 × 3 to 3 × 2"),
        (vec![row([2, 3, 0], 6), row([0; 3], 6)], "changed from 2 × 3 to none"),
        (vec![row([2, 3, 0], 5)], "a chunk of shape 2 × 3 has 5 samples instead of 6"),
    ] {
        let text = Trial::new(NpySink::<f32>::new(&path)).feed("in", Feed::frames(chunks)).failure();
        assert!(text.contains(expected), "{text}");
        // The frames before the failure are kept, if there were any.
        assert!(files(folder.path()).iter().all(|name| name == "a.npy.part"));
    }
    let seen = write(Vec::<f32>::new(), &[1], 0.0, NpySink::<f32>::new(&path));
    assert!(seen.notes()[0].contains("no input arrived"), "{:?}", seen.notes());
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_frame_needs_a_quantum() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    fs::write(&path, npy("|u1", "(2, 30, 10)", &[7; 600], 1)).unwrap();
    // An edge gets room for a frame on its own, unless it has a quantum.
    let seen = Trial::new(NpySource::<f32>::new(&path)).quantum(1000).run();
    assert_eq!(seen.lengths("out"), [300, 300]);
    let mut graph = Graph::new("frames");
    graph.add("film", NpySource::<f32>::new(&path));
    graph.add("end", NullSink::<Chunk<f32>>::default());
    let _ = graph.connect_names("film", "end").quantum(1000);
    let text = graph.run(&Options::default()).unwrap_err().to_string();
    assert!(
        text.contains(
            "a frame of 30 × 10 has 300 samples, which is 1200 bytes: the edges of `out` have room for 250"
        ),
        "{text}"
    );
}
