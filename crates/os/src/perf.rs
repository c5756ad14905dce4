//! Records of the kernel's tracepoints by core, as raw bytes: `perf_event_open(2)`.
//!
//! A [`PerfRing`] is memory that the kernel writes on one core and another thread reads. It disturbs the
//! traced core as little as the kernel allows: all tracepoints of a core share one ring, and the kernel wakes
//! no thread before the ring is full. The reader polls from time to time.

mod attributes;
mod ring;

pub(crate) use attributes::{Attributes, TYPE_TRACEPOINT, flag, open};
pub use ring::{OpenRing, PerfRing};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// Level of `kernel.perf_event_paranoid`, the restriction for processes without `CAP_PERFMON`; `None` if it
/// is unreadable.
#[must_use]
pub fn paranoid() -> Option<i32> {
    fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

/// Whether the calling thread has `CAP_PERFMON`, or `CAP_SYS_ADMIN`, which includes it.
#[must_use]
pub fn may() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    const SYS_ADMIN: u64 = 1 << 21;
    const PERFMON: u64 = 1 << 38;
    bits & (SYS_ADMIN | PERFMON) != 0
}

/// Raises this process' limit on open files to `files`, or as near as possible: every tracepoint is a file,
/// on every core. Opening too many files then fails.
pub fn allow_open_files(files: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return;
    }
    let wanted = limit.maximum.map_or(files, |maximum| maximum.min(files));
    let _refused = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
}
