//! All settings obtained: the run reports what `/proc` and other programs show.

use super::harness::{Place, until};
use super::{alone, may, record, two_cores};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const EVERYTHING: &str = r#"
name = "everything"
scheduler = "custom"
output = "out"
house_keeping = [0]
lock_memory = true
prefault = "128KiB"
numa = true
timer_slack = "7 us"
dma_latency = "3 us"
[[pool]]
name = "radio"
cores = [1]
policy = "f:20"
operators = ["silence"]
[[pool]]
name = "rest"
cores = [0]
policy = "o:3"
operators = ["end"]
[[operator]]
name = "silence"
kind = "null.source"
rate = "800 kHz"
pace = "real"
size = 800
[[operator]]
name = "end"
kind = "null.sink"
[[edge]]
from = "silence"
to = "end"
"#;

/// Returns the thread of this name.
fn task(process: u32, name: &str) -> Option<PathBuf> {
    let tasks = fs::read_dir(Path::new("/proc").join(process.to_string()).join("task")).ok()?;
    let is_it = |task: &Path| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == name);
    tasks.filter_map(|task| Some(task.ok()?.path())).find(|task| is_it(task))
}

fn text(file: impl AsRef<Path>) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

/// Returns a line of `status` in `/proc`.
fn status(folder: &Path, name: &str) -> String {
    let status = text(folder.join("status"));
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_string()
}

#[test]
fn what_is_said_is_what_others_see() {
    let _alone = alone();
    if !may(&["f:20"]) || !two_cores() {
        return;
    }
    if !Path::new("/dev/cpu_dma_latency").exists() {
        return eprintln!("skipped: there is no /dev/cpu_dma_latency");
    }
    let place = Place::new();
    fs::write(place.path("everything.toml"), EVERYTHING).expect("a file");
    let child = place.start(&["run", "everything.toml", "--strict"]);
    let process = child.id();
    let mut threads = Vec::new();
    let seen = until("both workers have what they asked for", || {
        let (radio, rest) = (task(process, "radio")?, task(process, "rest")?);
        let by_chrt =
            Command::new("chrt").args(["--pid", radio.file_name()?.to_str()?]).output().ok()?.stdout;
        let niceness =
            text(rest.join("stat")).rsplit_once(')')?.1.split_whitespace().nth(19 - 3)?.to_string();
        // The slack of a thread is shown by its own folder only.
        let slack_ns = text(Path::new("/proc").join(rest.file_name()?).join("timerslack_ns"));
        let cores = [&radio, &rest].map(|task| status(task, "Cpus_allowed_list:"));
        threads = vec![
            cores.join(" "),
            niceness,
            slack_ns.trim_end().to_string(),
            String::from_utf8_lossy(&by_chrt)
                .lines()
                .map(|line| line.split(": ").nth(1).unwrap_or(""))
                .collect::<Vec<_>>()
                .join(" "),
        ];
        (threads == ["1 0", "3", "7000", "SCHED_FIFO|SCHED_RESET_ON_FORK 20"]).then_some(())
    });
    let locked = status(&Path::new("/proc").join(process.to_string()), "VmLck:");
    let killed = Command::new("kill").args(["-INT", &process.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let answer = place.end(child);
    assert!(seen.is_ok(), "{threads:?}: {answer:?}");
    assert_ne!(locked, "0 kB");
    assert_eq!(answer.status, Some(0), "{answer:?}");
    let record = record(&place, "everything");
    let settings = record["obtained"].as_array().expect("a list").iter().map(|setting| {
        let [what, asked, obtained] =
            ["what", "asked", "obtained"].map(|key| setting[key].as_str().expect("text"));
        format!("{what}: {asked}, {obtained}")
    });
    insta::assert_snapshot!("everything_obtained", settings.collect::<Vec<_>>().join("\n"));
}
