//! Causes of a run's late frames: the part of its record that ranks the findings.

use onbeat_trace::{Cause, CauseFix, Record};

/// Causes of late frames in one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Causes {
    /// Table of causes; `None` if the run did not look for them.
    pub table: Option<Vec<Cause>>,
    /// Page faults of workers with a real-time policy after the start, if they were counted.
    pub faults: Option<u64>,
}

impl Causes {
    /// Takes the causes from a record.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let is_looked_for = record.explained.is_some() || !record.causes.is_empty();
        Causes { table: is_looked_for.then(|| record.causes.clone()), faults: faults(record) }
    }

    /// Returns a note for the reader.
    #[must_use]
    pub fn note(&self) -> Option<&'static str> {
        self.table.is_none().then_some(
            "the record has no table of causes (`causes`): findings are sorted by severity, not by cost",
        )
    }

    /// Returns the cost of the causes that a finding explains how to fix, in milliseconds; `None` if the
    /// record has no table, or the finding belongs to no cause.
    #[must_use]
    pub fn lost_ms(&self, finding: &str) -> Option<f64> {
        let table = self.table.as_ref()?;
        CauseFix::by(finding).next()?;
        let is_fixed_by_it = |cause: &&Cause| CauseFix::by(finding).any(|row| row.covers(cause));
        let lost_ns =
            table.iter().filter(is_fixed_by_it).fold(0, |sum: u64, cause| sum.saturating_add(cause.lost_ns));
        Some(lost_ns as f64 / 1e6)
    }
}

fn faults(record: &Record) -> Option<u64> {
    let is_real_time = |policy: &str| !policy.starts_with('o');
    let real_time = record.threads.iter().filter(|thread| thread.policy.as_deref().is_some_and(is_real_time));
    let counts = real_time
        .filter_map(|thread| Some(thread.minor_faults?.saturating_add(thread.major_faults.unwrap_or(0))));
    counts.reduce(u64::saturating_add)
}
