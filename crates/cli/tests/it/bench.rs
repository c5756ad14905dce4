//! `onbeat bench`, with counts so small that its figures mean nothing.

use super::harness::{Place, until};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const TINY: [&str; 8] = ["bench", "overhead", "--runs", "2", "--iterations", "30", "--warm-up", "2"];

fn tiny<'a>(more: &[&'a str]) -> Vec<&'a str> {
    TINY.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn people_get_tables() {
    let answer = Place::new().onbeat(&tiny(&[]));
    assert_eq!((answer.status, &*answer.stderr), (Some(0), ""), "{answer:?}");
    for part in [
        "overhead: median",
        "steady ns",
        "x bare",
        "process ns",
        "50 % at",
        "pinned2",
        "fan_out_4",
        "engine measured",
    ] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    assert!(
        answer.stdout.lines().all(|line| line.chars().count() <= 110 || line.contains(':')),
        "{}",
        answer.stdout
    );
}

#[test]
fn programs_get_json_or_csv() {
    let place = Place::new();
    let answer =
        place.onbeat(&tiny(&["--format", "json", "--cases", "tx_rx,chain_4", "--schedulers", "greedy"]));
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let found: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    let keys: Vec<&String> = found.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["bench", "machine", "parameters", "figures", "notes", "raw"]);
    assert_eq!(found["parameters"]["cases"], serde_json::json!(["tx_rx", "chain_4"]));
    for name in ["steady.greedy.tx_rx", "process.greedy.chain_4", "break_even.greedy.tx_rx.p50"] {
        let figure = &found["figures"][name];
        assert!(
            figure["value"].is_f64() && figure["unit"] == "ns" && figure["runs"] == 2,
            "{name}: {figure}"
        );
    }
    let answer = place.onbeat(&tiny(&["--format", "csv", "--cases", "tx_rx", "--schedulers", "greedy"]));
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert!(lines[0].starts_with("scheduler,case,steady_ns,min_ns,max_ns,bare_ns,times_bare"), "{lines:?}");
    assert!(lines[1].starts_with("greedy,tx_rx,"), "{lines:?}");
    assert_eq!(lines[0].matches(',').count(), lines[1].matches(',').count());
}

const TINY_QUEUE: [&str; 12] =
    ["bench", "queue", "200", "400", "3", "2", "--latencies", "3", "--bursts", "3", "--lost-rounds", "600"];

#[test]
fn the_work_queue_is_measured_too() {
    let place = Place::new();
    let answer = place.onbeat(&TINY_QUEUE);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    for part in [
        "queue: median",
        "model_before",
        "onbeat_owned_many",
        "crossbeam",
        "/ after",
        "wake-ups per burst",
        "lost",
    ] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    let more = [&TINY_QUEUE[..], &["--format", "json", "--plot", "q.svg"]].concat();
    let answer = place.onbeat(&more);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let found: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!((&found["bench"], &found["parameters"]["producers"]), (&"queue".into(), &3.into()));
    for name in [
        "single.onbeat",
        "multi.model_after",
        "cpu.burst.free.onbeat",
        "ratio.multi.after.onbeat",
        "lost.onbeat.events",
    ] {
        assert!(found["figures"][name]["value"].is_f64(), "{name}: {answer:?}");
    }
    assert_eq!(found["figures"]["lost.onbeat.events"]["value"], 0.0);
    assert!(fs::read_to_string(place.path("q.svg")).expect("a plot").contains("model: batching change"));
    for (arguments, part) in [
        (&["bench", "queue", "0"][..], "'0' for '[SINGLE]'"),
        (
            &["bench", "queue", "10", "2", "3", "1"],
            "2 items for 3 producers: each producer needs at least one",
        ),
    ] {
        let answer = place.onbeat(arguments);
        assert!(answer.status == Some(1) && answer.stderr.contains(part), "{answer:?}");
    }
}

#[test]
fn a_plot_is_a_file() {
    let place = Place::new();
    let answer = place.onbeat(&tiny(&["--plot", "o.svg", "--schedulers", "greedy"]));
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("plot written to o.svg"), "{}", answer.stdout);
    let svg = fs::read_to_string(place.path("o.svg")).expect("a plot");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("Tx → Rx"), "{svg}");
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::new();
    for (arguments, parts) in [
        (&["--cases", "tx_xr"][..], &["'tx_xr' for '--cases", "similar value exists: 'tx_rx'"][..]),
        (&["--schedulers", "gredy"], &["'gredy' for '--schedulers", "'greedy'"]),
        (&["--method", "fast"], &["'fast' for '--method", "process, steady, both"]),
        (&["--iterations", "0"], &["'0' for '--iterations", "not in 1.."]),
        (&["--iterations", "-5"], &["'-5' for '--iterations"]),
        (&["--iterations", "many"], &["'many' for '--iterations"]),
        (&["--warm-up", "0"], &["'0' for '--warm-up", "not in 1.."]),
        (&["--runs", "0"], &["'0' for '--runs", "not in 1.."]),
        (&["--workers", "0"], &["'0' for '--workers", "not in 1.."]),
        (&["--workers", "1,two"], &["'two' for '--workers"]),
        (&["--idle", "nap"], &["`nap` is not an idle setting", "spin:20us"]),
        (&["--cores", "8191"], &["greedy: not available: there is no core 8191"]),
        (&["--cores", "x"], &["'x' for '--cores", "0-3"]),
        (&["--peer", "gnuradio"], &["'gnuradio' for '--peer", "holoscan"]),
        (&["--plot", "o.png"], &["--plot o.png: plots are written as SVG", "--plot o.svg"]),
        (&["--plot", "no/o.svg"], &["--plot no/o.svg: cannot be written: No such file"]),
        (&["--format", "xml"], &["'xml' for '--format"]),
    ] {
        let mut all = vec!["bench", "overhead"];
        all.extend(arguments);
        let answer = place.onbeat(&all);
        assert_eq!((answer.status, &*answer.stdout), (Some(1), ""), "{arguments:?}: {answer:?}");
        for part in parts {
            assert!(answer.stderr.contains(part), "{arguments:?}: {part}: {}", answer.stderr);
        }
    }
    let answer = place.onbeat(&["bench"]);
    assert!(answer.status == Some(1) && answer.stderr.contains("overhead"), "{answer:?}");
}

/// Script with the interface of `peers/holoscan/overhead.py --serve`.
const PEER: &str = r#"#!/bin/sh
[ "$1" = -c ] && [ "$3" = --serve ] || { echo "asked for $1 $3" >&2; exit 9; }
echo '{"holoscan": "4.6.0", "python": "3.11.7"}'
while read -r wanted; do
    case "$wanted" in
        *'"case":"chain_4"'*) echo '{"error": "of 20 iterations rx made 7"}' ;;
        *) echo '{"wall_ns": 400000, "begin_ns": 1000, "end_ns": 181000}' ;;
    esac
done
"#;

#[test]
fn a_peer_runs_the_same_cases_in_turn() {
    let place = Place::new();
    let python = place.path("python");
    fs::write(&python, PEER).expect("a file");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("permissions");
    let python = python.to_str().expect("a path in text");
    let peer = ["--peer", "holoscan", "--python", python, "--peer-iterations", "20", "--format", "json"];
    let answer =
        place.onbeat(&tiny(&[&["--cases", "tx_rx,chain_4", "--schedulers", "greedy"][..], &peer].concat()));
    assert_eq!((answer.status, &*answer.stderr), (Some(0), ""), "{answer:?}");
    let found: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    let figure = |name: &str| found["figures"][name]["value"].as_f64();
    assert_eq!(figure("peer.holoscan.process.greedy.tx_rx"), Some(20_000.0));
    // 20 iterations, 2 of them to get warm.
    assert_eq!(figure("peer.holoscan.steady.greedy.tx_rx"), Some(10_000.0));
    assert_eq!(figure("peer.holoscan.steady.greedy.chain_4"), None);
    let notes = found["notes"].as_array().expect("a list");
    let said = "holoscan: chain_4 under greedy: of 20 iterations rx made 7";
    assert!(notes.iter().any(|note| note == said), "{notes:?}");
    assert_eq!(found["parameters"]["peer"]["version"], "4.6.0");
    // The same script answers for onbeat's operators in Python, and for the loop without an engine.
    let iterations = found["parameters"]["python"]["iterations"].as_f64().expect("a number");
    assert_eq!(figure("python.process.greedy.tx_rx"), Some(400_000.0 / iterations));
    assert_eq!(figure("python.bare.chain_4"), None);
    assert!(figure("python.bare.tx_rx").is_some() && figure("python.steady.greedy.tx_rx").is_some());
}

#[test]
fn a_peer_that_is_not_there_leaves_our_figures() {
    let place = Place::new();
    let peer =
        ["--peer", "holoscan", "--python", "./no-python", "--cases", "tx_rx", "--schedulers", "greedy"];
    let answer = place.onbeat(&tiny(&peer));
    assert_eq!(answer.status, Some(0), "{answer:?}");
    for part in ["holoscan: not available: ./no-python: No such file", "pip install", "greedy     tx_rx"] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
}

#[test]
fn an_interruption_shows_what_was_measured_until_then() {
    let place = Place::new();
    let child = place.start(&[
        "bench",
        "overhead",
        "--runs",
        "60000",
        "--iterations",
        "10",
        "--cases",
        "tx_rx",
        "--schedulers",
        "greedy",
    ]);
    // The first round is over long before that.
    let stat = format!("/proc/{}/stat", child.id());
    let worked = || {
        let stat = fs::read_to_string(&stat).ok()?;
        let ticks: u64 = stat.rsplit(')').next()?.split_whitespace().nth(11)?.parse().ok()?;
        (ticks > 20).then_some(())
    };
    until("it has measured for a while", worked).expect("it measures");
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill");
    let answer = place.end(child);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("stopped in round ") && answer.stdout.contains("steady ns"), "{answer:?}");
    assert!(answer.stderr.contains("stopping"), "{}", answer.stderr);
}

#[test]
fn regular_frames_are_measured_too() {
    let place = Place::new();
    let tiny = [
        "bench",
        "realtime",
        "--duration",
        "0.1",
        "--target-fps",
        "100",
        "--scheduling-policy",
        "SCHED_FIFO",
        "--bg-load-intensity",
        "10",
        "--output",
        "rt",
    ];
    let answer = place.onbeat(&tiny);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    for part in [
        "realtime: 100.0 frames per second",
        "baseline",
        "floor_no_load",
        "execution",
        "written to rt/realtime.json",
    ] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    let json = fs::read_to_string(place.path("rt/realtime.json")).expect("the figures");
    let found: Value = serde_json::from_str(&json).expect("JSON");
    assert!(found["figures"]["baseline.period.p50"]["value"].is_f64(), "{json}");
    assert!(found["raw"]["baseline"][0]["period_ns"].is_array(), "{json}");
    assert!(fs::read_to_string(place.path("rt/realtime.svg")).expect("a plot").contains("near the target"));
    for (arguments, part) in [
        (&["--scheduling-policy", "SCHED_OTHER"][..], "SCHED_FIFO, SCHED_RR or SCHED_DEADLINE"),
        (&["--duration", "0"], "fewer than 5 frames"),
        (&["--duration", "-1"], "fewer than 5 frames"),
        (&["--pin-cpu", "4000"], "core 4000 is not available to this process"),
        (&["--output", "/proc/none"], "--output /proc/none"),
    ] {
        let answer = place.onbeat(&[&["bench", "realtime"], arguments].concat());
        assert_eq!(answer.status, Some(1), "{answer:?}");
        assert!(answer.stderr.contains(part), "{part}: {}", answer.stderr);
    }
}
