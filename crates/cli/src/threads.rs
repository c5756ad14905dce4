//! The threads of this command beside the workers: the record lists every one.

use onbeat::trace::record::{Obtained, ThreadRecord};
use onbeat_os::{CoreSet, thread};
use std::fs;
use std::path::Path;

const PURPOSES: [(&str, &str); 6] = [
    (crate::commands::run::late::THREAD_NAME, "does what --on-miss says"),
    (crate::progress::THREAD_NAME, "draws the progress line"),
    (crate::metrics::THREAD_NAME, "answers those who ask for metrics"),
    (crate::systemd::THREAD_NAME, "tells systemd that it is alive"),
    (crate::top::THREAD_NAME, "draws the live view"),
    (onbeat_os::signal::THREAD_NAME, "listens for Ctrl-C"),
];

/// Puts the calling thread on the house-keeping cores, and with it the threads that it starts from now on. Says what came of it;
/// nothing where no cores were named.
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

/// Those that are there now; none where `/proc` does not say.
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
    // The first number: nanoseconds on a core.
    let times = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    let cpu_ns = times.split_whitespace().next().and_then(|time| time.parse().ok()).unwrap_or(0);
    Some(ThreadRecord { name, purpose: (*purpose).to_string(), tid, cpu_ns, ..ThreadRecord::default() })
}
