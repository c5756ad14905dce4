//! What is checked, one entry per check: what it is about, why it matters, and how it is judged.

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

use crate::case::Case;
use crate::finding::{Judged, Severity};

/// One check.
pub struct Check {
    /// Its name, for command lines and links.
    pub id: &'static str,
    /// The part of the machine that it is about.
    pub area: &'static str,
    /// How much it matters where it is bad, unless the case says otherwise.
    pub severity: Severity,
    /// What it is about, in a few words.
    pub title: &'static str,
    /// What it does.
    pub what: &'static str,
    /// How it is set.
    pub how: &'static str,
    /// What setting it costs.
    pub cost: &'static str,
    /// When to leave it alone.
    pub skip: &'static str,
    /// How a machine is judged.
    pub judge: fn(&Case) -> Judged,
}

/// All checks, part by part.
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

/// The check with that name.
#[must_use]
pub fn named(id: &str) -> Option<&'static Check> {
    all().find(|check| check.id == id)
}

/// `12.3 us` of nanoseconds.
pub(crate) fn us(ns: u64) -> String {
    format!("{:.1} us", ns as f64 / 1e3)
}

/// The first few of many, and how many more there are.
pub(crate) fn some(names: &[String]) -> String {
    const SHOWN: usize = 4;
    match names.len() {
        0..=SHOWN => names.join(", "),
        n => format!("{} and {} more", names[..SHOWN].join(", "), n - SHOWN),
    }
}

/// `no core` for an empty set.
pub(crate) fn cores(set: &onbeat_os::CoreSet) -> String {
    if set.is_empty() { "none".to_owned() } else { set.to_string() }
}
