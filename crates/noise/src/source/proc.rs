//! World-readable counters: run-queue waits of a thread, and the kernel's counters of a core.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// Time for which a thread was ready to run while other threads had the core (`schedstat`).
#[derive(Debug)]
pub struct RunQueueWait {
    file: File,
}

impl RunQueueWait {
    /// Opens the counter of the calling thread.
    ///
    /// # Errors
    /// If the kernel does not have this counter (`CONFIG_SCHED_INFO`).
    pub fn of_this_thread() -> io::Result<Self> {
        let waited = RunQueueWait { file: File::open("/proc/thread-self/schedstat")? };
        waited.read_ns().map(|_| waited)
    }

    /// Total so far, in nanoseconds. One system call.
    ///
    /// # Errors
    /// What reading the file returns.
    pub fn read_ns(&self) -> io::Result<u64> {
        let mut bytes = [0; 80];
        let length = self.file.read_at(&mut bytes, 0)?;
        let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
        // The three numbers: time on a core, time waiting for one, number of turns.
        let wait = text.split_ascii_whitespace().nth(1).and_then(|wait| wait.parse().ok());
        wait.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "schedstat has no second number"))
    }
}

/// The kernel's counters of one core since boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoreCounters {
    /// Interrupts by name: a device, or the kernel's three letters.
    pub interrupts: BTreeMap<String, u64>,
    /// Softirqs by name.
    pub softirqs: BTreeMap<String, u64>,
    /// Time that the hypervisor gave to other guests, in nanoseconds, in steps of 10 ms. It under-reports.
    pub steal_ns: u64,
}

impl CoreCounters {
    /// Reads the counters of a core. Unreadable ones are left out.
    #[must_use]
    pub fn read(cpu: usize) -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        CoreCounters {
            interrupts: column(&text("/proc/interrupts"), cpu, device),
            softirqs: column(&text("/proc/softirqs"), cpu, |label, _| label.to_owned()),
            steal_ns: steal_ns(&text("/proc/stat"), cpu),
        }
    }

    /// Returns the differences since `earlier`, without zeros.
    #[must_use]
    pub fn since(&self, earlier: &CoreCounters) -> CoreCounters {
        let difference = |now: &BTreeMap<String, u64>, then: &BTreeMap<String, u64>| {
            let more =
                now.iter().map(|(name, n)| (name, n.saturating_sub(then.get(name).copied().unwrap_or(0))));
            more.filter(|(_, n)| *n > 0).map(|(name, n)| (name.clone(), n)).collect()
        };
        CoreCounters {
            interrupts: difference(&self.interrupts, &earlier.interrupts),
            softirqs: difference(&self.softirqs, &earlier.softirqs),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
        }
    }
}

/// Interrupts without a tracepoint, by their letters: async page faults of a guest, machine checks, and
/// requests of a hypervisor.
pub(crate) const UNTRACED: [&str; 4] = ["HYP", "MCE", "MCP", "HVS"];

/// Parses a table with a row per counter and a column per core, named in the head.
fn column(text: &str, cpu: usize, name: impl Fn(&str, &[&str]) -> String) -> BTreeMap<String, u64> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let wanted = format!("CPU{cpu}");
    let Some(place) = head.iter().position(|word| *word == wanted) else { return BTreeMap::new() };
    let mut counts = BTreeMap::new();
    for line in lines {
        let mut words = line.split_whitespace();
        let Some(label) = words.next().map(|label| label.trim_end_matches(':')) else { continue };
        let words: Vec<&str> = words.collect();
        let Some(count) = words.get(place).and_then(|count| count.parse::<u64>().ok()) else { continue };
        *counts.entry(name(label, words.get(head.len()..).unwrap_or_default())).or_insert(0) += count;
    }
    counts
}

/// Name of a row: the device after its controller if the label is a number, otherwise the label.
fn device(label: &str, rest: &[&str]) -> String {
    match rest.last() {
        Some(device) if label.bytes().all(|byte| byte.is_ascii_digit()) => (*device).to_owned(),
        _ => label.to_owned(),
    }
}

fn steal_ns(text: &str, cpu: usize) -> u64 {
    /// `USER_HZ` is 100 on all supported kernels.
    const TICK_NS: u64 = 10_000_000;
    let wanted = format!("cpu{cpu} ");
    let line = text.lines().find_map(|line| line.strip_prefix(wanted.as_str()));
    let ticks = line.and_then(|line| line.split_whitespace().nth(7)?.parse::<u64>().ok());
    ticks.unwrap_or(0).saturating_mul(TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_has_its_column_even_where_others_are_offline() {
        let text = "           CPU0       CPU2\n 36:          1         41  PCI-MSIX-0000:00:01.0   1-edge      virtio1-req.0\n\
                    LOC:         10         20   Local timer interrupts\nERR:          0\n";
        let counts = column(text, 2, device);
        let counts: Vec<(&str, u64)> = counts.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(counts, [("LOC", 20), ("virtio1-req.0", 41)]);
        assert!(column(text, 1, device).is_empty() && column("", 0, device).is_empty());
    }

    #[test]
    fn steal_is_the_eighth_number() {
        assert_eq!(steal_ns("cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 3 4 5 6 7 8 9 10\n", 1), 80_000_000);
        assert_eq!(steal_ns("cpu10 1 2 3 4 5 6 7 8 9 10\n", 1), 0);
    }

    #[test]
    fn only_what_came_is_told() {
        let earlier = CoreCounters {
            steal_ns: 5,
            interrupts: [("a".into(), 3), ("b".into(), 1)].into(),
            ..CoreCounters::default()
        };
        let now = CoreCounters {
            steal_ns: 9,
            interrupts: [("a".into(), 7), ("b".into(), 1)].into(),
            ..CoreCounters::default()
        };
        let since = now.since(&earlier);
        assert_eq!((since.steal_ns, since.interrupts), (4, [("a".to_owned(), 4)].into()));
    }

    #[test]
    fn this_thread_waits_longer_and_longer() {
        if let Ok(waited) = RunQueueWait::of_this_thread() {
            let before = waited.read_ns().unwrap();
            std::thread::yield_now();
            assert!(waited.read_ns().unwrap() >= before);
        }
    }
}
