//! `onbeat noise`, so short that its figures mean little.

use super::harness::{Answer, Place, until};
use serde_json::Value;
use std::fs;
use std::process::Command;

fn hist(place: &Place, more: &[&str]) -> Answer {
    place.onbeat(&[&["noise", "hist", "-c", "0", "-d", "300ms"][..], more].concat())
}

#[test]
fn people_get_what_rtla_writes_and_the_causes() {
    let place = Place::new();
    let answer = hist(&place, &["-T", "1"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    for part in [
        "# Time unit is microseconds (us)",
        "Index   CPU-000",
        "over:",
        "count:",
        "unexplained %",
        "causes from",
    ] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    let answer =
        hist(&place, &["--no-header", "--no-summary", "--no-index", "--with-zeros", "-E", "12", "-b", "2"]);
    let rows = answer.stdout.lines().take_while(|line| !line.is_empty()).count();
    assert_eq!((answer.status, rows), (Some(0), 12), "{answer:?}");
    let answer = place.onbeat(&["noise", "top", "-c", "0", "-d", "300ms", "-p", "100ms", "-r", "50ms"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(
        answer.stdout.contains("CPU Period       Runtime        Noise  % CPU Aval   Max Noise"),
        "{answer:?}"
    );
    assert!(answer.stdout.contains("  0 #"), "{answer:?}");
    // As with rtla, quiet is only the summary at the end.
    let quiet = hist(&place, &["-q"]);
    assert!(quiet.stdout.contains("count:") && quiet.stderr.is_empty(), "{quiet:?}");
    let auto = place.onbeat(&["noise", "top", "-c", "0", "-d", "20s", "-a", "1ns", "-q"]);
    assert_eq!(auto.status, Some(2), "{auto:?}");
    assert!(place.path("noise_trace.txt").exists());
    assert_eq!(place.onbeat(&["noise", "hist", "-c", "0", "-d", "0.1s", "-tmine.txt", "-q"]).status, Some(0));
    assert!(place.path("mine.txt").exists());
}

#[test]
fn programs_get_json_or_csv_and_a_record() {
    let place = Place::new();
    let answer = hist(&place, &["--format", "json", "--record", "idle.json"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let found: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!((&found["schema"], &found["name"]), (&"onbeat.noise".into(), &"idle".into()));
    let written: Value =
        serde_json::from_str(&fs::read_to_string(place.path("idle.json")).expect("a record")).expect("JSON");
    assert_eq!(written, found);
    let parts = &found["cpus"][0]["parts"];
    let sum: u64 = ["hardware", "nmi", "irq", "softirq", "thread"]
        .iter()
        .map(|class| parts[class]["ns"].as_u64().unwrap())
        .sum();
    assert_eq!(
        sum + parts["unexplained_ns"].as_u64().unwrap(),
        found["cpus"][0]["noise_ns"].as_u64().unwrap()
    );
    // It is a record of noise, so it may be replaced; what is none is not.
    assert_eq!(hist(&place, &["--record", "idle.json"]).status, Some(0));
    let answer = hist(&place, &["--record", "count.toml"]);
    assert!(answer.status == Some(1) && answer.stderr.contains("is not a noise record"), "{answer:?}");
    let answer = hist(&place, &["--format", "csv", "-T", "1"]);
    assert!(answer.stdout.starts_with("cpu,noise_ns,hardware_share"), "{answer:?}");
    assert!(answer.stdout.contains("\ncpu,periods,runtime_ns,noise_ns,available"), "{answer:?}");
    assert!(answer.stdout.contains("\ncpu,from_ns,to_ns,count\n"), "{answer:?}");
}

#[test]
fn a_limit_that_is_hit_is_exit_status_2() {
    let place = Place::new();
    for limit in [&["-s", "1ns", "-T", "1ns"][..], &["-S", "1ns", "-T", "1ns"]] {
        let answer = place.onbeat(&[&["noise", "hist", "-c", "0", "-d", "20s"], limit].concat());
        assert_eq!(answer.status, Some(2), "{answer:?}");
        assert!(answer.stdout.contains("above the limit of 1 ns"), "{answer:?}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::new();
    for (arguments, parts) in [
        (&["-c", "8191"][..], &["CPU 8191 does not exist", "-c"][..]),
        (&["-c", "1-"], &["--cpus", "0-3"]),
        (&["-c", ""], &["empty", "0-3,5"]),
        (&["-H", "1000"], &["-H 1000", "none of them is online"]),
        (&["-p", "0"], &["--period", "a time above 0"]),
        (&["-p", "1e6x"], &["--period"]),
        (&["-T", "-1"], &["--threshold"]),
        (&["-r", "2s"], &["does not fit in a period", "raise -p"]),
        (&["-T", "1h"], &["no gap could be found"]),
        (&["-P", "f:99"], &["-P f:99", "f:98"]),
        (&["-P", "fifo"], &["--priority", "f:80"]),
        (&["-E", "9"], &["--entries", "10..=9999999"]),
        (&["-b", "0"], &["--bucket-size"]),
        (&["--backend", "magic"], &["perf, proc, tracer"]),
        (&["--record", "/no/where.json"], &["--record /no/where.json: cannot be written"]),
        (&["-a", "5", "-s", "3"], &["--auto", "--stop"]),
        (&["-e", "sched"], &["-e: these events would not be shown", "-t"]),
        (&["-e", "sched/x", "-t"], &["--event", "SYSTEM:EVENT"]),
        (&["--filter", "a == 1", "-t"], &["--filter a == 1: it must follow the -e"]),
        (&["--bpf-action", "x.o"], &["--bpf-action is not available", "--on-threshold shell"]),
        (&["--trace-buffer-size", "1"], &["--trace-buffer-size", "64..="]),
        (&["--on-threshold", "explode"], &["--on-threshold", "shell,command=COMMAND"]),
        (&["--on-end", "signal,num=9,pid=1"], &["--on-end", "above 1"]),
        (&["-C", "/no/where"], &["-C /no/where", "cgroup.procs", "/sys/fs/cgroup/NAME"]),
        (&["--format", "xml"], &["human, json, csv"]),
    ] {
        let answer = place.onbeat(&[&["noise", "hist"][..], arguments].concat());
        assert_eq!(answer.status, Some(1), "{arguments:?}: {answer:?}");
        for part in parts {
            assert!(answer.stderr.contains(part), "{arguments:?}, {part}: {}", answer.stderr);
        }
    }
}

#[test]
fn ctrl_c_ends_it_with_a_summary() {
    let place = Place::new();
    let child = place.start(&["noise", "hist", "-c", "0", "--record", "r.json"]);
    let id = child.id().to_string();
    let measures = || {
        let threads = fs::read_dir(format!("/proc/{id}/task")).ok()?;
        let mut names = threads.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.any(|name| name.trim() == "noise/0").then_some(())
    };
    until("it measures", measures).expect("a thread that measures");
    std::thread::sleep(std::time::Duration::from_millis(200));
    let killed = Command::new("kill").args(["-INT", &id]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let answer = place.end(child);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("count:") && place.path("r.json").exists(), "{answer:?}");
}

#[test]
fn records_are_compared_and_projected() {
    let place = Place::new();
    for (name, threshold) in [("a.json", "1"), ("b.json", "20")] {
        assert_eq!(hist(&place, &["-T", threshold, "--record", name, "-q"]).status, Some(0));
    }
    let answer = place.onbeat(&["noise", "compare", "a.json", "b.json", "--plot", "n.svg"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("setup") && answer.stdout.contains("plot written to n.svg"), "{answer:?}");
    let svg = fs::read_to_string(place.path("n.svg")).expect("a plot");
    assert!(svg.contains("All gaps by their length") && svg.contains("b, CPU 0"), "{svg}");
    let answer =
        place.onbeat(&["noise", "project", "a.json", "--nodes", "1,64", "--step", "1ms", "--format", "csv"]);
    assert_eq!((answer.status, answer.stdout.lines().count()), (Some(0), 3), "{answer:?}");
    let answer = place.onbeat(&["noise", "experiment", "-c", "0", "-d", "300ms", "--output", "e"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    for file in ["e/as-is.json", "e/fifo-1.json", "e/noise.svg"] {
        assert!(place.path(file).exists(), "{file}: {answer:?}");
    }
    for (arguments, part) in [
        (&["compare"][..], "<RECORD>"),
        (&["compare", "none.json"], "none.json: cannot be read"),
        (&["compare", "count.toml"], "count.toml: not JSON"),
        (&["compare", "a.json", "--plot", "n.png"], "plots are written as SVG"),
        (&["project", "a.json", "--nodes", "0"], "--nodes"),
        (&["project", "a.json", "--step", "0"], "--step"),
        (&["project", "/dev/null"], "not JSON"),
    ] {
        let answer = place.onbeat(&[&["noise"][..], arguments].concat());
        assert!(answer.status == Some(1) && answer.stderr.contains(part), "{arguments:?}: {answer:?}");
    }
}

#[test]
fn the_last_events_are_written_for_people_and_for_perfetto() {
    let place = Place::new();
    let answer = hist(&place, &["-t", "--perfetto", "p.json", "-T", "1"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let lines = fs::read_to_string(place.path("noise_trace.txt")).expect("lines");
    assert!(
        lines.lines().all(|line| line.contains("_noise: ") || line.contains("sample_threshold: ")),
        "{lines}"
    );
    let trace: Value =
        serde_json::from_str(&fs::read_to_string(place.path("p.json")).expect("a trace")).expect("JSON");
    assert!(trace["traceEvents"].is_array());
    let answer = hist(&place, &["--trace=/no/where.txt"]);
    assert!(
        answer.status == Some(1) && answer.stderr.contains("--trace /no/where.txt: cannot be written"),
        "{answer:?}"
    );
}

#[test]
fn a_limit_can_have_something_done() {
    let place = Place::new();
    let limit = ["noise", "hist", "-c", "0", "-q", "-s", "1ns", "-T", "1ns"];
    let actions = [
        "--on-threshold",
        "shell,command=echo hit > hit.txt",
        "--on-threshold",
        "trace,file=t.txt",
        "--on-end",
        "shell,command=echo end",
    ];
    let answer = place.onbeat(&[&limit[..], &actions].concat());
    assert_eq!(answer.status, Some(2), "{answer:?}");
    assert!(place.path("hit.txt").exists() && place.path("t.txt").exists(), "{answer:?}");
    assert!(answer.stderr.contains("end"), "{answer:?}");
    // Without a limit that is hit nothing is done, and what fails is told.
    let answer = hist(
        &place,
        &["-q", "--on-threshold", "shell,command=touch no.txt", "--on-end", "shell,command=exit 3"],
    );
    assert!(answer.status == Some(1) && answer.stderr.contains("`exit 3`: exit status: 3"), "{answer:?}");
    assert!(!place.path("no.txt").exists());
}
