//! The source of recordings: what it plays, and what it refuses.
#![forbid(unsafe_code)]

mod harness;

use harness::{Recording, failure, fast, keep, manual, recording, run};
use num_complex::Complex;
use onbeat_operators::{NullSink, SigmfSource};
use onbeat_runtime::{Chunk, Graph};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Plays a recording and gives its samples.
fn play(source: SigmfSource, quantum: usize) -> Vec<Complex<f32>> {
    let mut graph = Graph::new("play");
    let iq = graph.add("iq", source);
    let (end, kept) = keep::<Complex<f32>>(&mut graph, "end");
    graph.connect(iq, |o| &o.out, end, |o| &o.input);
    run(graph, &fast(quantum, 4));
    let kept = kept.lock().unwrap();
    // Every chunk but the last one is full.
    let full = kept.chunks.split_last().map_or(&[][..], |(_, others)| others);
    assert!(full.iter().all(|&length| length == quantum / 8));
    kept.samples.clone()
}

/// What it says when it refuses.
fn refusal(path: &Path) -> String {
    let mut graph = Graph::new("refused");
    let iq = graph.add("iq", SigmfSource::new(path));
    let end = graph.add("end", NullSink::<Chunk<Complex<f32>>>::default());
    graph.connect(iq, |o| &o.out, end, |o| &o.input);
    failure(graph, &fast(16 << 10, 4))
}

#[test]
fn plays_all_types_at_one_scale() {
    let folder = tempfile::tempdir().unwrap();
    let values = [-1.0f32, -0.5, 0.0, 0.25, 0.9921875, -0.0078125];
    let bytes = |write: &dyn Fn(f32) -> Vec<u8>| values.iter().flat_map(|&x| write(x)).collect::<Vec<u8>>();
    let expected: Vec<_> = values.chunks(2).map(|pair| Complex::new(pair[0], pair[1])).collect();
    for (datatype, data) in [
        ("ci8", bytes(&|x| vec![(x * 128.0) as i8 as u8])),
        ("cu8", bytes(&|x| vec![(x * 128.0 + 128.0) as u8])),
        ("ci16_le", bytes(&|x| ((x * 32768.0) as i16).to_le_bytes().to_vec())),
        ("cf32_le", bytes(&|x| x.to_le_bytes().to_vec())),
    ] {
        let mut recording = Recording { data, ..recording(0) };
        recording.meta["global"]["core:datatype"] = datatype.into();
        let path = recording.write(folder.path());
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
    let mut graph = Graph::new("endless");
    let iq = graph.add("iq", SigmfSource::new(path).repeat(0));
    let (end, kept) = keep::<Complex<f32>>(&mut graph, "end");
    graph.connect(iq, |o| &o.out, end, |o| &o.input);
    let options = onbeat_runtime::Options { duration_ns: Some(1_000_000_000), ..manual() };
    let record = graph.run(&options).unwrap();
    assert_eq!(record.result.outcome.to_string(), "stopped");
    // 256 000 samples are due by then; the chunk that is due just then may come or not.
    let played = kept.lock().unwrap().samples.len();
    assert!((256_000 - 2048..=256_000).contains(&played), "{played}");
}

#[test]
fn a_rate_of_ones_own_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = recording(480);
    recording.meta["global"].as_object_mut().unwrap().remove("core:sample_rate");
    let path = recording.write(folder.path());
    assert!(refusal(&path).contains("`core:sample_rate` is missing"));
    let mut graph = Graph::new("rate");
    let iq = graph.add("iq", SigmfSource::new(path).sample_rate(48e3).unwrap());
    let (end, kept) = keep::<Complex<f32>>(&mut graph, "end");
    graph.connect(iq, |o| &o.out, end, |o| &o.input);
    assert_eq!(run(graph, &manual()).result.duration_ns, 10_000_000);
    assert_eq!(kept.lock().unwrap().rate_hz, 48e3);
}

type Change = fn(&mut Recording, &Path);

#[test]
fn bad_recordings_are_refused() {
    let table: [(&str, Change, &str); 27] = [
        ("no version", |r, _| drop(global(r).remove("core:version")), "`core:version` is missing"),
        ("no datatype", |r, _| drop(global(r).remove("core:datatype")), "`core:datatype` is missing"),
        ("real", |r, _| set(r, "core:datatype", json!("rf32_le")), "supported are ci8, cu8, ci16_le and cf32_le"),
        ("big-endian", |r, _| set(r, "core:datatype", json!("ci16_be")), "`ci16_be`, which is not supported"),
        ("rate 0", |r, _| set(r, "core:sample_rate", json!(0)), "`core:sample_rate` is 0: it must be"),
        ("rate below 0", |r, _| set(r, "core:sample_rate", json!(-48e3)), "`core:sample_rate` is -48000"),
        ("rate as text", |r, _| set(r, "core:sample_rate", json!("48k")), "expected f64"),
        ("two channels", |r, _| set(r, "core:num_channels", json!(2)), "`core:num_channels` is 2"),
        ("no data", |r, _| set(r, "core:metadata_only", json!(true)), "`core:metadata_only` is true"),
        ("other file", |r, _| set(r, "core:dataset", json!("a.wav")), "`core:dataset`"),
        ("trailer", |r, _| set(r, "core:trailing_bytes", json!(8)), "`core:trailing_bytes`"),
        ("extension", |r, _| set(r, "core:extensions", json!([{"name": "x", "version": "1", "optional": false}])), "without `x`"),
        ("header", |r, _| r.meta["captures"][0]["core:header_bytes"] = json!(44), "`core:header_bytes` of capture 0 is 44"),
        ("not sorted", |r, _| r.meta["captures"] = json!([{"core:sample_start": 9}, {"core:sample_start": 3}]), "must be sorted"),
        ("capture without start", |r, _| r.meta["captures"] = json!([{}]), "missing field `core:sample_start`"),
        ("capture after the end", |r, _| r.meta["captures"] = json!([{"core:sample_start": 1000}]), "metadata contradict the data: capture 0 begins at sample 1000"),
        ("annotation after the end", |r, _| r.meta["annotations"] = json!([{"core:sample_start": 990, "core:sample_count": 11, "core:label": "A"}]), "annotation 0 (`A`) ends with sample 1000, and the data have 1000 samples"),
        ("huge annotation", |r, _| r.meta["annotations"] = json!([{"core:sample_start": u64::MAX, "core:sample_count": u64::MAX}]), "metadata contradict the data"),
        ("negative start", |r, _| r.meta["annotations"] = json!([{"core:sample_start": -1}]), "invalid value"),
        ("wrong checksum", |r, _| set(r, "core:sha512", json!("00")), "do not match their checksum"),
        ("truncated", |r, _| { set(r, "core:sha512", json!("00")); r.data.truncate(1000); }, "truncated or changed"),
        ("odd", |r, _| r.data.truncate(1999), "has 1999 bytes, which is no whole number of samples: one of ci8 has 2 bytes"),
        ("empty", |r, _| r.data.clear(), "is empty: there are no samples"),
        ("missing data", |r, folder| { r.write(folder); fs::remove_file(folder.join("test.sigmf-data")).unwrap(); }, "cannot open"),
        ("folder for data", |r, folder| { r.write(folder); fs::remove_file(folder.join("test.sigmf-data")).unwrap(); fs::create_dir(folder.join("test.sigmf-data")).unwrap(); }, "it is no file"),
        ("half the metadata", |r, folder| { r.write(folder); cut(&folder.join("test.sigmf-meta")); }, "is no SigMF metadata: EOF while parsing"),
        ("no text", |r, folder| { r.write(folder); fs::write(folder.join("test.sigmf-meta"), [0xff, 0xfe]).unwrap(); }, "cannot read"),
    ];
    for (case, change, expected) in table {
        let folder = tempfile::tempdir().unwrap();
        let mut recording = recording(1000);
        change(&mut recording, folder.path());
        if fs::read_dir(folder.path()).unwrap().count() == 0 {
            recording.write(folder.path());
        }
        let text = refusal(&folder.path().join("test.sigmf-meta"));
        assert!(text.contains(expected), "{case}: {text}");
        let file = if text.contains("test.sigmf-data") { "test.sigmf-data" } else { "test.sigmf-meta" };
        assert!(text.contains(&folder.path().join(file).display().to_string()), "{case} names no file: {text}");
        assert!(text.starts_with("operator `iq`: cannot start: "), "{text}");
    }
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (path, expected) in [
        (folder.path().join("missing"), "missing.sigmf-meta: No such file"),
        (folder.path().to_path_buf(), "No such file"),
        (folder.path().join("a.sigmf"), "`.sigmf` files are not supported: unpack it"),
        (folder.path().join("a.sigmf-collection"), "not supported"),
        (PathBuf::from("/dev/zero"), "cannot read /dev/zero.sigmf-meta"),
    ] {
        let text = refusal(&path);
        assert!(text.contains(expected), "{text}");
    }
    fs::create_dir(folder.path().join("f.sigmf-meta")).unwrap();
    let text = refusal(&folder.path().join("f"));
    assert!(text.contains("f.sigmf-meta: Is a directory"), "{text}");
}

#[test]
fn a_wrong_checksum_can_be_overlooked() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = recording(1000);
    set(&mut recording, "core:sha512", json!("00"));
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
    assert!(text.contains("became shorter while it was played: it had 500000 samples"), "{text}");
}

fn global(recording: &mut Recording) -> &mut serde_json::Map<String, serde_json::Value> {
    recording.meta["global"].as_object_mut().unwrap()
}

fn set(recording: &mut Recording, key: &str, value: serde_json::Value) {
    global(recording).insert(key.to_string(), value);
}

fn cut(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, &text[..text.len() / 2]).unwrap();
}
