//! `onbeat bench echo`, with so few messages that its figures mean nothing.

use super::harness::{Place, until};
use serde_json::Value;
use std::fs;
use std::process::Command;

const TINY: [&str; 8] = ["bench", "echo", "--rounds", "1", "--seconds", "0.02", "--intervals", "2ms,1ms"];

/// Whether client and server can have a core each.
#[expect(clippy::disallowed_macros, reason = "a test says why it was skipped")]
fn has_two_cores() -> bool {
    let has = onbeat_os::CoreSet::allowed().is_ok_and(|cores| cores.iter().count() > 1);
    if !has {
        println!("skipped: client and server need a core each");
    }
    has
}

#[test]
fn every_message_comes_back_over_every_transport() {
    if !has_two_cores() {
        return;
    }
    let answer = Place::new().onbeat(&[&TINY[..], &["--format", "json"]].concat());
    assert_eq!((answer.status, &*answer.stderr), (Some(0), ""), "{answer:?}");
    let found: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!((&found["bench"], &found["parameters"]["bytes"]), (&"echo".into(), &400.into()));
    let value = |name: &str| {
        let figure = &found["figures"][name]["value"];
        figure.as_f64().unwrap_or_else(|| panic!("{name}: {found}"))
    };
    for transport in ["udp", "tcp", "pipe"] {
        for (interval, messages) in [("2000us", 10.0), ("1000us", 20.0)] {
            for wait in ["park", "spin"] {
                let case = format!("{transport}.{interval}.{wait}");
                for (server, messages) in
                    [("bare", messages), ("onbeat", messages), ("stamped", messages / 2.0)]
                {
                    let name = format!("{case}.{server}");
                    assert_eq!(value(&format!("{name}.echoes")), messages, "{name}");
                    assert_eq!(value(&format!("{name}.lost")), 0.0, "{name}");
                    assert_eq!(value(&format!("{name}.wrong")), 0.0, "{name}");
                }
                assert_eq!(value(&format!("{case}.recorded")), messages, "{case}");
                assert!(
                    value(&format!("{case}.ratio.p50")) > 0.0 && value(&format!("{case}.record.p99")) > 0.0
                );
            }
        }
        assert!(
            value(&format!("silence.{transport}.workers")) <= value(&format!("silence.{transport}.process"))
        );
    }
}

#[test]
fn people_get_tables() {
    if !has_two_cores() {
        return;
    }
    let place = Place::new();
    let answer = place.onbeat(&[&TINY[..], &["--transports", "pipe", "--client", "park"]].concat());
    assert_eq!((answer.status, &*answer.stderr), (Some(0), ""), "{answer:?}");
    for part in [
        "echo: 400 bytes, 0.02 s per measurement, median of 1 round(s)",
        "client (park) on core",
        "x bare",
        "pipe       1 ms   spin",
        "seen median",
        "one second of silence",
    ] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    let is_narrow = |line: &str| line.chars().count() <= 110 || line.contains(':');
    assert!(answer.stdout.lines().all(is_narrow), "{}", answer.stdout);
}

#[test]
fn an_interruption_ends_the_servers_too() {
    if !has_two_cores() {
        return;
    }
    let place = Place::new();
    let child = place.start(&["bench", "echo", "--seconds", "50"]);
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let mut server = String::new();
    let has_server = || {
        server = fs::read_to_string(&children).ok()?.split_whitespace().next()?.to_owned();
        Some(())
    };
    until("there is a server", has_server).expect("a server");
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill");
    let answer = place.end(child);
    assert_eq!(answer.status, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("stopped before the first measurement was complete"), "{answer:?}");
    assert!(!fs::exists(format!("/proc/{server}")).unwrap(), "the server has ended");
}

#[test]
fn a_server_that_a_person_starts_says_who_should() {
    let answer = Place::new().onbeat(&["bench", "echo-server"]);
    assert_eq!((answer.status, &*answer.stdout), (Some(1), ""), "{answer:?}");
    assert!(answer.stderr.contains("this command is for `onbeat bench echo`, which starts it"), "{answer:?}");
    let help = Place::new().onbeat(&["bench", "--help"]);
    assert!(help.stdout.contains("\n  echo ") && !help.stdout.contains("echo-server"), "{help:?}");
}
