//! `onbeat timerlat`, so short that its figures mean little.

use super::harness::Place;
use serde_json::Value;

#[test]
fn people_get_what_rtla_writes_and_why() {
    let place = Place::new();
    let answer = place.onbeat(&["timerlat", "top", "-c", "0", "-d", "200ms"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    for part in [
        "CPU COUNT      |      cur       min       avg       max |",
        "Ret user Timer Latency (us)",
        "  0 #",
        "ALL #",
        "was the latest",
        "(100%",
    ] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    let answer = place.onbeat(&["timerlat", "hist", "-c", "0", "-d", "200ms", "--no-aa", "--no-irq"]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("Usr-000") && !answer.stdout.contains("IRQ-000"), "{answer:?}");
    assert!(!answer.stdout.contains("latest"), "{answer:?}");
}

#[test]
fn programs_get_json_or_csv() {
    let place = Place::new();
    let answer = place
        .onbeat(&["timerlat", "hist", "-c", "0", "-d", "200ms", "--format", "json", "--record", "t.json"]);
    let found: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!((&found["schema"], &found["name"]), (&"onbeat.timerlat".into(), &"t".into()));
    assert!(place.path("t.json").exists());
    let answer = place.onbeat(&["timerlat", "top", "-c", "0", "-d", "200ms", "--format", "csv"]);
    assert!(answer.stdout.starts_with("cpu,kind,count,min_ns,mean_ns,median_ns"), "{answer:?}");
}

#[test]
fn a_late_timer_is_exit_status_2_and_is_analysed() {
    let place = Place::new();
    let answer = place.onbeat(&["timerlat", "top", "-c", "0", "-d", "20s", "-a", "1ns"]);
    assert_eq!(answer.status, Some(2), "{answer:?}");
    for part in ["timerlat hit stop: CPU 0", "## CPU 0 hit stop, analyzing it ##", "Thread latency"] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    let answer = place.onbeat(&["timerlat", "hist", "-c", "0", "-T", "1ns", "--dump-tasks", "--no-aa"]);
    assert!(answer.stdout.contains("Tasks on the measured CPUs"), "{answer:?}");
    let answer = place.onbeat(&["timerlat", "hist", "-c", "0", "--aa-only", "1ns"]);
    assert!(answer.status == Some(2) && answer.stdout.starts_with("timerlat hit stop"), "{answer:?}");
}

#[test]
fn it_goes_on_after_a_limit_where_that_is_asked_for() {
    let place = Place::new();
    for kind in ["noise", "timerlat"] {
        let hit = format!("shell,command=echo hit >> {kind}.txt");
        let limit = if kind == "noise" { ["-s", "1us", "-T", "1us"] } else { ["-T", "1ns", "-p", "1000"] };
        let usual = [
            kind,
            "hist",
            "-c",
            "0",
            "-d",
            "400ms",
            "--on-threshold",
            &hit,
            "--on-threshold",
            "continue",
            "-C",
        ];
        let answer = place.onbeat(&[&usual[..], &limit].concat());
        assert_eq!(answer.status, Some(2), "{answer:?}");
        assert!(answer.stdout.contains("a limit was exceeded and the measurement continued"), "{answer:?}");
        let hits = std::fs::read_to_string(place.path(&format!("{kind}.txt"))).expect("it was hit");
        assert!(hits.lines().count() > 1, "{hits}");
    }
}

#[test]
fn idle_states_that_cannot_be_chosen_are_noted() {
    let answer =
        Place::new().onbeat(&["timerlat", "hist", "-c", "0", "-d", "100ms", "--deepest-idle-state", "20"]);
    // Where there are states, all of them may be taken.
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let has_states = std::path::Path::new("/sys/devices/system/cpu/cpu0/cpuidle").exists();
    assert!(has_states || answer.stderr.contains("no choice of idle states"), "{answer:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::new();
    for (arguments, part) in [
        (&["-p", "1"][..], "below the 10 us"),
        (&["-T", "0"], "--thread"),
        (&["-i", "x"], "--irq"),
        (&["-a", "5", "-T", "5"], "--thread"),
        (&["--dma-latency", "10001"], "0..=10000"),
        (&["-c", "8191"], "CPU 8191 does not exist"),
        (&["-A", "-1"], "--aligned"),
        (&["-k"], "-k: only the kernel's timerlat tracer can do that"),
        (&["-s", "50"], "add --backend tracer"),
        (&["-k", "-u"], "cannot be used with"),
        (&["--deepest-idle-state", "-2"], "-1..=20"),
    ] {
        let answer = place.onbeat(&[&["timerlat", "hist"][..], arguments].concat());
        assert!(answer.status == Some(1) && answer.stderr.contains(part), "{arguments:?}: {answer:?}");
    }
}
