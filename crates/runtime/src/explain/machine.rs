//! Facts on the machine: fair server, cost of a page fault, scheduling class of a thread.

use super::case::Scheduling;
use onbeat_os::Usage;
use onbeat_os::memory::FreshMemory;
use onbeat_trace::Machine;
use std::fs;

/// Whether other threads get their share by a server of the kernel: since Linux 6.12.
pub(super) fn has_fair_server() -> bool {
    let release = Machine::of_this_process().kernel.as_deref().unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 12)
}

/// Measures the cost of a page fault on this thread, in nanoseconds. For other threads it is an estimate,
/// because their pages may come from elsewhere.
pub(super) fn fault_cost_ns() -> u64 {
    const BYTES: usize = 4 << 20;
    const PART: usize = 256 << 10;
    let Ok(mut memory) = FreshMemory::map(BYTES) else { return 0 };
    let mut costs_ns = Vec::new();
    for begin in (0..BYTES).step_by(PART) {
        let Ok(before) = Usage::of_thread() else { return 0 };
        let begin_ns = onbeat_os::clock::monotonic_ns();
        memory.touch(begin..begin + PART);
        let end_ns = onbeat_os::clock::monotonic_ns();
        let faults = Usage::of_thread().map_or(0, |after| after.since(&before).minor_faults);
        costs_ns.extend((end_ns - begin_ns).checked_div(faults));
    }
    // Median: other threads may have had the core in some measurements.
    costs_ns.sort_unstable();
    costs_ns.get(costs_ns.len() / 2).copied().unwrap_or(0)
}

/// Scheduling class of a thread of this process.
pub(super) fn scheduling(tid: i32) -> Scheduling {
    let stat = fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap_or_default();
    // The name may contain anything. After it comes the third field; the policy is the 41st.
    let policy =
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(38)?.parse::<u32>().ok());
    match policy {
        Some(1 | 2) => Scheduling::RealTime,
        Some(6) => Scheduling::Deadline,
        _ => Scheduling::Fair,
    }
}
