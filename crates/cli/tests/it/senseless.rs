//! Senseless arguments are refused with their name, their value, and a fix.

use super::harness::Place;
use std::fs;

const RUN: &[&str] = &["run", "late.toml"];

/// Command; further arguments; parts of the message.
const CASES: &[(&[&str], &[&str], &[&str])] = &[
    (RUN, &["--explain=maybe"], &["--explain maybe", "`auto`, `on`, `off`"]),
    (RUN, &["--max-misses", "-1"], &["'-1' for '--max-misses <N>'", "write a whole number: only digits"]),
    (RUN, &["--max-misses", "1.5"], &["'1.5' for '--max-misses <N>'", "write a whole number: only digits"]),
    (RUN, &["--max-misses", "99999999999999999999"], &["'--max-misses <N>': it is too large"]),
    (RUN, &["--metrics", "127.0.0.1:99999"], &["--metrics 127.0.0.1:99999: not an address with a port"]),
    (
        RUN,
        &["--metrics", "192.0.2.1:0"],
        &[
            "--metrics 192.0.2.1:0: this machine has no such address",
            "use 127.0.0.1:9464 for this machine only",
        ],
    ),
    (RUN, &["--trace", "-"], &["--trace -: a trace must be written to a file", "./-"]),
    (RUN, &["--trace", "."], &["--trace .: cannot be written: it is a folder", "--trace FILE"]),
    (
        RUN,
        &["--trace", "whole.json"],
        &["--trace whole.json: cannot be written: the file is the record of a run"],
    ),
    (
        RUN,
        &["--on-miss", "trace,file=whole.json"],
        &["file=whole.json: cannot be written: the file is the record of a run"],
    ),
    (RUN, &["--trace", "x", "--record", "x"], &["x: the trace writes it and the record writes it"]),
    (RUN, &["--trace", "late.toml"], &["onbeat, as the pipeline, reads it and the trace writes it"]),
    (RUN, &["--on-miss", "trace,file="], &["write trace[,file=FILE]"]),
    (RUN, &["--on-miss", "trace,file=."], &["--on-miss trace,file=.: cannot be written: it is a folder"]),
    (RUN, &["--on-miss", "trace,file=no/x"], &["--on-miss trace,file=no/x: cannot be written: No such file"]),
    (
        RUN,
        &["--on-miss", "trace,file=late.toml"],
        &["late.toml: onbeat, as the pipeline, reads it and --on-miss trace writes it"],
    ),
    (
        RUN,
        &["--on-miss", "trace,file=x.json", "--record", "x.json"],
        &["x.json: the record writes it and --on-miss trace writes it"],
    ),
    (RUN, &["--trace", "x", "--on-miss", "continue"], &["--trace and --on-miss cannot be used together"]),
    (&["ctl"], &["late.toml", "top"], &["control socket `late.toml`: it is a file, not a socket"]),
    (&["ctl"], &["no.ctl", "top"], &["control socket `no.ctl`: no such socket", "--control SOCKET"]),
    (&["report"], &["."], &["record `.`: cannot be read", "use a file written by `onbeat run`"]),
    (&["report"], &["empty.json"], &["record `empty.json`: cannot be read: not JSON"]),
    (
        &["report"],
        &["half.json"],
        &["record `half.json`: cannot be read: not JSON: EOF", "written in one piece"],
    ),
    (&["report"], &["old.json"], &["it is version 0 of onbeat.record and this onbeat reads version"]),
    (&["report"], &["other.json"], &["its schema is \"other\""]),
    (
        &["report"],
        &["whole.json", "-o", "old.json"],
        &["report `old.json`: cannot be written: the file is the record of a run and would be overwritten"],
    ),
    (
        &["bench", "realtime"],
        &["--duration", "-1"],
        &["0 s at 60 frames per second are fewer than 5 frames", "0.083 s or more"],
    ),
    (&["bench", "realtime"], &["--duration", "30s"], &["'30s' for '--duration <SECONDS>': write a number"]),
    (&["bench", "realtime"], &["--duration", "1e12"], &["frames per pass", "make the pass shorter"]),
    (&["bench", "realtime"], &["--target-fps", "nan"], &["target-fps is NaN: it must be from 0.1 to 10000"]),
    (&["bench", "realtime"], &["--target-fps", "0"], &["target-fps is 0: it must be from 0.1 to 10000"]),
    (&["bench", "realtime"], &["--priority", "f:80"], &["'f:80' for '--priority <N>': write a whole number"]),
    (&["bench", "realtime"], &["--priority", "99"], &["99 is not in 1..=98"]),
    (&["bench", "realtime"], &["--pin-cpu", "4096"], &["core 4096 is not available to this process"]),
    (
        &["bench", "explain"],
        &["--seconds", "-1"],
        &["seconds from 0.001 to 3600: they are 41, [3, 6] and -1"],
    ),
    (&["bench", "explain"], &["--seconds", "1e300"], &["seconds from 0.001 to 3600"]),
    (&["bench", "explain"], &["--kernels", "0"], &["0 is not in 1..=1000"]),
    (&["bench", "explain"], &["--quantum", "1"], &["write a size from 4 B to 1 GiB"]),
    (&["bench", "echo"], &["--transports", "tpc"], &["'tpc' for '--transports", "udp, tcp, pipe"]),
    (&["bench", "echo"], &["--intervals", "1us"], &["interval is 0.001 ms: it must be from 0.05 to 1000 ms"]),
    (&["bench", "echo"], &["--intervals", "soon"], &["'soon' for '--intervals"]),
    (&["bench", "echo"], &["--bytes", "402"], &["bytes is 402: it must be a multiple of 4 (one sample)"]),
    (&["bench", "echo"], &["--rounds", "0"], &["'0' for '--rounds"]),
    (&["bench", "echo"], &["--seconds", "-1"], &["seconds is -1: it must be from 0.001 to 600"]),
    (&["bench", "echo"], &["--client", "nap"], &["'nap' for '--client", "park, spin"]),
    (&["bench", "echo"], &["--server-core", "4096"], &["core 4096 is not available to this process"]),
];

#[test]
fn what_nobody_can_mean_is_refused() {
    let place = Place::new();
    assert_eq!(place.onbeat(&["run", "late.toml", "-q", "--record", "whole.json"]).status, Some(0));
    let whole = fs::read_to_string(place.path("whole.json")).expect("a record");
    let (file, old) =
        (|name: &str, text: &str| fs::write(place.path(name), text).expect("a file"), "\"version\": 0");
    file("empty.json", "");
    file("half.json", &whole[..whole.floor_char_boundary(whole.len() / 2)]);
    file("old.json", &whole.replacen("\"version\": 1", old, 1));
    file("other.json", &whole.replacen("onbeat.record", "other", 1));
    fs::remove_dir_all(place.path("out")).expect("what the run made");
    let names = || {
        let found = fs::read_dir(place.path("")).expect("our folder");
        let mut names: Vec<_> = found.map(|entry| entry.expect("a file").file_name()).collect();
        names.retain(|name| name != "stdout.txt" && name != "stderr.txt");
        names.sort();
        names
    };
    let before = names();
    let mut wrong = Vec::new();
    for (words, typed, parts) in CASES {
        let answer = place.onbeat(&[*words, *typed].concat());
        let is_said = parts.iter().all(|part| answer.stderr.contains(part));
        if answer.status != Some(1) || !is_said || answer.stderr.contains("panicked") || names() != before {
            wrong.push(format!("{words:?} {typed:?}: {answer:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Readers of a record do not trust its numbers: all are set to extreme values in turn.
#[test]
fn a_record_with_impossible_numbers_is_shown_or_refused() {
    let place = Place::new();
    place.onbeat(&["run", "late.toml", "-q", "--record", "whole.json"]);
    let text = fs::read_to_string(place.path("whole.json")).expect("a record");
    let whole: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for value in
        [serde_json::json!(0), u32::MAX.into(), i64::MAX.into(), u64::MAX.into(), (-1).into(), 1e308.into()]
    {
        let mut all = whole.clone();
        replace(&mut all, &value);
        all["version"] = whole["version"].clone();
        fs::write(place.path("all.json"), all.to_string()).expect("a file");
        for format in ["html", "json", "csv", "markdown"] {
            let answer = place.onbeat(&["report", "all.json", "whole.json", "--format", format, "-o", "x"]);
            let is_good = matches!(answer.status, Some(0 | 1)) && !answer.stderr.contains("panicked");
            assert!(is_good, "{value}, {format}: {answer:#?}");
        }
    }
}

/// Replaces all numbers of the value's kind.
fn replace(place: &mut serde_json::Value, value: &serde_json::Value) {
    match place {
        serde_json::Value::Number(number) if number.is_f64() || !value.is_f64() => *place = value.clone(),
        serde_json::Value::Array(all) => all.iter_mut().for_each(|one| replace(one, value)),
        serde_json::Value::Object(all) => all.values_mut().for_each(|one| replace(one, value)),
        _ => {}
    }
}
