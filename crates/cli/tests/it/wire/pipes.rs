//! Pipes without another end, and signals that are ignored.

use super::{PATIENCE, Place, edge, operator, until, wait, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Time for a run to end after a stop, or after a time of its own of seconds, on a busy machine too.
const LIMIT: Duration = PATIENCE.saturating_add(Duration::from_secs(10));

/// From stdin to a file.
fn copy() -> String {
    operator("in", "stdin.source", "")
        + &operator("file", "file.sink", "path = \"came\"")
        + &edge("in", "file")
}

/// Begins a run whose stdin is this pipe.
fn reads(place: &Place, pipe: &str, arguments: &[&str]) -> Child {
    // Open for both, so that opening does not wait, and reading does not end.
    let pipe = OpenOptions::new().read(true).write(true).open(place.path(pipe)).expect("a pipe");
    let mut all = vec!["run", "wire.toml", "--control", "wire.ctl"];
    all.extend(arguments);
    let child = place.command(&all).stdin(pipe).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = child.expect("the command");
    until("it runs", || place.path("wire.ctl").exists().then_some(())).expect("it does");
    child
}

#[test]
fn a_pipe_that_nobody_writes_to_does_not_hold_the_end() {
    for how in ["duration", "ctl", "interrupt", "terminate"] {
        let place = Place::new();
        place.fifo("pipe");
        fs::write(place.path("wire.toml"), copy()).expect("a file");
        let mut child = reads(&place, "pipe", if how == "duration" { &["--duration", "200ms"] } else { &[] });
        let signal = |signal| kill_process(Pid::from_child(&child), signal).expect("it lives");
        match how {
            "ctl" => {
                let stopped = || (place.onbeat(&["ctl", "wire.ctl", "stop"]).status == Some(0)).then_some(());
                until("it is told", stopped).expect("it is");
            }
            "interrupt" => signal(Signal::INT),
            "terminate" => signal(Signal::TERM),
            _ => {}
        }
        assert_eq!(wait_for(&mut child, LIMIT), Some(0), "{how}");
    }
}

#[test]
fn what_waits_in_a_pipe_is_counted() {
    for is_stopped in [false, true] {
        let place = Place::new();
        place.fifo("pipe");
        let slow = operator("slow", "load", "busy = \"10 ms\"");
        let slow = copy().replace("to = \"file\"", "to = \"slow\"") + &slow + &edge("slow", "file");
        fs::write(place.path("wire.toml"), "[defaults]\nquantum = \"1 KiB\"\n".to_string() + &slow)
            .expect("a file");
        let mut writer = OpenOptions::new().read(true).write(true).open(place.path("pipe")).expect("a pipe");
        // The last sample is not complete.
        writer.write_all(&[1; 30_002]).expect("written");
        let mut child = reads(&place, "pipe", if is_stopped { &[] } else { &["--duration", "2s"] });
        if is_stopped {
            kill_process(Pid::from_child(&child), Signal::INT).expect("it lives");
        }
        // The bytes are in the pipe as long as this end is open.
        let status = wait_for(&mut child, LIMIT + Duration::from_secs(2));
        let record = fs::read_to_string(place.path("out/wire.record.json")).expect("a record");
        let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
        let losses = record["operators"][0]["losses"].as_array().expect("losses");
        let lost: u64 = losses.iter().map(|loss| loss["count"].as_u64().expect("a count")).sum();
        let came = fs::metadata(place.path("out/came")).expect("a file").len();
        assert_eq!((status, came + lost), (Some(3), 30_002), "{came} + {lost}, stopped: {is_stopped}");
        assert!(is_stopped || lost == 2);
    }
}

/// Stops a run whose stdout nobody reads.
fn full(place: &Place, source: &str, sink: &str, is_interrupted: bool) {
    let path = if sink == "text.sink" { "path = \"-\"\n" } else { "" };
    let parameters = format!("{path}patience = \"300 ms\"");
    let pipeline = source.to_string() + &operator("out", sink, &parameters) + &edge("from", "out");
    fs::write(place.path("wire.toml"), pipeline).expect("a file");
    fs::write(place.path("lines.txt"), "a line of some length\n".repeat(50_000)).expect("a file");
    let mut pipe = OpenOptions::new().read(true).write(true).open(place.path("pipe")).expect("a pipe");
    // Far more than it takes to fill the pipe, on a busy machine too.
    let duration: &[&str] = if is_interrupted { &[] } else { &["-d", "2s"] };
    let mut child = place
        .command(&[&["run", "wire.toml"], duration].concat())
        .stdout(pipe.try_clone().expect("a pipe"))
        .stderr(File::create(place.path("stderr.txt")).expect("a file"))
        .spawn()
        .expect("the command");
    let waits = || rustix::io::ioctl_fionread(&pipe).expect("a count");
    if is_interrupted {
        // Full is a pipe that has taken nothing more for a while: only then is something left at the stop.
        let (mut most, mut since) = (0, Instant::now());
        let is_full = || {
            if waits() > most {
                (most, since) = (waits(), Instant::now());
            }
            (most > 60_000 && since.elapsed() > Duration::from_millis(100)).then_some(())
        };
        until("the pipe is full", is_full).expect("it is");
        kill_process(Pid::from_child(&child), Signal::INT).expect("it lives");
    }
    let status = wait_for(&mut child, LIMIT);
    let said = fs::read_to_string(place.path("stderr.txt")).expect("a file");
    assert_eq!(status, Some(3), "{sink}: {said}");
    assert!(said.contains("lost: out: ") && said.contains("the reader of stdout did not take"), "{said}");
    // What it wrote is in the pipe; with what is lost that is all.
    let record = fs::read_to_string(place.path("out/wire.record.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let lost = record["operators"][1]["losses"][0]["count"].as_u64().expect("a count");
    let sent = record["edges"][0]["sent"].as_u64().expect("a count");
    let each = if sink == "text.sink" { 22 } else { 4000 };
    let waits = waits();
    assert_eq!(waits + lost, sent * each, "{sink}");
    pipe.read_exact(&mut vec![0; waits as usize]).expect("bytes");
}

#[test]
fn a_pipe_that_nobody_reads_does_not_hold_the_end() {
    let place = Place::new();
    place.fifo("pipe");
    for (source, sink) in [
        (operator("from", "null.source", "size = 1000"), "stdout.sink"),
        (operator("from", "text.source", "path = \"lines.txt\""), "text.sink"),
    ] {
        full(&place, &source, sink, false);
        full(&place, &source, sink, true);
    }
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let place = Place::new();
    let mut shell = std::process::Command::new("sh");
    let program = env!("CARGO_BIN_EXE_onbeat");
    let mut child = shell
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh", program])
        .args(["run", "endless.toml", "--control", "endless.ctl", "-q"])
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(place.path("stderr.txt")).expect("a file"))
        .spawn()
        .expect("the command");
    until("it runs", || place.path("endless.ctl").exists().then_some(())).expect("it does");
    kill_process(Pid::from_child(&child), Signal::HUP).expect("it lives");
    // Two answers, so that the signal has had its time.
    for _ in 0..2 {
        let runs =
            || place.onbeat(&["ctl", "endless.ctl", "status"]).stdout.contains(": running").then_some(());
        until("it goes on", runs).expect("it does");
    }
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it lives");
    assert_eq!(wait(&mut child), Some(0));
}
