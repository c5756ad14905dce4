//! Requests of the command to the kernel, with and without the rights for them. These tests need root, to
//! remove rights from other processes and to set real-time policies. Without root they print "skipped: why".

#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

mod explained;
mod given_back;
mod guards;
#[allow(dead_code, reason = "not all of it is needed here")]
#[path = "../it/harness.rs"]
mod harness;
mod machine;
mod meanwhile;
mod multi_branch;
mod noise;
mod obtained;
mod overruns;
mod refused;
mod two_nodes;

use harness::{Answer, Place};
use onbeat_os::Policy;
use onbeat_os::policy::PolicyFlags;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lock of the tests: each needs the machine unchanged.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a thread of this process can have these policies and can become another user. Prints a message if
/// not.
fn may(policies: &[&str]) -> bool {
    if !is_root() {
        eprintln!("skipped: these tests need root, to give and take rights");
        return false;
    }
    for text in policies {
        let policy: Policy = text.parse().expect("a policy");
        let set = move || policy.set(PolicyFlags::default());
        let tried = onbeat_os::thread::spawn("tries", set).expect("a thread").join().expect("no panic");
        if let Err(error) = tried {
            eprintln!("skipped: the policy {text} cannot be had here: {error}");
            return false;
        }
    }
    true
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t0"))
}

/// Whether kernel events are available. Prints a message if not. Other tests check the messages without them.
fn has_tracefs() -> bool {
    let found = onbeat_os::tracefs::Tracefs::find();
    if let Err(error) = &found {
        eprintln!("skipped: {error}");
    }
    found.is_ok()
}

fn two_cores() -> bool {
    let online = onbeat_os::CoreSet::online().unwrap_or_default();
    let fits = online.contains(0) && online.contains(1);
    if !fits {
        eprintln!("skipped: it needs two cores");
    }
    fits
}

fn record(place: &Place, name: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(place.path(&format!("out/{name}.record.json"))).expect("a record");
    serde_json::from_str(&text).expect("JSON")
}

/// Pipeline with three messages through two pools.
const POOLS: &str = r#"
name = "pools"
scheduler = "custom"
[[pool]]
name = "radio"
operators = ["numbers", "end"]
[[operator]]
name = "numbers"
kind = "counter"
count = 3
[[operator]]
name = "end"
kind = "count.sink"
[[edge]]
from = "numbers"
to = "end"
"#;

fn place() -> Place {
    let place = Place::new();
    std::fs::write(place.path("pools.toml"), POOLS).expect("a file");
    place
}

/// Hides differences between machines: interrupt threads, moves of locked pages, and the niceness of the
/// tests.
fn shown(answer: &Answer) -> String {
    let local = ["above that of interrupt threads", "the kernel may move locked pages"];
    let is_local = |line: &&str| line.starts_with("note: ") && local.iter().any(|part| line.contains(part));
    let lines: Vec<&str> = answer.stderr.lines().filter(|line| !is_local(line)).collect();
    let (own, _) = Policy::of_this_thread().expect("a policy");
    let said = lines.join("\n");
    let said = said
        .replace(&format!("got {own}:"), "got OWN:")
        .replace(&format!(", {own} obtained"), ", OWN obtained");
    format!("exit status {:?}\n{said}\n", answer.status)
}
