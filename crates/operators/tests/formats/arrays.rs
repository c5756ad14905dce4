//! Arrays of NumPy: shapes, types, frames.

use crate::harness::{failure, fast, feed, notes};
use crate::{C32, copy, files, frames, joined, play};
use onbeat_operators::{NpySink, NpySource};
use onbeat_runtime::{Graph, Pace};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

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

/// What chunks came: shape, start and samples.
fn chunks(path: &Path, quantum: usize) -> Vec<([u32; 3], u64, Vec<f32>)> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&kept);
    let mut graph = Graph::new("chunks");
    let source = graph.add("source", NpySource::<f32>::new(path));
    let end = graph.sink("end", move |chunk: onbeat_runtime::Chunk<f32>| {
        into.lock().unwrap().push((chunk.info().shape, chunk.info().start, chunk.to_vec()));
    });
    graph.connect(source, |s| &s.out, end, |e| &e.input);
    crate::run(graph, &fast(quantum, 2));
    std::mem::take(&mut *kept.lock().unwrap())
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
        ("|b1", [0.0, 1.0, 1.0, 0.0], vec![0, 1, 1, 0]),
    ] {
        for version in [1, 2, 3] {
            fs::write(&path, npy(descr, "(4,)", &data, version)).unwrap();
            let (kept, _) = play(NpySource::<f32>::new(&path), 1000);
            let read: Vec<f64> = kept.lock().unwrap().samples.iter().map(|&x| x.into()).collect();
            assert_eq!(read, values, "{descr}, version {version}");
        }
    }
    let pairs = [C32::new(1.0, -2.0), C32::new(0.25, 1e6)];
    let parts: Vec<f32> = pairs.iter().flat_map(|pair| [pair.re, pair.im]).collect();
    for (descr, data) in [("<c8", bytes!(parts, f32)), ("<c16", bytes!(parts, f64))] {
        fs::write(&path, npy(descr, "(2,)", &data, 1)).unwrap();
        let (kept, _) = play(NpySource::<C32>::new(&path), 1000);
        assert_eq!(kept.lock().unwrap().samples, pairs, "{descr}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Frames of any shape are played one by one and written as the same file.
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
        copy(NpySource::<f32>::new(&from), NpySink::new(&to), 4 << 10);
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
    let mut graph = Graph::new("paced");
    let source = graph.add("source", NpySource::<f32>::new(&path).rate(25.0, Pace::Real).unwrap().repeat(3));
    let (end, kept) = crate::keep::<f32>(&mut graph, "end");
    graph.connect(source, |s| &s.out, end, |e| &e.input);
    let record = crate::run(graph, &crate::harness::manual());
    assert_eq!(record.result.duration_ns, 6_000_000_000);
    let kept = kept.lock().unwrap();
    assert_eq!((kept.chunks.len(), kept.rate_hz), (150, 500.0));
    assert!(kept.chunks.iter().all(|&length| length == 20));
}

#[test]
fn a_stream_of_complex_samples_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b.npy");
    let samples: Vec<C32> = (0..5000).map(|n| C32::new(n as f32, -(n as f32) / 3.0)).collect();
    copy(feed(samples.clone(), &[333], 1e3), NpySink::new(&path), 16 << 10);
    let (kept, _) = play(NpySource::<C32>::new(&path), 1 << 10);
    assert_eq!(kept.lock().unwrap().samples, samples);
    assert_eq!(files(path.parent().unwrap()), ["b.npy"]);
}

#[test]
fn what_fits_no_array_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let row = |shape, samples| (shape, vec![0.0; samples]);
    for (chunks, expected) in [
        (vec![row([2, 3, 0], 6), row([3, 2, 0], 6)], "the shape of the chunks changed from 2 × 3 to 3 × 2"),
        (vec![row([2, 3, 0], 6), row([0; 3], 6)], "changed from 2 × 3 to none"),
        (vec![row([2, 3, 0], 5)], "a chunk of shape 2 × 3 has 5 samples, and 6 belong to it"),
    ] {
        let text = failure(joined(frames(chunks), NpySink::new(&path)), &fast(1000, 2));
        assert!(text.contains(expected), "{text}");
        assert!(files(folder.path()).is_empty());
    }
    let record = copy(frames([]), NpySink::new(&path), 1000);
    assert!(notes(&record)[0].contains("nothing came"), "{:?}", notes(&record));
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_frame_needs_a_quantum() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    fs::write(&path, npy("|u1", "(2, 30, 10)", &[7; 600], 1)).unwrap();
    let text =
        failure(joined(NpySource::<f32>::new(&path), NpySink::new(folder.path().join("b"))), &fast(1000, 2));
    assert!(
        text.contains(
            "a frame of 30 × 10 has 300 samples, which is 1200 bytes: the edges of `out` have room for 250"
        ),
        "{text}"
    );
}
