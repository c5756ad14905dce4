//! Counts kernel events of this process, such as one system call, by `perf_event_open(2)` on a tracepoint.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::perf::{self, Attributes, TYPE_TRACEPOINT, flag};

/// Folders of tracepoints, in the order in which they are tried.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Counts how often a tracepoint is hit by the thread that made the counter, and by all threads started from
/// it since.
///
/// ```
/// use onbeat_os::EventCounter;
/// match EventCounter::tracepoint("syscalls", "sys_enter_futex") {
///     Ok(futex) => println!("{} futex calls", futex.count()?),
///     Err(error) => println!("not available: {error}"),
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct EventCounter {
    event: File,
}

impl EventCounter {
    /// Starts counting at 0.
    ///
    /// # Errors
    /// `PermissionDenied` without the right to trace (root, or `CAP_PERFMON` and a readable tracefs),
    /// `NotFound` if the kernel has no such tracepoint. The message says how to get the right.
    pub fn tracepoint(group: &str, name: &str) -> io::Result<EventCounter> {
        let id = tracepoint_id(group, name)?;
        let attributes =
            Attributes { kind: TYPE_TRACEPOINT, config: id, flags: flag::INHERIT, ..Attributes::default() };
        let (this_thread, any_core) = (0, -1);
        let event = perf::open(&attributes, this_thread, any_core).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!(
                    "counting {group}:{name} is refused: {error}; run as root, or grant CAP_PERFMON and set \
                     kernel.perf_event_paranoid to -1"
                ),
            )
        })?;
        let event = File::from(event);
        Ok(EventCounter { event })
    }

    /// Returns the count so far. From any thread.
    ///
    /// # Errors
    /// What the kernel returns for the read.
    pub fn count(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        (&self.event).read_exact(&mut count)?;
        Ok(u64::from_ne_bytes(count))
    }
}

fn tracepoint_id(group: &str, name: &str) -> io::Result<u64> {
    let mut refused: Option<(PathBuf, io::Error)> = None;
    for root in TRACEFS {
        let path = Path::new(root).join("events").join(group).join(name).join("id");
        match fs::read_to_string(&path) {
            Ok(text) => {
                return text.trim().parse().map_err(|_| {
                    let message = format!("{}: `{}` is not a tracepoint id", path.display(), text.trim());
                    io::Error::new(io::ErrorKind::InvalidData, message)
                });
            }
            // A refusal is more informative than a missing file at the other place.
            Err(error) if refused.is_none() || error.kind() == io::ErrorKind::PermissionDenied => {
                refused = Some((path, error));
            }
            Err(_) => {}
        }
    }
    let (path, error) = refused.expect("there is more than one place");
    let fix = match error.kind() {
        io::ErrorKind::PermissionDenied => "run as root",
        _ => "mount tracefs on /sys/kernel/tracing, on a kernel with CONFIG_FTRACE_SYSCALLS",
    };
    Err(io::Error::new(error.kind(), format!("{}: {error}; {fix}", path.display())))
}

#[cfg(test)]
#[expect(clippy::disallowed_macros, reason = "a test says why it was skipped")]
mod tests {
    use super::*;
    use crate::{Parker, thread};

    #[test]
    fn calls_of_threads_that_were_started_later_are_counted() {
        let futex = match EventCounter::tracepoint("syscalls", "sys_enter_futex") {
            Ok(futex) => futex,
            Err(error) => return println!("skipped: {error}"),
        };
        let before = futex.count().unwrap();
        let sleeper = thread::spawn("sleeper", || {
            let parker = Parker::new();
            for _ in 0..10 {
                let _timed_out = parker.park_until(1);
            }
        });
        sleeper.unwrap().join().unwrap();
        assert!(futex.count().unwrap() >= before + 10);
    }

    #[test]
    fn a_tracepoint_that_is_none_is_named() {
        let error = EventCounter::tracepoint("syscalls", "sys_enter_fly").unwrap_err().to_string();
        assert!(error.contains("syscalls/sys_enter_fly/id") && error.contains("; "), "{error}");
    }
}
