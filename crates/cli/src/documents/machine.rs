//! Settings of the machine, as requested and obtained, and interruptions of workers.

use super::counted;
use super::table::{Cell, Column, Table, Unit};
use onbeat::trace::Record;
use onbeat::trace::record::{Obtained, ThreadRecord};

/// Returns the table of all settings.
pub fn settings(obtained: &[Obtained]) -> Table {
    let row = |setting: &Obtained| {
        let is_granted = setting.asked == setting.obtained;
        vec![
            setting.what.as_str().into(),
            setting.asked.as_str().into(),
            setting.obtained.as_str().into(),
            if is_granted { Cell::Nothing } else { "not obtained".into() },
        ]
    };
    Table {
        columns: vec![
            Column::new("setting", "setting", Unit::Text),
            Column::new("asked", "requested", Unit::Text),
            Column::new("obtained", "obtained", Unit::Text),
            Column::new("verdict", "", Unit::Text).optional(),
        ],
        rows: obtained.iter().map(row).collect(),
    }
}

fn workers(record: &Record) -> impl Iterator<Item = &ThreadRecord> {
    record.threads.iter().filter(|thread| thread.minor_faults.is_some())
}

/// Returns the table of workers, with page faults and allocations.
pub fn threads(record: &Record) -> Table {
    let row = |thread: &ThreadRecord| {
        vec![
            thread.name.as_str().into(),
            thread.policy.as_deref().into(),
            thread.busy_ns.into(),
            thread.idle_ns.into(),
            thread.minor_faults.into(),
            thread.major_faults.into(),
            thread.allocations.into(),
        ]
    };
    Table {
        columns: vec![
            Column::new("worker", "worker", Unit::Text),
            Column::new("policy", "policy", Unit::Text),
            Column::new("busy_ns", "busy", Unit::Millis),
            Column::new("idle_ns", "idle", Unit::Millis),
            Column::new("minor_faults", "page faults", Unit::Count),
            Column::new("major_faults", "with disk", Unit::Count).optional(),
            Column::new("allocations", "allocations", Unit::Count),
        ],
        rows: workers(record).map(row).collect(),
    }
}

/// Returns lines about page faults, allocations and overruns of real-time workers, which should have none.
pub fn interruptions(record: &Record) -> impl Iterator<Item = String> {
    let is_locked = |setting: &Obtained| setting.what == "memory lock" && setting.obtained == "all";
    let fix = match record.obtained.iter().any(is_locked) {
        true => "locked pages were moved: sudo sysctl vm.compact_unevictable_allowed=0",
        false => "set lock_memory = true to keep pages in memory",
    };
    let lines = workers(record).filter_map(move |thread| {
        let policy = thread.policy.as_deref().filter(|policy| !policy.starts_with('o'))?;
        let faults = thread.minor_faults.unwrap_or(0) + thread.major_faults.unwrap_or(0);
        let allocations = thread.allocations.unwrap_or(0);
        let what = match (faults, allocations) {
            (0, 0) => return None,
            (0, allocations) => counted(allocations, "allocation"),
            (faults, 0) => counted(faults, "page fault"),
            (faults, allocations) => {
                format!("{} and {}", counted(faults, "page fault"), counted(allocations, "allocation"))
            }
        };
        let fix = if faults > 0 { format!("; {fix}") } else { String::new() };
        Some(format!("worker {} under {policy}: {what} after the start{fix}", thread.name))
    });
    let overruns = record.deadline_overruns.filter(|&overruns| overruns > 0);
    lines.chain(overruns.map(|overruns| {
        format!(
            "{} of SCHED_DEADLINE: a worker used up the run time of a period",
            counted(overruns, "overrun")
        )
    }))
}
