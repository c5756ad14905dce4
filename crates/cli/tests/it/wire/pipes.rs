//! Pipes without another end, and signals that are ignored.

use super::{Place, edge, operator, until, wait};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::process::Stdio;

#[test]
fn a_pipe_that_nobody_writes_to_does_not_hold_the_end() {
    let place = Place::new();
    place.fifo("pipe");
    let copy = operator("in", "stdin.source", "") + &operator("end", "null.sink", "") + &edge("in", "end");
    fs::write(place.path("wire.toml"), copy).expect("a file");
    // Open for both, so that opening does not wait, and reading does not end.
    let pipe = OpenOptions::new().read(true).write(true).open(place.path("pipe")).expect("a pipe");
    let mut child = place
        .command(&["run", "wire.toml", "--control", "wire.ctl"])
        .stdin(pipe)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command");
    until("it runs", || place.path("wire.ctl").exists().then_some(())).expect("it does");
    let stopped = || (place.onbeat(&["ctl", "wire.ctl", "stop"]).status == Some(0)).then_some(());
    until("it is told", stopped).expect("it is");
    assert_eq!(wait(&mut child), Some(0));
}

#[test]
fn a_pipe_that_nobody_reads_does_not_hold_the_end() {
    let place = Place::new();
    place.fifo("pipe");
    for (source, sink) in [
        (operator("from", "null.source", "size = 1000"), "stdout.sink"),
        (operator("from", "text.source", "path = \"lines.txt\""), "text.sink"),
    ] {
        let path = if sink == "text.sink" { "path = \"-\"\n" } else { "" };
        let parameters = format!("{path}patience = \"300 ms\"");
        let pipeline = source + &operator("out", sink, &parameters) + &edge("from", "out");
        fs::write(place.path("wire.toml"), pipeline).expect("a file");
        fs::write(place.path("lines.txt"), "a line of some length\n".repeat(50_000)).expect("a file");
        let mut pipe = OpenOptions::new().read(true).write(true).open(place.path("pipe")).expect("a pipe");
        let mut child = place
            .command(&["run", "wire.toml", "-d", "200ms"])
            .stdout(pipe.try_clone().expect("a pipe"))
            .stderr(File::create(place.path("stderr.txt")).expect("a file"))
            .spawn()
            .expect("the command");
        let status = wait(&mut child);
        let said = fs::read_to_string(place.path("stderr.txt")).expect("a file");
        assert_eq!(status, Some(3), "{sink}: {said}");
        assert!(said.contains("lost: out: ") && said.contains("the reader of stdout did not take"), "{said}");
        // What it wrote is in the pipe; with what is lost that is all.
        let record = fs::read_to_string(place.path("out/wire.record.json")).expect("a record");
        let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
        let lost = record["operators"][1]["losses"][0]["count"].as_u64().expect("a count");
        let sent = record["edges"][0]["sent"].as_u64().expect("a count");
        let each = if sink == "text.sink" { 22 } else { 4000 };
        let waits = rustix::io::ioctl_fionread(&pipe).expect("a count");
        assert_eq!(waits + lost, sent * each, "{sink}");
        pipe.read_exact(&mut vec![0; waits as usize]).expect("bytes");
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
