//! Annotations of a recording stay on their samples through changes of the rate.
#![forbid(unsafe_code)]

use crate::harness::{RECORDING, Recording, again, recording};
use num_complex::Complex;
use onbeat_operators::SigmfSource;
use onbeat_operators::dsp::{FirDecimator, LowPass, Quality, Resampler};
use onbeat_runtime::Stream;
use onbeat_runtime::testing::{Seen, Trial};
use serde_json::{Value, json};
use std::path::Path;

type Tags = Vec<(u64, String, String)>;

fn tags_of(seen: &Seen) -> Tags {
    seen.tags("out").into_iter().map(|(at, key, value)| (at, key, value.to_string())).collect()
}

/// Plays a recording through a decimation by 8 and a resampling by 3/2. Returns the tags after the source and
/// at the end.
fn tags(path: &Path, repeat: u64, quantum: usize, capacity: usize) -> (Tags, Tags) {
    let sized = |trial: Trial| trial.quantum(quantum).capacity(capacity);
    let low_pass = LowPass { cutoff_hz: 12e3, transition_hz: 6e3, attenuation_db: 60.0 };
    let eighth = Stream::new(FirDecimator::<Complex<f32>>::new(8, low_pass).unwrap());
    let rate = Stream::new(Resampler::<Complex<f32>>::new(3, 2, Quality::default()).unwrap());
    let played = sized(Trial::new(SigmfSource::new(path).repeat(repeat))).run();
    let feed = again::<Complex<f32>>(&played, "out");
    let fewer = sized(Trial::new(eighth)).feed("in", feed).run();
    let feed = again::<Complex<f32>>(&fewer, "out");
    let end = sized(Trial::new(rate)).feed("in", feed).run();
    assert_eq!(end.rate_hz("out"), 48e3);
    (tags_of(&played), tags_of(&end))
}

/// Position of a tag after both: on the sample of its instant, or the next one.
fn moved(tags: &[(u64, String, String)]) -> Tags {
    let place = |at: u64| (at.div_ceil(8) * 3).div_ceil(2);
    tags.iter().map(|(at, key, value)| (place(*at), key.clone(), value.clone())).collect()
}

#[test]
fn the_stations_of_the_example_are_named_at_their_begin() {
    let (begin, end) = tags(Path::new(RECORDING), 1, 16 << 10, 4);
    let tag = |(key, value): (&str, &str)| (0, key.to_string(), value.to_string());
    let expected = [
        ("core:frequency", "100000000"),
        ("core:label", "station A"),
        ("core:comment", "A melody; 25 kHz deviation, 50 us pre-emphasis"),
        ("duration_s", "2"),
        ("core:freq_lower_edge", "100007000"),
        ("core:freq_upper_edge", "100073000"),
        ("core:label", "station B"),
        ("core:comment", "A gliding tone; 25 kHz deviation, 50 us pre-emphasis"),
        ("duration_s", "2"),
        ("core:freq_lower_edge", "99907000"),
        ("core:freq_upper_edge", "99973000"),
    ];
    assert_eq!(begin, expected.map(tag));
    assert_eq!(end, begin);
}

fn annotated(samples: usize) -> Recording {
    let mut recording = recording(samples);
    let place = |n: usize| n * n * 7 % (samples - 20);
    // Not sorted, some on one sample, one at the start, one where chunks of 8 KiB end.
    let mut places: Vec<usize> = (0..40).map(place).collect();
    places.extend([0, 1, 1023, 1024, 1025]);
    recording.meta["annotations"] = places
        .iter()
        .enumerate()
        .map(|(n, &at)| json!({ "core:sample_start": at, "core:sample_count": 5, "core:label": format!("mark {n}") }))
        .collect::<Vec<Value>>()
        .into();
    recording
}

#[test]
fn tags_are_on_their_samples_for_any_quantum() {
    let folder = tempfile::tempdir().unwrap();
    let recording = annotated(20_000);
    let path = recording.write(folder.path());
    let mut expected: Tags = recording.meta["annotations"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|mark| {
            let (label, at) =
                (mark["core:label"].as_str().unwrap(), mark["core:sample_start"].as_u64().unwrap());
            let duration_s = (5.0 / 256e3).to_string();
            [(at, "core:label".into(), label.into()), (at, "duration_s".into(), duration_s)]
        })
        .collect();
    expected.sort_by_key(|(at, ..)| *at);
    for quantum in [8, 1000, 4 << 10, 16 << 10, 64 << 10] {
        for capacity in [1, 4] {
            let (begin, end) = tags(&path, 1, quantum, capacity);
            assert_eq!(begin, expected, "quantum {quantum}");
            assert_eq!(end, moved(&expected), "quantum {quantum}");
        }
    }
}

#[test]
fn tags_come_again_with_each_repetition() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = recording(1001);
    recording.meta["annotations"] = json!([
        { "core:sample_start": 17, "core:comment": "without a label" },
        { "core:sample_start": 1000 },
    ]);
    recording.meta["captures"] =
        json!([{ "core:sample_start": 0 }, { "core:sample_start": 500, "core:frequency": 1e6 }]);
    let path = recording.write(folder.path());
    let one =
        [(17, "annotation", "without a label"), (500, "core:frequency", "1000000"), (1000, "annotation", "")];
    let expected: Tags = (0..3)
        .flat_map(|n| one.map(|(at, key, value)| (n * 1001 + at, key.to_string(), value.to_string())))
        .collect();
    for quantum in [8, 1000, 16 << 10] {
        let (begin, mut end) = tags(&path, 3, quantum, 4);
        assert_eq!(begin, expected, "quantum {quantum}");
        let mut moved = moved(&expected);
        // A tag on the very last sample has no place after the last sample that is kept.
        if end.len() < moved.len() {
            moved.pop();
        }
        assert_eq!(std::mem::take(&mut end), moved, "quantum {quantum}");
    }
}
