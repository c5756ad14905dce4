//! Resources that disappear during a run. Each test uses a mount namespace that ends with its shell.

use super::harness::{Answer, Place};
use super::{alone, may};
use onbeat::Record;
use std::fs;
use std::process::Command;

/// Shell with its own mounts.
fn apart(place: &Place, script: &str) -> Answer {
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", script]).current_dir(place.path(""));
    shell.env("onbeat", env!("CARGO_BIN_EXE_onbeat")).env_remove("RUST_BACKTRACE");
    let file = |name: &str| fs::File::create(place.path(name)).expect("a file there");
    let child = shell.stdout(file("stdout.txt")).stderr(file("stderr.txt")).spawn().expect("unshare");
    place.end(child)
}

/// Whether it can mount. Prints a message if not.
fn may_mount(place: &Place) -> bool {
    let tried = apart(place, "mkdir -p disk && mount -t tmpfs -o size=64k tmpfs disk");
    if tried.status != Some(0) {
        eprintln!("skipped: no file system can be mounted here: {}", tried.stderr.trim());
    }
    tried.status == Some(0)
}

/// A full disk at the end of a run: earlier files remain, and no incomplete file is left.
const FULL: &str = r#"
mount -t tmpfs -o size=64k tmpfs disk
printf '{"schema": "onbeat.record", "old": true}' > disk/old.json
head -c 1000000 /dev/zero > disk/filler 2> /dev/null
"$onbeat" run late.toml MORE
echo "status $?"
ls -A disk
cat disk/old.json
"#;

#[test]
fn a_full_disk_takes_no_record_and_the_table_is_there() {
    let _alone = alone();
    let place = Place::new();
    if !may(&[]) || !may_mount(&place) {
        return;
    }
    for (more, said, left) in [
        ("--record disk/new.json", "record disk/new.json: No space left on device", "filler\nold.json\n"),
        ("--record disk/old.json", "record disk/old.json: No space left on device", "filler\nold.json\n"),
        (
            "--on-miss trace,file=disk/late.txt",
            "--on-miss trace: disk/late.txt: No space left",
            "filler\nold.json\n",
        ),
        (
            "--trace disk/late.pftrace",
            "--trace disk/late.pftrace: cannot be written: No space left on device",
            "filler\nlate.pftrace\nold.json\n",
        ),
    ] {
        let answer = apart(&place, &FULL.replace("MORE", more));
        assert!(answer.stdout.contains("numbers → end"), "{more}: the table: {answer:?}");
        assert!(answer.stderr.contains(said), "{more}: {answer:?}");
        let after = format!("status 1\n{left}{{\"schema\": \"onbeat.record\", \"old\": true}}");
        assert!(answer.stdout.ends_with(&after), "{more}: {answer:?}");
    }
}

/// tracefs is unmounted: the files that the run has open still provide events.
const UNMOUNTED: &str = r#"
"$onbeat" run late.toml --set numbers.rate="100 Hz" --set numbers.count=150 -q & run=$!
sleep 0.7
umount --lazy /sys/kernel/tracing
echo $run
wait $run
"#;

#[test]
fn tracefs_that_is_unmounted_meanwhile_ends_no_run() {
    let _alone = alone();
    let place = Place::new();
    if !may(&[]) || !may_mount(&place) {
        return;
    }
    let answer = apart(&place, UNMOUNTED);
    if answer.stderr.contains("umount") {
        return eprintln!("skipped: tracefs is not mounted there: {}", answer.stderr.trim());
    }
    assert_eq!((answer.status, answer.stderr.as_str()), (Some(0), ""), "{answer:?}");
    let text = fs::read_to_string(place.path("out/always-late.record.json")).expect("a record");
    let record = Record::from_json(&text).expect("one");
    assert_eq!(record.misses_total, 150);
    assert!(record.misses.iter().all(|miss| miss.verdict.is_some()), "each has a sentence");
    let explained = record.explained.expect("it was looked for");
    if explained.source == "ftrace" {
        let why = explained.why.unwrap_or_default();
        assert!(why.contains("stopped writing tracepoints"), "what can no longer be asked is said: {why}");
    }
    // It could not take its trace instances away: the next one does.
    assert_eq!(place.onbeat(&["run", "late.toml", "-q"]).status, Some(0));
    let begin = format!("onbeat-{}-", answer.stdout.trim());
    let left = fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
    let left: Vec<_> =
        left.map(|one| one.file_name()).filter(|name| name.to_string_lossy().starts_with(&begin)).collect();
    assert!(left.is_empty(), "{left:?}");
}
