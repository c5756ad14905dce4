//! Helper threads of this command. The record lists them next to the workers.

use onbeat::trace::record::{Obtained, ThreadRecord};
use onbeat_os::{CoreSet, thread};
use std::fs;
use std::path::Path;

/// Name of the thread that runs the actions of `--on-miss`.
pub const ON_MISS: &str = "onbeat-on-miss";

const PURPOSES: [(&str, &str); 6] = [
    (ON_MISS, "runs the actions of --on-miss"),
    (crate::progress::THREAD_NAME, "draws the progress line"),
    (crate::metrics::THREAD_NAME, "serves metrics"),
    (crate::systemd::THREAD_NAME, "notifies systemd"),
    (crate::top::THREAD_NAME, "draws the live view"),
    (onbeat_os::signal::THREAD_NAME, "handles Ctrl-C"),
];

/// Moves the calling thread, and the threads that it starts later, to the house-keeping cores. Returns what
/// was obtained; `None` if `cores` is empty.
pub fn keep_house(cores: &[usize]) -> Option<Obtained> {
    if cores.is_empty() {
        return None;
    }
    let set = CoreSet::from_cores(cores.iter().copied()).ok()?;
    let asked = set.to_string();
    let (obtained, reason) = match thread::set_cores(&set).and_then(|()| thread::cores()) {
        Ok(cores) => (cores.to_string(), None),
        Err(error) => ("any core".to_string(), Some(error.to_string())),
    };
    Some(Obtained { what: "house-keeping cores".to_string(), asked, obtained, reason })
}

/// Returns the helper threads that exist now; none if `/proc` cannot be read.
pub fn helpers() -> Vec<ThreadRecord> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let mut threads: Vec<_> = tasks.filter_map(|task| thread(&task.ok()?.path())).collect();
    threads.sort_by_key(|thread| thread.tid);
    threads
}

fn thread(task: &Path) -> Option<ThreadRecord> {
    let name = fs::read_to_string(task.join("comm")).ok()?.trim_end().to_string();
    let (_, purpose) = PURPOSES.iter().find(|(known, _)| *known == name)?;
    let tid = task.file_name()?.to_str()?.parse().ok()?;
    // The first number is the CPU time in nanoseconds.
    let times = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    let cpu_ns = times.split_whitespace().next().and_then(|time| time.parse().ok()).unwrap_or(0);
    Some(ThreadRecord { name, purpose: (*purpose).to_string(), tid, cpu_ns, ..ThreadRecord::default() })
}
