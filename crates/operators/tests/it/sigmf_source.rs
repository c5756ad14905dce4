//! Playback of recordings.
#![forbid(unsafe_code)]

use crate::harness::{Recording, failure, fast, recording};
use num_complex::Complex;
use onbeat_operators::SigmfSource;
use onbeat_runtime::testing::Trial;
use onbeat_runtime::{Chunk, Ending, Graph};
use std::fs;

/// Plays a recording. Returns its samples.
fn play(source: SigmfSource, quantum: usize) -> Vec<Complex<f32>> {
    let seen = Trial::new(source).quantum(quantum).run();
    // Every chunk but the last one is full.
    let lengths = seen.lengths("out");
    let full = lengths.split_last().map_or(&[][..], |(_, others)| others);
    assert!(full.iter().all(|&length| length == quantum / 8));
    seen.samples("out")
}

#[test]
fn plays_all_types_at_one_scale() {
    let folder = tempfile::tempdir().unwrap();
    let values = [-1.0f32, -0.5, 0.0, 0.25, 0.9921875, -0.0078125];
    let cu8 = [0u8, 64, 127, 159, 254, 126];
    let bytes = |write: &dyn Fn(f32) -> Vec<u8>| values.iter().flat_map(|&x| write(x)).collect::<Vec<u8>>();
    let pairs =
        |values: &[f32]| values.chunks(2).map(|pair| Complex::new(pair[0], pair[1])).collect::<Vec<_>>();
    for (datatype, data) in [
        ("ci8", bytes(&|x| vec![(x * 128.0) as i8 as u8])),
        ("cu8", cu8.to_vec()),
        ("ci16_le", bytes(&|x| ((x * 32768.0) as i16).to_le_bytes().to_vec())),
        ("cf32_le", bytes(&|x| x.to_le_bytes().to_vec())),
    ] {
        let mut recording = Recording { data, ..recording(0) };
        recording.meta["global"]["core:datatype"] = datatype.into();
        let path = recording.write(folder.path());
        // Zero is between two numbers.
        let expected = match datatype {
            "cu8" => pairs(&cu8.map(|byte| (f32::from(byte) - 127.5) * (1.0 / 127.5))),
            _ => pairs(&values),
        };
        assert_eq!(play(SigmfSource::new(path), 16 << 10), expected, "{datatype}");
    }
}

#[test]
fn any_of_its_names_will_do() {
    let folder = tempfile::tempdir().unwrap();
    let recording = recording(100);
    recording.write(folder.path());
    for name in ["test.sigmf-meta", "test.sigmf-data", "test"] {
        assert_eq!(play(SigmfSource::new(folder.path().join(name)), 16 << 10), recording.samples(), "{name}");
    }
}

#[test]
fn repeats_without_a_seam() {
    let folder = tempfile::tempdir().unwrap();
    let recording = recording(1001);
    let path = recording.write(folder.path());
    let expected = recording.samples().repeat(5);
    for quantum in [8, 400, 16 << 10, 64 << 10] {
        assert_eq!(play(SigmfSource::new(&path).repeat(5), quantum), expected, "quantum {quantum}");
    }
}

#[test]
fn endless_until_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording(1000).write(folder.path());
    let seen = Trial::new(SigmfSource::new(path).repeat(0)).stop_after(1_000_000_000).run();
    assert_eq!(seen.ending(), Some(Ending::Stopped));
    // 256 000 samples are due by then. The chunk that is due at that moment may or may not arrive.
    let played = seen.samples::<Complex<f32>>("out").len();
    assert!((256_000 - 2048..=256_000).contains(&played), "{played}");
}

#[test]
fn a_rate_of_ones_own_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = recording(480);
    recording.meta["global"].as_object_mut().unwrap().remove("core:sample_rate");
    let path = recording.write(folder.path());
    let seen = Trial::new(SigmfSource::new(path).sample_rate(48e3).unwrap()).run();
    assert_eq!((seen.record().result.duration_ns, seen.rate_hz("out")), (10_000_000, 48e3));
}

#[test]
fn a_wrong_checksum_can_be_overlooked() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = recording(1000);
    recording.meta["global"]["core:sha512"] = "00".into();
    let path = recording.write(folder.path());
    assert_eq!(play(SigmfSource::new(path).verify(false), 16 << 10), recording.samples());
}

#[test]
fn a_file_that_shrinks_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording(500_000).write(folder.path());
    let mut graph = Graph::new("shrinks");
    let iq = graph.add("iq", SigmfSource::new(path));
    let data = folder.path().join("test.sigmf-data");
    let mut chunks = 0;
    let end = graph.sink("end", move |_: Chunk<Complex<f32>>| {
        chunks += 1;
        if chunks == 3 {
            fs::File::options().write(true).open(&data).unwrap().set_len(200_000).unwrap();
        }
    });
    graph.connect(iq, |o| &o.out, end, |o| &o.input);
    let text = failure(graph, &fast(16 << 10, 1));
    assert!(text.contains("was truncated during playback: it had 500000 samples"), "{text}");
}
