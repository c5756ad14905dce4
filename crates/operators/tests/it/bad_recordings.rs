//! Refusals of the recording source, and their messages.
#![forbid(unsafe_code)]

use crate::harness::{RECORDING, Recording, recording};
use num_complex::Complex;
use onbeat_operators::SigmfSource;
use onbeat_runtime::testing::Trial;
use onbeat_runtime::{Operator, Pace};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Message of the refusal.
fn refusal(path: &Path) -> String {
    let text = Trial::new(SigmfSource::new(path)).failure();
    // The check before a run refuses it too.
    let checked = SigmfSource::new(path).check().expect_err("a run fails").to_string();
    assert_eq!(text, format!("cannot start: {checked}"));
    text
}

#[test]
fn bad_metadata_are_refused() {
    let falling = json!([{ "core:sample_start": 9 }, { "core:sample_start": 3, "core:header_bytes": 44 }]);
    let header = json!([{ "core:sample_start": 0, "core:header_bytes": 2001 }]);
    for (key, value, expected) in [
        ("core:datatype", Value::Null, "`core:datatype` is missing"),
        (
            "core:datatype",
            json!("rf32_le"),
            "`rf32_le`: its samples are real; play it with `sigmf.source.real`",
        ),
        (
            "core:datatype",
            json!("ci12_be"),
            "`ci12_be`, which is not supported: supported are cu8, cu16_le, ",
        ),
        ("core:datatype", json!(8), "invalid type: integer `8`, expected a string"),
        ("core:sample_rate", Value::Null, "`core:sample_rate` is missing; correct it, or give `sample_rate`"),
        ("core:sample_rate", json!(0), "`core:sample_rate` is 0: it must be a finite number above 0"),
        ("core:sample_rate", json!(-48e3), "`core:sample_rate` is -48000"),
        ("core:sample_rate", json!("48k"), "expected f64"),
        (
            "core:num_channels",
            json!(2),
            "`core:num_channels`: it has 2 channels: choose one with `channel`, from 0 to 1, or play all",
        ),
        ("core:num_channels", json!(0), "it has 0 channels: there must be from 1 to 1024"),
        ("core:metadata_only", json!(true), "`core:metadata_only` is true"),
        (
            "core:dataset",
            json!("../test.sigmf-data"),
            "`core:dataset` is `../test.sigmf-data`: it must be the name",
        ),
        ("core:trailing_bytes", json!(u64::MAX), "`core:trailing_bytes` are 18446744073709551615 together"),
        ("core:trailing_bytes", json!(2000), "is empty: there are no samples"),
        (
            "core:sha512",
            json!("00"),
            "do not match their checksum `core:sha512`: they are truncated or changed",
        ),
        ("captures", header, "are 2001 together, and the data file has 2000 bytes"),
        ("captures", falling, "`core:sample_start` of capture 1 is 3, before the 9"),
        ("captures", json!([{}]), "missing field `core:sample_start`"),
        ("annotations", json!([{ "core:sample_start": -1 }]), "invalid value: integer `-1`"),
        ("annotations", json!(3), "invalid type: integer `3`, expected a sequence"),
        ("global", Value::Null, "missing field `global`"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut recording = recording(1000);
        let place =
            if key.starts_with("core:") { &mut recording.meta["global"] } else { &mut recording.meta };
        let place = place.as_object_mut().unwrap();
        if place.insert(key.to_string(), value.clone()).is_some() && value.is_null() {
            place.remove(key);
        }
        let text = refusal(&recording.write(folder.path()));
        assert!(text.contains(expected), "{key} = {value}: {text}");
        assert!(
            text.contains(&folder.path().join("test.sigmf-").display().to_string()),
            "no file is named: {text}"
        );
    }
}

/// Odd recordings are noted and played; `strict` refuses them.
#[test]
fn odd_metadata_are_noted() {
    let first = json!([{ "core:sample_start": 1000 }]);
    let falling = json!([{ "core:sample_start": 9 }, { "core:sample_start": 3 }]);
    let long = json!([{ "core:sample_start": 990, "core:sample_count": 11, "core:label": "A" }]);
    let huge = json!([{ "core:sample_start": u64::MAX, "core:sample_count": u64::MAX }]);
    let extension = json!([{ "name": "x", "version": "1", "optional": false }]);
    for (key, value, expected, samples) in [
        ("core:version", Value::Null, "`core:version` is missing", 1000),
        ("core:extensions", extension, "`x` is needed to read it, which is unknown here", 1000),
        ("core:trailing_bytes", json!(3), "has 2000 bytes, which is not a whole number of samples", 998),
        ("captures", falling, "are not sorted: one at 3 follows one at 9", 1000),
        (
            "captures",
            first,
            "contradict the data: capture 0 at sample 1000 lies outside of the 1000 samples",
            1000,
        ),
        ("annotations", long, "the end of annotation 0 (`A`) lies outside of the 1000", 1000),
        ("annotations", huge, "annotation 0 at sample 18446744073709551615 lies outside", 1000),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut recording = recording(1000);
        let place =
            if key.starts_with("core:") { &mut recording.meta["global"] } else { &mut recording.meta };
        place[key] = value;
        let path = recording.write(folder.path());
        let seen = Trial::new(SigmfSource::new(&path).pace(Pace::Fast)).run();
        assert_eq!(seen.samples::<Complex<f32>>("out").len(), samples, "{key}");
        assert!(seen.notes().iter().any(|note| note.contains(expected)), "{key}: {:?}", seen.notes());
        let source = SigmfSource::new(path).pace(Pace::Fast);
        let text = Trial::new(source).options(|options| options.strict = true).failure();
        assert!(text.contains("strict: ") && text.contains(expected), "{text}");
    }
}

/// Damages the recording in the folder.
type Spoil = fn(Recording, &Path);

#[test]
fn bad_files_are_refused() {
    const META: &str = "test.sigmf-meta";
    const DATA: &str = "test.sigmf-data";
    let table: [(Spoil, &str, &str); 11] = [
        (|recording, folder| truncate(recording, folder, 0), META, "is empty: there are no samples"),
        (|_, folder| fs::remove_file(folder.join(DATA)).unwrap(), DATA, "No such file or directory"),
        (|_, folder| folder_for(folder.join(DATA)), DATA, "it is a folder"),
        (|_, folder| fs::remove_file(folder.join(META)).unwrap(), META, "No such file or directory"),
        (|_, folder| folder_for(folder.join(META)), META, "it is a folder"),
        (
            |_, folder| fs::write(folder.join(META), "{\"global\": {").unwrap(),
            META,
            "is not SigMF metadata: EOF while parsing",
        ),
        (|_, folder| pipe_for(folder.join(DATA)), DATA, "it is a pipe"),
        (|_, folder| pipe_for(folder.join(META)), META, "it is a pipe"),
        (|_, folder| link_for(folder.join(DATA), DATA), DATA, "Too many levels of symbolic links"),
        (|_, folder| link_for(folder.join(DATA), "/dev/zero"), DATA, "it is a device"),
        (|_, folder| fs::write(folder.join(META), [0xff, 0xfe]).unwrap(), META, "valid UTF-8"),
    ];
    for (spoil, file, expected) in table {
        let folder = tempfile::tempdir().unwrap();
        let recording = recording(1000);
        let path = recording.write(folder.path());
        spoil(recording, folder.path());
        let text = refusal(&path);
        assert!(text.contains(expected), "{text}");
        assert!(text.contains(&folder.path().join(file).display().to_string()), "no file is named: {text}");
    }
}

fn truncate(mut recording: Recording, folder: &Path, bytes: usize) {
    recording.data.truncate(bytes);
    recording.write(folder);
}

fn folder_for(file: PathBuf) {
    fs::remove_file(&file).unwrap();
    fs::create_dir(file).unwrap();
}

fn pipe_for(file: PathBuf) {
    fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(file).status().unwrap().success());
}

fn link_for(file: PathBuf, to: &str) {
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(to, file).unwrap();
}

#[test]
fn a_truncated_copy_of_the_example_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = fs::read(Path::new(RECORDING).with_extension("sigmf-data")).unwrap();
    let mut meta: Value = serde_json::from_str(&fs::read_to_string(RECORDING).unwrap()).unwrap();
    let cut = Recording { data: data[..600_000].to_vec(), meta: meta.clone() };
    let text = refusal(&cut.write(folder.path()));
    assert!(text.contains("truncated or changed"), "{text}");
    meta["annotations"] = json!([]);
    let text = refusal(&Recording { meta, ..cut }.write(folder.path()));
    assert!(text.contains("truncated or changed"), "{text}");
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (path, expected) in [
        (folder.path().join("missing"), "missing.sigmf-meta: No such file"),
        (folder.path().to_path_buf(), "No such file"),
        (folder.path().join("a.sigmf"), "a.sigmf: No such file"),
        (folder.path().join("a.sigmf-collection"), "not supported"),
        (PathBuf::from("/dev/zero"), "cannot open /dev/zero.sigmf-meta"),
    ] {
        let text = refusal(&path);
        assert!(text.contains(expected), "{text}");
    }
}

proptest! {
    /// As the fuzzer does, without its counters: `ci/fuzz` finds more in minutes.
    #[test]
    fn metadata_with_anything_changed_play_or_are_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        number in "(-?[0-9]{1,20}|-?[0-9]e[0-9]{1,3}|null|true|\"x\"|\\[\\]|\\{\\})",
        at in any::<prop::sample::Index>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let recording = recording(20);
        let path = recording.write(folder.path());
        let text = recording.meta.to_string();
        let values: Vec<usize> = text.match_indices(':').map(|(place, _)| place + 1).collect();
        let begin = values[at.index(values.len())];
        let end = begin + text[begin..].find([',', '}']).unwrap_or(0);
        let valued = format!("{}{number}{}", &text[..begin], &text[end..]);
        let mut bytes = text.clone().into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let cut = bytes[..cut.index(bytes.len())].to_vec();
        for bytes in [valued.into_bytes(), bytes, cut] {
            fs::write(&path, bytes).unwrap();
            let checked = SigmfSource::new(&path).check();
            // The time limit is for recordings whose rate is so low that they last for years.
            let played = Trial::new(SigmfSource::new(&path)).stop_after(1_000_000_000).try_run();
            match checked {
                Ok(()) => prop_assert!(played.is_ok(), "{:?}", played.err()),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
