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
    let answer = place.onbeat(&["timerlat", "hist", "-c", "0", "--aa-only", "1ns"]);
    assert!(answer.status == Some(2) && answer.stdout.starts_with("timerlat hit stop"), "{answer:?}");
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
        (&["-k"], "-k is not available"),
        (&["-s", "50"], "rtla timerlat"),
        (&["--deepest-idle-state", "0"], "--dma-latency"),
    ] {
        let answer = place.onbeat(&[&["timerlat", "hist"][..], arguments].concat());
        assert!(answer.status == Some(1) && answer.stderr.contains(part), "{arguments:?}: {answer:?}");
    }
}
