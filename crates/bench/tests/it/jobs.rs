//! Whole jobs: results that hold on any machine, and refused settings.

use crate::stops::StopsAfter;
use crate::watchdog::watched;
use onbeat_bench::jobs::{self, Job, JobsSettings};
use onbeat_bench::{BenchError, Unwatched};

fn tiny() -> JobsSettings {
    JobsSettings {
        jobs: vec![Job::Fm, Job::Spectrum, Job::Channelizer, Job::Audio, Job::Image],
        cores: vec![1],
        seconds: Some(1.0),
        rounds: 2,
        ..JobsSettings::default()
    }
}

#[test]
fn every_case_has_its_rate_and_a_good_result() {
    let found = watched(|| jobs::run(&tiny(), &mut Unwatched)).unwrap();
    let names: Vec<&str> = found.rows.iter().map(|row| &*row.name).collect();
    let all: Vec<String> = ["fm", "spectrum", "channelizer", "audio", "image"]
        .iter()
        .flat_map(|job| ["onbeat.greedy", "bare"].map(|side| format!("{job}.{side}.n1")))
        .collect();
    assert_eq!(names, all, "{:?}", found.result.notes);
    for name in all {
        let value = |what: &str| found.result.value(&format!("{name}.{what}")).expect(what);
        assert!(value("rate") > 0.0 && value("real_time") > 0.0 && value("of_bare") > 0.0, "{name}");
        assert_eq!(value("same"), 1.0, "{name}: with and without the engine, the result has the same bytes");
        let quality = value("quality");
        let is_good = match name.split('.').next() {
            Some("fm") => quality > 45.0,
            Some("spectrum") => quality < 1.0,
            Some("image") => quality == 0.0,
            _ => quality > 90.0,
        };
        assert!(is_good, "{name}: {quality}");
    }
    let svg = found.to_svg();
    assert!(svg.contains("1 core") && svg.contains("onbeat greedy"), "{svg}");
}

#[test]
fn several_cores_give_the_bytes_of_one() {
    let jobs = vec![Job::Fm, Job::Channelizer, Job::Audio, Job::Image];
    let settings = JobsSettings { jobs, cores: vec![2], rounds: 1, ..tiny() };
    let found = match watched(move || jobs::run(&settings, &mut Unwatched)) {
        // One core is all that this process may use.
        Err(BenchError::Settings(text)) if text.contains("2 are needed") => return,
        found => found.unwrap(),
    };
    for name in [
        "fm.onbeat.event",
        "channelizer.onbeat.event",
        "channelizer.onbeat.replicated",
        "audio.onbeat.event",
        "image.onbeat.event",
        "image.onbeat.replicated",
    ] {
        assert_eq!(found.result.value(&format!("{name}.n2.same")), Some(1.0), "{name}");
    }
}

#[test]
fn a_job_without_input_is_left_out() {
    let settings = JobsSettings { jobs: vec![Job::Adsb], ..tiny() };
    let error = jobs::run(&settings, &mut Unwatched).unwrap_err().to_string();
    assert!(error.contains("adsb: left out: it needs a capture") && error.contains("--adsb FILE"), "{error}");
}

/// The capture of the example has frames of one aircraft.
#[test]
fn frames_of_a_capture_are_counted() {
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/adsb.cu8");
    let settings = JobsSettings { jobs: vec![Job::Adsb], adsb: Some(capture.into()), ..tiny() };
    let found = watched(move || jobs::run(&settings, &mut Unwatched)).unwrap();
    assert!(found.result.value("adsb.onbeat.greedy.n1.quality") > Some(0.0), "{:?}", found.result);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for (settings, text) in [
        (JobsSettings { cores: vec![], ..tiny() }, "cores: give at least one number"),
        (JobsSettings { cores: vec![2, 2], ..tiny() }, "cores: a number occurs twice"),
        (JobsSettings { cores: vec![900], ..tiny() }, "900 are needed, but there are"),
        (JobsSettings { on: vec![8000], ..tiny() }, "core 8000 is not available to this process"),
        (JobsSettings { jobs: vec![], ..tiny() }, "must not be empty"),
        (JobsSettings { rounds: 0, ..tiny() }, "must not be empty or 0"),
        (JobsSettings { seconds: Some(0.5), ..tiny() }, "seconds: 0.5: it is the length of the input"),
        (JobsSettings { seconds: Some(f64::NAN), ..tiny() }, "must be from 1 to 3000"),
        (JobsSettings { peers: Some("no-folder".into()), ..tiny() }, "no-folder/jobs.sh does not exist"),
    ] {
        let error = jobs::run(&settings, &mut Unwatched).unwrap_err().to_string();
        assert!(error.contains(text), "{text}: {error}");
    }
}

#[test]
fn a_stop_before_anything_says_so() {
    assert!(matches!(jobs::run(&tiny(), &mut StopsAfter::looks(0)), Err(BenchError::Stopped)));
}
