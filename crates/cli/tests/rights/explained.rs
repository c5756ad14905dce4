//! Explanation of late messages without rights, and the messages about it.

use super::harness::{Answer, Place};
use super::refused::{command, reachable};
use super::{alone, has_tracefs, may};
use onbeat::Record;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups";

/// Runs a pipeline whose messages are all late, as an unprivileged user.
fn as_nobody(place: &Place, more: &str) -> Answer {
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o777)).expect("our folder");
    let _ = fs::remove_dir_all(place.path("out"));
    let mut shell = Command::new("sh");
    let run = format!("exec {NOBODY} {} run late.toml {more}", command(place));
    shell.args(["-c", &run]).current_dir(place.path(""));
    let file = |name: &str| fs::File::create(place.path(name)).expect("a file there");
    let child = shell.stdout(file("stdout.txt")).stderr(file("stderr.txt")).spawn().expect("a shell");
    place.end(child)
}

fn record(place: &Place) -> Record {
    let text = fs::read_to_string(place.path("out/always-late.record.json")).expect("a record");
    Record::from_json(&text).expect("one")
}

/// Returns a place for an unprivileged user that cannot trace. Prints a message if there is none.
fn closed() -> Option<Place> {
    if !may(&[]) || !has_tracefs() {
        return None;
    }
    let listed = Command::new("sh").args(["-c", &format!("{NOBODY} ls /sys/kernel/tracing/events")]).output();
    if listed.is_ok_and(|listed| !listed.status.success()) {
        return Some(reachable());
    }
    eprintln!("skipped: everybody may read tracefs here");
    None
}

const WHY: &str = "tracepoints cannot be read";

#[test]
fn counts_explain_where_nobody_may_trace() {
    let _alone = alone();
    let Some(place) = closed() else { return };
    // `explain = "auto"` is not a request, so `strict` does not fail.
    for more in ["", "--strict"] {
        let answer = as_nobody(&place, more);
        assert_eq!(answer.status, Some(0), "{answer:?}");
        for part in ["late: kernel events unknown", WHY, "run as root", "mount -o remount", "cap_perfmon+ep"]
        {
            assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
        }
        assert!(!answer.stderr.contains("not obtained"), "{}", answer.stderr);
        let record = record(&place);
        let explained = record.explained.as_ref().expect("it was looked for");
        assert_eq!(explained.source, "proc");
        assert!(explained.why.as_deref().is_some_and(|why| why.contains(WHY)), "{explained:?}");
        assert_eq!(record.misses.len(), 5);
        for miss in &record.misses {
            let verdict = miss.verdict.as_ref().expect("a sentence");
            assert_eq!(verdict.parts.iter().map(|part| part.late_ns).sum::<u64>(), miss.late_ns);
        }
    }
    // Limits also work without kernel events.
    assert_eq!(as_nobody(&place, "--max-misses 4 -q").status, Some(2));
}

#[test]
fn explanations_that_were_asked_for_are_missed() {
    let _alone = alone();
    let Some(place) = closed() else { return };
    let said = "not obtained: events of the kernel: requested all, got counts of /proc: causes have classes but no names";
    for more in ["--explain=on", "--trace late.pftrace"] {
        let answer = as_nobody(&place, more);
        assert_eq!(answer.status, Some(0), "{more}: {answer:?}");
        assert!(answer.stderr.contains(said) && answer.stdout.contains(said), "{more}: {answer:?}");
        assert!(answer.stderr.contains(WHY), "{more}: {answer:?}");
    }
    let answer = as_nobody(&place, "--explain=on --strict");
    assert_eq!(answer.status, Some(1), "{answer:?}");
    let said =
        "strict: events of the kernel: all was asked for, counts of /proc obtained: causes have classes";
    assert!(answer.stderr.contains(said), "{answer:?}");
    assert!(!place.path("out").exists(), "nothing is left of it");
}

/// Access to the rings does not include access to the event formats.
#[test]
fn a_capability_is_half_of_what_it_takes() {
    let _alone = alone();
    let Some(place) = closed() else { return };
    if let Err(why) = give(&place.path("onbeat")) {
        return eprintln!("skipped: the copy of the command cannot be given a capability here: {why}");
    }
    let answer = as_nobody(&place, "");
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(answer.stdout.contains(WHY) && answer.stdout.contains("mount -o remount"), "{}", answer.stdout);
    assert!(!answer.stdout.contains("setcap"), "it has that already: {}", answer.stdout);
}

fn give(file: &Path) -> Result<(), String> {
    let given = Command::new("setcap").arg("cap_perfmon,cap_sys_nice,cap_ipc_lock+ep").arg(file).output();
    let given = given.map_err(|error| format!("setcap: {error}"))?;
    if given.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&given.stderr).trim().to_owned())
    }
}
