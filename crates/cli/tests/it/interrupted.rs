//! Ctrl-C.

use super::harness::{Place, until};
use std::fs;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill");
}

#[test]
fn the_first_one_finishes_the_run() {
    finishes(&["run", "endless.toml"]);
}

#[test]
fn the_first_one_finishes_a_run_on_two_workers() {
    for idle in ["park", "spin", "spin:20us"] {
        finishes(&["run", "endless.toml", "--scheduler", "pinned", "--workers", "2", "--idle", idle]);
    }
}

fn finishes(arguments: &[&str]) {
    let place = Place::new();
    let child = place.start(arguments);
    let begun = || fs::read_dir(place.path("out")).ok()?.flatten().find(has_samples).map(drop);
    until("the run writes its file", begun).expect("it begins");
    interrupt(&child);
    let answer = place.end(child);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("endless: stopped after"), "{}", answer.stdout);
    assert!(answer.stderr.contains("stopping"), "{}", answer.stderr);
    assert!(place.path("out/silence.wav").exists() && place.path("out/endless.record.json").exists());
}

/// Returns the file under its temporary name, once it has more than its header.
fn has_samples(entry: &fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().contains("wav")
        && entry.metadata().is_ok_and(|found| found.len() > 1_000)
}

#[test]
fn the_second_one_ends_the_process() {
    let place = Place::new();
    let child = place.start(&["run", "stuck.toml"]);
    // It listens before it starts its worker, and that is in its step once it has used its core for a while.
    let tasks = format!("/proc/{}/task", child.id());
    let steps = || {
        let busy = |task: fs::DirEntry| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
            let cpu_ns: u64 = times.split_whitespace().next()?.parse().ok()?;
            (name.trim_end() == "onbeat-w0" && cpu_ns > 20_000_000).then_some(())
        };
        fs::read_dir(&tasks).ok()?.flatten().find_map(busy)
    };
    until("the worker is in its step", steps).expect("it steps");
    interrupt(&child);
    let stopping = || fs::read_to_string(place.path("stderr.txt")).ok()?.contains("stopping").then_some(());
    until("it has heard", stopping).expect("it hears");
    // At once, it would be the same request.
    thread::sleep(Duration::from_millis(100));
    interrupt(&child);
    let answer = place.end(child);
    assert_eq!(answer.status, Some(130), "{answer:?}");
    assert!(answer.stderr.contains("aborted"), "{}", answer.stderr);
}
