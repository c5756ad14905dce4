//! A worker that may have a part of its core only: a quota of a cgroup (`cpu.cfs_quota_us`, `cpu.max`).

use crate::alone;
use crate::pipeline::{Log, graph, options, run};
use crate::score::{Expected, score};
use onbeat::trace::CauseClass;
use onbeat_os::clock::{monotonic_ns, thread_cpu_ns};
use onbeat_os::thread;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Part of each 20 ms, in microseconds.
const QUOTA_US: u64 = 4_000;
const QUOTA_PERIOD_US: u64 = 20_000;

/// A group with a quota, for single threads.
struct CpuGroup {
    folder: PathBuf,
    threads: &'static str,
}

impl CpuGroup {
    fn make() -> io::Result<Self> {
        let name = format!("onbeat-injected-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/cpu");
        if first.join("cpu.cfs_quota_us").exists() {
            let group = CpuGroup { folder: first.join(name), threads: "tasks" };
            fs::create_dir(&group.folder)?;
            fs::write(group.folder.join("cpu.cfs_period_us"), QUOTA_PERIOD_US.to_string())?;
            fs::write(group.folder.join("cpu.cfs_quota_us"), QUOTA_US.to_string())?;
            return Ok(group);
        }
        // In the second version a thread stays within the group of its process.
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        let folder = Path::new("/sys/fs/cgroup").join(own).join(name);
        let group = CpuGroup { folder, threads: "cgroup.threads" };
        fs::create_dir(&group.folder)?;
        fs::write(group.folder.join("cgroup.type"), "threaded")?;
        fs::write(group.folder.join("cpu.max"), format!("{QUOTA_US} {QUOTA_PERIOD_US}"))?;
        Ok(group)
    }

    /// Puts the calling thread into it.
    fn enter(&self) -> io::Result<()> {
        fs::write(self.folder.join(self.threads), thread::current_id().to_string())
    }
}

impl Drop for CpuGroup {
    fn drop(&mut self) {
        // All threads in it have ended.
        let _ = fs::remove_dir(&self.folder);
    }
}

#[test]
fn a_quota_that_is_used_up() {
    alone(|| {
        let group = CpuGroup::make().and_then(|group| {
            // Whether threads may enter it is known only after one has.
            let tried = std::thread::scope(|scope| scope.spawn(|| group.enter()).join());
            tried.expect("no panic").map(|()| group)
        });
        let group = match group {
            Ok(group) => group,
            Err(error) => return eprintln!("skipped: no cgroup with a quota can be made here: {error}"),
        };
        // The last thread must have left before it is removed.
        let group = Arc::new(group);
        let entered = Arc::clone(&group);
        let log = Log::default();
        let noted = log.clone();
        let mut has_entered = false;
        let graph = graph(12_000_000, move |number| {
            if !std::mem::replace(&mut has_entered, true) {
                entered.enter().expect("as above");
            }
            if number % 16 != 15 {
                return;
            }
            // More than the quotas of two periods: it is used up wherever the periods lie. Where the clock
            // jumps the thread had no core.
            let (begin_ns, mut last_ns) = (thread_cpu_ns(), monotonic_ns());
            while thread_cpu_ns() < begin_ns + 9_000_000 {
                let now_ns = monotonic_ns();
                if now_ns - last_ns > 1_000_000 {
                    noted.span(last_ns..now_ns);
                }
                last_ns = now_ns;
            }
        });
        let (record, start_ns) = run(graph, &options("o:0"));
        drop(group);
        let expected = Expected { class: CauseClass::RunQueueWait, name: "" };
        score("a quota", &record, start_ns, &log.all(), expected).is_good();
    });
}
