//! What users of other tools type.

use super::harness::Place;
use super::typed::{Case, try_all};
use std::io::Write;
use std::process::Stdio;

const CASES: &[Case] = &[
    (
        "a pipeline whose file is missing",
        &["check", "no_file.toml"],
        1,
        &[],
        &["operator `iq`: cannot open not-there.sigmf-meta: No such file"],
    ),
    (
        "a gate that nobody can open",
        &["check", "gate.toml"],
        1,
        &[],
        &["gate `go` is closed at the start, and nobody can open it", "--control"],
    ),
    ("a length in two units", &["run", "count.toml", "-q", "-d", "1h30m"], 0, &[], &[]),
    ("cores of the cpuset", &["plan", "count.toml", "--cores", "cpuset:0"], 0, &[], &[]),
    (
        "too many cores of the cpuset",
        &["plan", "count.toml", "--cores", "cpuset:5000"],
        1,
        &[],
        &["whose places are 0 to"],
    ),
];

#[test]
fn habits_are_answered() {
    try_all(CASES);
}

#[test]
fn a_pipeline_comes_from_stdin() {
    let place = Place::new();
    let text = std::fs::read_to_string(place.path("count.toml")).unwrap();
    let mut run = place.command(&["run", "-", "--format", "csv"]);
    let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let answer = child.wait_with_output().unwrap();
    assert!(
        answer.status.success() && String::from_utf8_lossy(&answer.stdout).contains("numbers"),
        "{answer:?}"
    );
}
