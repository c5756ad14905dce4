//! Losses at the wire, against the counts of a real peer: each thing that was sent arrived or is counted,
//! what arrived is kept, and the exit status says so. Each case again with a stop in the middle.

mod pipes;
mod tcp;
mod udp;

use super::harness::{Answer, Place, until, wait};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Child;

/// A run whose record is read afterwards.
struct Wire {
    place: Place,
    child: Child,
}

/// End of a run.
struct Ended {
    place: Place,
    answer: Answer,
    record: serde_json::Value,
}

impl Wire {
    fn start(pipeline: &str) -> Self {
        let place = Place::new();
        fs::write(place.path("wire.toml"), pipeline).expect("a file");
        let child = place.start(&["run", "wire.toml"]);
        Wire { place, child }
    }

    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it lives");
    }

    /// Waits for the end, which the watchdog of the harness limits.
    fn end(self) -> Ended {
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

fn edge(from: &str, to: &str) -> String {
    format!("[[edge]]\nfrom = \"{from}\"\nto = \"{to}\"\n")
}

fn operator(name: &str, kind: &str, parameters: &str) -> String {
    format!("[[operator]]\nname = \"{name}\"\nkind = \"{kind}\"\n{parameters}\n")
}
