//! Whether a thread has a part of its core only: a quota of its control group, or of one above it.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the two versions of control groups lie. The controller is in the name of the folder in the first.
const FIRST: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
const SECOND: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Whether a thread of this process has a quota now.
pub(super) fn has_quota(tid: i32) -> bool {
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
