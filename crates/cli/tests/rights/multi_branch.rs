//! Example with a priority branch, which keeps its deadlines while the other branches are overloaded.

use super::harness::Place;
use super::machine::Sysctl;
use super::{alone, may, record, two_cores};
use onbeat_os::memory;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Runs the example and returns its record. Meanwhile, `ps` and `/proc` must show this about the thread of
/// the priority branch.
fn run(place: &Place, settings: &[&str], expected: Option<[&str; 2]>) -> serde_json::Value {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/multi_branch_two_cores.toml");
    let mut arguments = vec!["run", file, "--set", "output=out", "--strict", "--policy", "o:0"];
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    let mut child = place.start(&arguments);
    if let Some(expected) = expected {
        let mut seen = Vec::new();
        // From its start to its end: a thread is there a moment before it has its policy.
        while seen != expected && child.try_wait().expect("a child of ours").is_none() {
            std::thread::sleep(Duration::from_millis(50));
            seen = look(child.id());
        }
        assert_eq!(seen, expected, "{settings:?}: by ps, by /proc");
    }
    let answer = place.end(child);
    assert_eq!(answer.status, Some(0), "{settings:?}: {answer:?}");
    record(place, "multi_branch_two_cores")
}

/// Returns the policy and priority of the thread `priority`, from `ps` and from `/proc`; `None` before it
/// starts.
fn look(process: u32) -> Vec<String> {
    let tasks = Path::new("/proc").join(process.to_string()).join("task");
    let Ok(tasks) = fs::read_dir(tasks) else { return Vec::new() };
    let is_it = |task: &Path| fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "priority\n");
    let Some(task) = tasks.filter_map(|task| Some(task.ok()?.path())).find(|task| is_it(task)) else {
        return Vec::new();
    };
    let stat = fs::read_to_string(task.join("stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    // Fields 40 and 41 of proc(5); the first after the name is field 3.
    let [Some(priority), Some(policy)] = [40, 41].map(|field| fields.get(field - 3)) else {
        return Vec::new();
    };
    let ps = Command::new("ps").args(["-eLo", "pid=,comm=,cls=,rtprio="]).output().expect("ps").stdout;
    let ps = String::from_utf8_lossy(&ps).into_owned();
    let line = ps.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.first() == Some(&process.to_string().as_str()) && fields.get(1) == Some(&"priority"))
            .then(|| fields[2..].join(" "))
    });
    vec![line.unwrap_or_default(), format!("{policy} {priority}")]
}

/// Returns the late messages of the priority branch in per cent.
fn late_percent(record: &serde_json::Value) -> u64 {
    let paths = record["paths"].as_array().expect("paths");
    let path = paths.iter().find(|path| path["to"] == "out").expect("the priority branch");
    let [messages, misses] =
        [&path["latency"]["count"], &path["misses"]].map(|count| count.as_u64().expect("a count"));
    assert!(messages > 20, "{path}");
    100 * misses / messages
}

/// Returns the page faults of real-time threads after the start. They must not allocate.
fn faults(record: &serde_json::Value) -> Vec<String> {
    let threads = record["threads"].as_array().expect("threads");
    let real_time =
        threads.iter().filter(|thread| thread["name"] == "priority" || thread["name"] == "source");
    let counts = |thread: &serde_json::Value| {
        assert_eq!(thread["allocations"], 0, "{thread}");
        ["minor_faults", "major_faults"]
            .into_iter()
            .filter(|count| thread[count] != 0)
            .map(|count| format!("{count}: {thread}"))
            .collect::<Vec<_>>()
    };
    real_time.flat_map(counts).collect()
}

#[test]
fn the_priority_branch_keeps_its_deadline() {
    let _alone = alone();
    if !may(&["f:81", "r:81", "d:1ms:100ms"]) || !two_cores() {
        return;
    }
    // While others build, the kernel makes room and moves pages, locked ones too; touching one meanwhile is a
    // page fault.
    let _stay = match Sysctl::set("/proc/sys/vm/compact_unevictable_allowed", "0") {
        Ok(set) => Some(set),
        Err(why) if memory::moves_locked_pages() => {
            return eprintln!("skipped: locked pages move here: {why}");
        }
        Err(_) => None,
    };
    let place = Place::new();
    let plain = run(&place, &["pool.priority.policy=o:0", "pool.source.policy=o:0"], None);
    let without = late_percent(&plain);
    assert!(without >= 80, "the other branches do not overload it: {without} % are late");
    for (settings, by_ps, by_proc) in [
        (&["pool.priority.policy=f:80", "pool.source.policy=f:81"][..], "FF 80", "1 80"),
        (&["pool.priority.policy=r:80", "pool.source.policy=r:81"], "RR 80", "2 80"),
        // Periods below the 10 ms of the source: else what is late once stays late.
        (
            &[
                "pool.priority.policy=d:6ms:9ms",
                "pool.priority.cores=[]",
                "pool.source.policy=d:500us:5ms",
                "pool.source.cores=[]",
            ],
            "DLN 0",
            "6 0",
        ),
    ] {
        let record = run(&place, settings, Some([by_ps, by_proc]));
        assert_eq!(faults(&record), Vec::<String>::new(), "{settings:?}");
        let with = late_percent(&record);
        // A machine that is taken away for a while makes some late whatever their priority.
        assert!(with < 20, "{settings:?}: {with} % are late, {without} % without");
        let dropped =
            record["edges"].as_array().expect("edges").iter().filter_map(|edge| edge["dropped"].as_u64());
        assert!(dropped.sum::<u64>() > 0, "the other branches have more than they can do");
    }
}
