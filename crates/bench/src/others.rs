//! CPU use of other processes during a measurement.

use onbeat_os::clock;
use std::fs;

/// Measures the CPU use of all processes since it was created.
#[derive(Debug)]
pub(crate) struct Others {
    /// Ticks of all cores: used, and total.
    begin: Option<(u64, u64)>,
    begin_ns: u64,
    own_ns: u64,
}

impl Others {
    pub fn watch() -> Self {
        Others { begin: ticks(), begin_ns: clock::monotonic_ns(), own_ns: clock::process_cpu_ns() }
    }

    /// Share of the machine used by others: not by this process, nor by `helpers_ns` of its child processes,
    /// but including other guests of the hypervisor. From 0 to 1; `None` if the kernel does not tell or the
    /// time was too short.
    pub fn share(&self, helpers_ns: u64) -> Option<f64> {
        /// Fewest kernel ticks for a result; most kernels have a hundred ticks per second.
        const LEAST_TICKS: u64 = 50;
        let ((used_before, all_before), (used, all)) = (self.begin?, ticks()?);
        let (used, all) = (used.saturating_sub(used_before), all.saturating_sub(all_before));
        if all < LEAST_TICKS {
            return None;
        }
        let cores = onbeat_os::CoreSet::online().ok()?.iter().count();
        let passed_ns = (clock::monotonic_ns() - self.begin_ns) as f64 * cores as f64;
        let own_ns = clock::process_cpu_ns() - self.own_ns + helpers_ns;
        Some((used as f64 / all as f64 - own_ns as f64 / passed_ns).clamp(0.0, 1.0))
    }
}

fn ticks() -> Option<(u64, u64)> {
    parse(&fs::read_to_string("/proc/stat").ok()?)
}

/// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal. The
/// remaining fields are contained in these.
fn parse(text: &str) -> Option<(u64, u64)> {
    let numbers = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
    let numbers: Vec<u64> = numbers.map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let all: u64 = numbers.iter().sum();
    let idle = numbers.get(3)? + numbers.get(4)?;
    Some((all - idle, all))
}

/// CPU time of a process so far, in nanoseconds; `None` once the process is gone.
pub(crate) fn cpu_ns(process: u32) -> Option<u64> {
    // The first number of `schedstat` is that time, for each thread.
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let time = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(tasks.filter_map(|task| time(task.ok()?)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_idle_is_used() {
        assert_eq!(parse("cpu  10 20 30 400 50 6 7 8 9 10\ncpu0 1 2\n"), Some((81, 531)));
        for text in ["", "cpu", "cpu  1 2 x", "intr 5", "cpu  1 2 3"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_share_is_a_part_of_the_machine() {
        let others = Others::watch();
        assert_eq!(others.share(0), None, "too short to tell");
        let mut polls = 0;
        while others.share(0).is_none() && polls < 1_000 {
            std::thread::sleep(std::time::Duration::from_millis(10));
            polls += 1;
        }
        assert!(others.share(0).is_none_or(|share| (0.0..=1.0).contains(&share)));
        assert_eq!(others.share(u64::MAX / 4), Some(0.0).filter(|_| others.share(0).is_some()));
    }

    #[test]
    fn this_process_has_used_some() {
        assert!(cpu_ns(std::process::id()).is_some_and(|ns| ns > 0));
        assert_eq!(cpu_ns(u32::MAX), None);
    }
}
