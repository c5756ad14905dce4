//! Kernel threads that handle interrupts, if there are any (`threadirqs`, `PREEMPT_RT`, and some drivers).

use std::fs;
use std::path::Path;

use crate::cores::CoreSet;

/// An interrupt thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptThread {
    /// Its name, such as `irq/24-eth0`.
    pub name: String,
    /// Its real-time priority; 0 for none.
    pub priority: u8,
    /// Cores that it may run on.
    pub cores: CoreSet,
}

/// Returns all interrupt threads that `/proc` shows.
#[must_use]
pub fn threads() -> Vec<InterruptThread> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| thread(&entry.ok()?.path())).collect()
}

fn thread(folder: &Path) -> Option<InterruptThread> {
    let name = fs::read_to_string(folder.join("comm")).ok()?.trim_end().to_owned();
    if !name.starts_with("irq/") {
        return None;
    }
    // The name may contain spaces; field 40 is the priority, and field 3 is the first after the name.
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    let priority = stat.rsplit_once(')')?.1.split_whitespace().nth(40 - 3)?.parse().ok()?;
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let cores =
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")?.trim().parse().ok())?;
    Some(InterruptThread { name, priority, cores })
}
