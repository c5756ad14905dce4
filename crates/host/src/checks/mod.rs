//! The checks. Each entry has its texts, and a function that judges a machine.

mod boot;
mod clock;
mod interrupts;
mod kernel;
mod kernel_work;
mod memory;
mod pipeline;
mod power;
mod rights;
mod scheduler;
mod shared;
mod throttling;
mod topology;

use crate::case::MachineCase;
use crate::finding::{Judgement, Severity};

/// A check and its texts.
pub struct Check {
    /// Identifier, for command lines and links.
    pub id: &'static str,
    /// Part of the machine that the check covers.
    pub area: &'static str,
    /// Severity of a bad result, unless the check's own function gives another.
    pub severity: Severity,
    /// Title, in a few words.
    pub title: &'static str,
    /// Effect on a run.
    pub what: &'static str,
    /// How to change the setting.
    pub how: &'static str,
    /// Cost of the change.
    pub cost: &'static str,
    /// When to leave the setting alone.
    pub skip: &'static str,
    /// Judges a machine.
    pub judge: fn(&MachineCase) -> Judgement,
}

/// Returns all checks, area by area.
pub fn all() -> impl Iterator<Item = &'static Check> {
    [
        kernel::CHECKS,
        boot::CHECKS,
        power::CHECKS,
        clock::CHECKS,
        throttling::CHECKS,
        scheduler::CHECKS,
        memory::CHECKS,
        interrupts::CHECKS,
        kernel_work::CHECKS,
        topology::CHECKS,
        shared::CHECKS,
        rights::CHECKS,
        pipeline::CHECKS,
    ]
    .into_iter()
    .flatten()
}

/// Returns the check with this identifier.
#[must_use]
pub fn named(id: &str) -> Option<&'static Check> {
    all().find(|check| check.id == id)
}

/// Formats nanoseconds as `12.3 us`.
pub(crate) fn us(ns: u64) -> String {
    format!("{:.1} us", ns as f64 / 1e3)
}

/// Lists the first names, and the number of the remaining ones.
pub(crate) fn some(names: &[String]) -> String {
    const SHOWN: usize = 4;
    match names.len() {
        0..=SHOWN => names.join(", "),
        n => format!("{} and {} more", names[..SHOWN].join(", "), n - SHOWN),
    }
}

/// Formats a set of cores; `none` if it is empty.
pub(crate) fn cores(set: &onbeat_os::CoreSet) -> String {
    if set.is_empty() { "none".to_owned() } else { set.to_string() }
}
