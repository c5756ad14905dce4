//! Whether a thread has a part of its core only: a quota of its control group, or of one above it.

use super::case::{Scheduling, ThreadFacts};
use std::fs;
use std::path::{Path, PathBuf};

/// Shortest time from one look at the quotas to the next: a look takes some 20 µs per thread.
const LOOK_NS: u64 = 100_000_000;

/// When the quotas were looked at.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    next_ns: u64,
}

impl Quotas {
    /// Takes down which threads have a quota, if that is some time ago. Threads change their group while they
    /// run.
    pub fn refresh(&mut self, threads: &mut [ThreadFacts]) {
        let now_ns = onbeat_os::clock::monotonic_ns();
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns + LOOK_NS;
        for thread in threads.iter_mut().filter(|thread| thread.scheduling == Scheduling::Fair) {
            thread.has_quota = has_quota(thread.tid);
        }
    }
}

/// Where the two versions of control groups lie. The controller is in the name of the folder in the first.
const FIRST: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
const SECOND: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Whether a thread of this process has a quota now.
fn has_quota(tid: i32) -> bool {
    let groups = fs::read_to_string(format!("/proc/self/task/{tid}/cgroup")).unwrap_or_default();
    groups.lines().any(|line| {
        // Number, controllers, path: no controllers in the second version.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return false };
        let path = path.trim_matches('/');
        match controllers {
            "" => SECOND.iter().any(|root| any_up(root, path, "cpu.max", |text| !text.starts_with("max"))),
            _ if controllers.split(',').any(|controller| controller == "cpu") => {
                FIRST.iter().any(|root| any_up(root, path, "cpu.cfs_quota_us", |text| !text.starts_with('-')))
            }
            _ => false,
        }
    })
}

/// Whether a file with such a text is in the folder or in one above it, up to the root.
fn any_up(root: &str, path: &str, file: &str, is_so: impl Fn(&str) -> bool) -> bool {
    let folder: PathBuf = Path::new(root).join(path);
    let folders = folder.ancestors().take_while(|folder| folder.starts_with(root));
    folders
        .map(|folder| folder.join(file))
        .any(|file| fs::read_to_string(file).is_ok_and(|text| is_so(&text)))
}
