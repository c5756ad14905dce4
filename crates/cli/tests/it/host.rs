//! `onbeat doctor` and `onbeat tune`, on files of a made-up machine.

#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

use crate::harness::{Place, wait};
use onbeat::Record;
use onbeat::trace::{Cause, CauseClass};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Machine with two cores and many interrupts on both, untuned.
pub fn machine(place: &Place) -> PathBuf {
    let root = place.path("machine");
    let mut files: Vec<(String, String)> = [
        ("proc/version", "Linux version 6.12.1 (x@y) #1 SMP PREEMPT_DYNAMIC\n"),
        ("proc/sys/kernel/osrelease", "6.12.1\n"),
        ("proc/sys/kernel/random/boot_id", "1111\n"),
        ("proc/cmdline", "root=/dev/sda1 isolcpu=1 quiet\n"),
        ("proc/sys/kernel/timer_migration", "1\n"),
        ("proc/sys/vm/stat_interval", "1\n"),
        ("proc/irq/default_smp_affinity", "3\n"),
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/cpu/possible", "0-1\n"),
        ("sys/devices/system/cpu/isolated", "\n"),
        ("sys/devices/system/cpu/nohz_full", "\n"),
        ("etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpu=1\"\n"),
    ]
    .map(|(path, text)| (path.to_owned(), text.to_owned()))
    .into();
    let mut interrupts = "      CPU0 CPU1\n".to_owned();
    for irq in 100..300 {
        interrupts += &format!(" {irq}:  1  1  MSI  device{irq}\n");
        files.push((format!("proc/irq/{irq}/smp_affinity_list"), "0-1\n".to_owned()));
    }
    files.push(("proc/interrupts".to_owned(), interrupts));
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    root
}

fn all(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.clone(), fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

#[test]
fn a_machine_that_was_copied_is_examined() {
    let place = Place::new();
    let root = machine(&place);
    let root = root.to_str().expect("a path");
    let table: [(&str, &[&str], i32, &[&str]); 9] = [
        (
            "findings",
            &["doctor", "--root", root, "--cpus", "1"],
            2,
            &["critical  command-line: unknown parameter `isolcpu=1`", "1 critical, "],
        ),
        (
            "all of them",
            &["doctor", "--root", root, "-c", "1", "--all"],
            2,
            &["unknown   rt-rights: only files of another machine"],
        ),
        (
            "for programs",
            &["doctor", "--root", root, "--format", "json"],
            2,
            &["\"schema\": \"onbeat.doctor\"", "\"state\": \"bad\""],
        ),
        (
            "as a table",
            &["doctor", "--root", root, "--format", "csv"],
            2,
            &["id,state,severity,evidence,fix,lost_ns"],
        ),
        (
            "the command line",
            &["doctor", "--root", root, "--verify"],
            2,
            &["`isolcpu=1` is not a kernel parameter: did you mean isolcpus?"],
        ),
        (
            "one check",
            &["doctor", "--explain", "smt"],
            0,
            &["cost of the fix", "explains\n  own_compute, hardware"],
        ),
        ("all checks", &["doctor", "--list"], 0, &["rt-throttling"]),
        (
            "a plan",
            &["tune", "--root", root, "--cpus", "1"],
            0,
            &[
                "isolcpus=managed_irq,domain,1",
                "\"quiet isolcpus=managed_irq,domain,1 ",
                "sudo update-grub",
                "device-interrupts",
            ],
        ),
        ("rights", &["tune", "--root", root, "--limits", "-"], 0, &["@realtime - rtprio 95"]),
    ];
    for (title, arguments, status, parts) in table {
        let answer = place.onbeat(arguments);
        assert_eq!(answer.status, Some(status), "{title}: {answer:?}");
        for part in parts {
            assert!(answer.stdout.contains(part), "{title}: no `{part}` in {}", answer.stdout);
        }
    }
}

#[test]
fn wrong_questions_about_a_copied_machine_are_refused() {
    let place = Place::new();
    let root = machine(&place);
    let root = root.to_str().expect("a path");
    let refused: [(&str, &[&str], &str); 8] = [
        ("all cores", &["tune", "--root", root, "--cpus", "0-1"], "0-1 are all cores of this machine"),
        ("cores that are not there", &["tune", "--root", root, "--cpus", "7"], "7 are not online"),
        ("a check that is none", &["doctor", "--explain", "isolcpu"], "did you mean `isolcpus`?"),
        (
            "a finding that is none",
            &["tune", "--root", root, "-c", "1", "--only", "kms"],
            "did you mean `ksm`?",
        ),
        ("no machine", &["doctor", "--root", "nowhere"], "it has no folder `proc`"),
        (
            "no record",
            &["doctor", "--root", root, "--record", "count.toml"],
            "`count.toml`: cannot be read: not JSON",
        ),
        (
            "another loader",
            &["tune", "--root", root, "-c", "1", "--loader", "extlinux"],
            "no configuration file of extlinux",
        ),
        (
            "a page of findings",
            &["doctor", "--root", root, "--format", "markdown"],
            "only the list of checks is available as Markdown",
        ),
    ];
    for (title, arguments, part) in refused {
        let answer = place.onbeat(arguments);
        assert_eq!(answer.status, Some(1), "{title}: {answer:?}");
        assert!(answer.stderr.contains(part), "{title}: no `{part}` in {}", answer.stderr);
    }
}

#[test]
fn a_record_ranks_and_excuses() {
    let place = Place::new();
    let root = machine(&place);
    place.onbeat(&["run", "count.toml", "--record", "run.json", "-q"]);
    let text = fs::read_to_string(place.path("run.json")).expect("a record");
    let mut record = Record::from_json(&text).expect("a record");
    let name = "eth0".to_owned();
    record.causes =
        vec![Cause { class: CauseClass::Irq, name, misses: 1, lost_ns: 12_500_000, finding: None }];
    record.write(place.path("run.json")).expect("a file");
    let answer = place.onbeat(&["doctor", "--root", root.to_str().expect("a path"), "--record", "run.json"]);
    let of = |id: &str| {
        let joined = answer.stdout.replace("\n          ", " ");
        joined.lines().find(|line| line.contains(&format!(" {id}: "))).expect("it is found").to_owned()
    };
    assert!(of("device-interrupts").contains("[added 12.5 ms of lateness in this run]"), "{}", answer.stdout);
    assert!(of("vmstat").contains("[no lateness in this run: can be skipped]"), "{}", answer.stdout);
    (record.causes, record.explained) = (Vec::new(), None);
    record.write(place.path("run.json")).expect("a file");
    let answer = place.onbeat(&["doctor", "--root", root.to_str().expect("a path"), "--record", "run.json"]);
    assert!(answer.stdout.contains("the record has no table of causes"), "{}", answer.stdout);
}

#[test]
fn what_a_killed_process_left_is_taken_back() {
    let mut killed_between = 0;
    for round in 0..12 {
        let place = Place::new();
        let root = machine(&place);
        let text = root.to_str().expect("a path").to_owned();
        let before = all(&root);
        let mut child = place.start(&["tune", "--root", &text, "--cpus", "1", "--apply"]);
        // At another moment each time, the first ones before anything is done.
        std::thread::sleep(Duration::from_micros(2_000 * round));
        child.kill().expect("a child of ours");
        wait(&mut child);
        let after = all(&root);
        let undo = root.join("run/onbeat/tune.undo.json");
        let is_changed = |path: &Path, text: &[u8]| {
            let is_setting = path.starts_with(root.join("proc")) || path.starts_with(root.join("sys"));
            is_setting && before.get(path).map(Vec::as_slice) != Some(text)
        };
        let changed = after.iter().filter(|(path, text)| is_changed(path, text)).count();
        assert!(changed == 0 || undo.exists(), "{changed} changes and no way back");
        killed_between += u32::from(changed > 0);
        let answer = place.onbeat(&["tune", "--root", &text, "--undo"]);
        assert_eq!(answer.status, Some(0), "{answer:?}");
        let mut left = all(&root);
        // A temporary file of an interrupted write is ignored.
        left.retain(|path, _| !path.to_string_lossy().ends_with(".tmp"));
        assert_eq!(left, before, "round {round}");
    }
    // Where no round was in the middle, the library's own test has been there.
    assert!(killed_between <= 12);
}

#[test]
fn changes_are_made_once_and_taken_back() {
    let place = Place::new();
    let root = machine(&place);
    let text = root.to_str().expect("a path").to_owned();
    let before = all(&root);
    let applied = place.onbeat(&["tune", "--root", &text, "--cpus", "1", "--apply"]);
    assert!(applied.status == Some(0) && applied.stdout.contains("of 203 settings changed"), "{applied:?}");
    let again = place.onbeat(&["tune", "--root", &text, "--cpus", "1", "--apply"]);
    assert!(again.status == Some(0) && again.stdout.contains("nothing to do"), "{again:?}");
    let undone = place.onbeat(&["tune", "--root", &text, "--undo"]);
    assert!(undone.status == Some(0) && undone.stdout.contains("203 settings restored"), "{undone:?}");
    assert_eq!(all(&root), before);
    let nothing = place.onbeat(&["tune", "--root", &text, "--undo"]);
    assert!(nothing.stdout.contains("nothing to restore"), "{nothing:?}");
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    let place = Place::new();
    let root = machine(&place);
    let text = root.to_str().expect("a path");
    let answer = place.onbeat(&[
        "tune",
        "--root",
        text,
        "--cpus",
        "1",
        "--pipeline",
        "count.toml",
        "--systemd",
        "count.service",
    ]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let unit = fs::read_to_string(place.path("count.service")).expect("a unit");
    assert!(unit.contains("count.toml -H 0 --strict"), "{unit}");
    let verified =
        std::process::Command::new("systemd-analyze").arg("verify").arg(place.path("count.service")).output();
    match verified {
        Ok(said) => {
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            assert!(!said.contains("count.service"), "systemd-analyze verify: {said}\n{unit}");
        }
        Err(error) => eprintln!("skipped: systemd-analyze: {error}"),
    }
    // What onbeat has not made is left alone.
    fs::write(place.path("mine.service"), "[Unit]\n").expect("a file");
    let answer = place.onbeat(&[
        "tune",
        "--root",
        text,
        "--cpus",
        "1",
        "--pipeline",
        "count.toml",
        "--systemd",
        "mine.service",
    ]);
    assert!(answer.status == Some(1) && answer.stderr.contains("would be overwritten"), "{answer:?}");
}
