//! Losses at the wire, against the counts of a real peer: each thing that was sent arrived or is counted,
//! what arrived is kept, and the exit status says so. Each case again with a stop in the middle.

mod killed;
mod pipes;
mod tcp;
mod tcp_rows;
mod udp;
mod udp_rows;
mod vanished;

use super::harness::{Answer, Place, until, wait, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

/// Longest `patience` of these tests, if they interrupt the run.
const PATIENCE: Duration = Duration::from_secs(1);

/// A run whose record is read afterwards.
struct Wire {
    place: Place,
    child: Child,
    /// When it was interrupted.
    interrupted: Option<Instant>,
}

/// End of a run.
struct Ended {
    place: Place,
    answer: Answer,
    record: serde_json::Value,
}

impl Wire {
    fn start(pipeline: &str) -> Self {
        Wire::start_by(pipeline, Place::start)
    }

    fn start_by(pipeline: &str, start: impl FnOnce(&Place, &[&str]) -> Child) -> Self {
        let place = Place::new();
        fs::write(place.path("wire.toml"), pipeline).expect("a file");
        let child = start(&place, &["run", "wire.toml"]);
        Wire { place, child, interrupted: None }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it lives");
    }

    /// Whether its workers have been started.
    fn is_running(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        threads.is_ok_and(|threads| threads.count() > 2)
    }

    fn interrupt(&mut self) {
        self.signal(Signal::INT);
        self.interrupted = Some(Instant::now());
    }

    /// Waits for the end: after a signal, for the patience and a second more.
    fn end(mut self) -> Ended {
        if let Some(interrupted) = self.interrupted {
            let limit = PATIENCE + Duration::from_secs(1);
            wait_for(&mut self.child, limit.saturating_sub(interrupted.elapsed()));
        }
        let answer = self.place.end(self.child);
        let record = fs::read_to_string(self.place.path("out/wire.record.json")).expect("a record");
        Ended { place: self.place, answer, record: serde_json::from_str(&record).expect("JSON") }
    }
}

impl Ended {
    /// Number of lost things with this unit, and reasons that contain this text.
    fn lost(&self, unit: &str, reason: &str) -> u64 {
        let operators = self.record["operators"].as_array().expect("operators").iter();
        let losses = operators.flat_map(|operator| operator["losses"].as_array().expect("losses"));
        let of = losses.filter(|loss| {
            loss["unit"] == unit && loss["reason"].as_str().expect("a reason").contains(reason)
        });
        of.map(|loss| loss["count"].as_u64().expect("a count")).sum()
    }

    /// Messages on the first edge.
    fn messages(&self) -> u64 {
        self.record["edges"][0]["sent"].as_u64().expect("a count")
    }

    fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.place.path("out").join(name)).unwrap_or_default()
    }

    /// Checks the exit status: 3 if anything was lost, also in the table.
    fn check(&self, what: &str) {
        let lost = self.record["result"]["lost"].as_u64().expect("a count");
        let expected = if lost > 0 { 3 } else { 0 };
        assert_eq!(self.answer.status, Some(expected), "{what}: {:?}", self.answer);
        assert_eq!(self.answer.stdout.contains("lost: "), lost > 0, "{what}: {}", self.answer.stdout);
    }
}

/// A row of the table: what a peer did, by its own count, and what became of it.
struct Outcome {
    ended: Ended,
    /// Exit status of the run.
    status: i32,
    /// Number that was sent.
    sent: u64,
    /// Number that arrived.
    arrived: u64,
    /// Unit of both in the record.
    unit: &'static str,
}

/// Plays a row to its end, or with a stop in the middle.
type Play = fn(is_stopped: bool) -> Outcome;

/// Plays each row both ways: what did not arrive is counted, and the exit status says so.
fn play(rows: &[(&str, Play)]) {
    for (name, play) in rows {
        for is_stopped in [false, true] {
            let Outcome { ended, status, sent, arrived, unit } = play(is_stopped);
            let what = format!("{name}, stopped: {is_stopped}: {:?}", ended.answer);
            let lost = ended.lost(unit, "");
            assert_eq!(arrived + lost, sent, "{arrived} arrived, {lost} lost: {what}");
            assert_eq!(ended.answer.status, Some(status), "{what}");
            assert!(status == 1 || (lost > 0) == (status == 3), "{what}");
        }
    }
}

fn edge(from: &str, to: &str) -> String {
    format!("[[edge]]\nfrom = \"{from}\"\nto = \"{to}\"\n")
}

fn operator(name: &str, kind: &str, parameters: &str) -> String {
    format!("[[operator]]\nname = \"{name}\"\nkind = \"{kind}\"\n{parameters}\n")
}
