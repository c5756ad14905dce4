//! Annotations become tags and tags become annotations, on the same samples.

use super::{C32, add_kind, play};
use crate::harness::{Recording, again, fast, files, recording};
use onbeat_operators::{SampleFormat, SigmfSink, SigmfSource};
use onbeat_runtime::testing::{Feed, Trial};
use onbeat_runtime::{Graph, Value as TagValue};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn meta(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn annotated() -> Recording {
    let mut recording = recording(20_000);
    let mut annotations = vec![
        json!({ "core:sample_start": 0, "core:sample_count": 20_000, "core:label": "all", "core:comment": "a comment" }),
        json!({ "core:sample_start": 0, "core:label": "begin" }),
        json!({ "core:sample_start": 17 }),
        json!({ "core:sample_start": 17, "core:sample_count": 3, "core:comment": "without a label" }),
        json!({ "core:sample_start": 17, "core:sample_count": 5, "core:freq_lower_edge": 1e6,
            "core:freq_upper_edge": 2.5e6, "core:label": "all fields", "core:comment": "of this one",
            "core:generator": "a test", "core:uuid": "7d1ac3b4-5f0e-4d5c-9e4e-1f1f3a0b8c22" }),
        json!({ "core:sample_start": 17, "core:sample_count": 7, "core:label": "the same sample" }),
        json!({ "core:sample_start": 18, "core:label": "gain", "onbeat:value": 3 }),
        json!({ "core:sample_start": 18, "core:label": "antenna", "onbeat:value": "north" }),
        json!({ "core:sample_start": 18, "core:label": "locked", "onbeat:value": true }),
        json!({ "core:sample_start": 18, "core:label": "level", "onbeat:value": -3.5 }),
    ];
    annotations.extend((1..60).map(|n| {
        let at = n * 331;
        json!({ "core:sample_start": at, "core:sample_count": n, "core:label": format!("mark {n}") })
    }));
    annotations.push(json!({ "core:sample_start": 19_999, "core:sample_count": 1, "core:label": "last" }));
    annotations.sort_by_key(|mark| mark["core:sample_start"].as_u64());
    recording.meta["annotations"] = annotations.into();
    recording.meta["captures"] = json!([
        { "core:sample_start": 0, "core:frequency": 100e6, "core:datetime": "2026-01-02T03:04:05Z" },
        { "core:sample_start": 12_345, "core:frequency": 101e6 },
    ]);
    recording
}

#[test]
fn they_survive_the_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let first = annotated();
    let path = first.write(folder.path());
    for quantum in [8, 1000, 16 << 10] {
        let played = play(SigmfSource::new(&path), quantum);
        let copy = folder.path().join(format!("again-{quantum}"));
        let sink = SigmfSink::<C32>::new(&copy, SampleFormat::Ci8).unwrap();
        Trial::new(sink).feed("in", again::<C32>(&played, "out")).quantum(quantum).run();
        let second = meta(&copy.with_extension("sigmf-meta"));
        assert_eq!(second["annotations"], first.meta["annotations"], "quantum {quantum}");
        assert_eq!(second["captures"], first.meta["captures"], "quantum {quantum}");
        assert_eq!(second["global"]["core:sample_rate"], 256e3);
        assert_eq!(second["global"]["core:datatype"], "ci8");
        assert_eq!(fs::read(copy.with_extension("sigmf-data")).unwrap(), first.data);
        // Its checksum is right, or it would not start.
        play(SigmfSource::new(&copy), quantum);
    }
}

#[test]
fn they_follow_the_rate() {
    let folder = tempfile::tempdir().unwrap();
    let path = annotated().write(folder.path());
    let mut graph = Graph::new("eighth");
    let again = folder.path().join("eighth.sigmf-meta");
    let mut add = |name, kind, parameters: &str| add_kind(&mut graph, name, kind, parameters);
    add("iq", "sigmf.source", &format!("path = {path:?}\npace = \"fast\""));
    add(
        "eighth",
        "fir.decimate",
        "factor = 8\ncutoff = \"12 kHz\"\ntransition = \"6 kHz\"\nattenuation = \"60 dB\"",
    );
    add("sink", "sigmf.sink", &format!("path = {again:?}"));
    graph.connect_names("iq.out", "eighth.in");
    graph.connect_names("eighth.out", "sink.in");
    super::run(graph, &fast(16 << 10, 4));
    let again = meta(&again);
    let find = |label: &str| {
        let all = again["annotations"].as_array().unwrap();
        let found = all.iter().find(|mark| mark["core:label"] == label).unwrap();
        (found["core:sample_start"].as_u64().unwrap(), found["core:sample_count"].as_u64())
    };
    assert_eq!(find("all"), (0, Some(2500)));
    assert_eq!(find("mark 40"), (40 * 331 / 8, Some(5)));
    assert_eq!(again["global"]["core:sample_rate"], 32e3);
}

#[test]
fn any_tag_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tags.sigmf-data");
    let feed = Feed::samples(vec![C32::new(0.5, 0.0); 3000]).cut(&[700]).rate(1e6);
    let marks = [(0, "trigger"), (699, "trigger"), (700, "trigger"), (2999, "duration_s")];
    let feed = marks.into_iter().fold(feed, |feed, (at, key)| feed.tag(at, key, 1));
    let sink = SigmfSink::<C32>::new(&path, SampleFormat::Cf32Le).unwrap().description("tags");
    Trial::new(sink).feed("in", feed).run();
    let written = meta(&path.with_extension("sigmf-meta"));
    let trigger = |at: u64| json!({ "core:sample_start": at, "core:label": "trigger", "onbeat:value": 1 });
    // A second from the last sample on: it ends with the recording.
    let last = json!({ "core:sample_start": 2999, "core:sample_count": 1 });
    assert_eq!(written["annotations"], json!([trigger(0), trigger(699), trigger(700), last]));
    assert_eq!(written["captures"], json!([{ "core:sample_start": 0 }]));
    assert_eq!(written["global"]["core:description"], "tags");
    assert_eq!(written["global"]["core:extensions"][0]["optional"], true);
    let tags = play(SigmfSource::new(&path), 4 << 10).tags("out");
    let tag = |at, key: &str, value: TagValue| (at, key.to_string(), value);
    assert_eq!(tags[..3], [0, 699, 700].map(|at| tag(at, "trigger", 1.into())));
    assert_eq!(tags[3..], [tag(2999, "annotation", "".into()), tag(2999, "duration_s", 1e-6.into())]);
}

#[test]
fn a_failed_run_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("take.sigmf-meta");
    fs::write(&path, "before").unwrap();
    let feed = Feed::samples(vec![C32::new(0.5, 0.0); 30_000]).rate(1e6).tag(7, "left", 5);
    let sink = SigmfSink::<C32>::new(&path, SampleFormat::Cf32Le).unwrap();
    let text = Trial::new(sink).feed("in", feed.then_fail("on purpose")).failure();
    assert!(text.contains("on purpose"), "{text}");
    let left = ["take.sigmf-data.part", "take.sigmf-meta", "take.sigmf-meta.part"];
    assert_eq!(files(folder.path()), left);
    assert_eq!(fs::read(&path).unwrap(), b"before");
    // Under their final names the two are a recording of what came before.
    for name in ["take.sigmf-data", "take.sigmf-meta"] {
        let name = folder.path().join(name);
        fs::rename(name.with_added_extension("part"), name).unwrap();
    }
    let seen = play(SigmfSource::new(&path), 4 << 10);
    assert_eq!(seen.samples::<C32>("out").len(), 30_000);
    assert!(seen.tags("out").contains(&(7, "left".to_string(), 5.into())));
}
