//! Why messages were late.

use super::counted;
use super::table::{Cell, Column, Table, Unit};
use onbeat::Record;
use onbeat::trace::cause::Cause;
use std::cmp::Reverse;

/// Misses that are told one by one; for the others there is the record.
const SENTENCES: usize = 5;

/// What made them late, over all of them.
pub fn causes(record: &Record) -> Table {
    let explained = record.explained.as_ref().map_or(0, |explained| explained.misses);
    let row = |cause: &Cause| {
        let name = match cause.name.as_str() {
            "" => cause.class.to_string(),
            name => format!("{} {name}", cause.class),
        };
        vec![
            name.into(),
            cause.misses.into(),
            if explained > 0 { Cell::Share(cause.misses as f64 / explained as f64) } else { Cell::Nothing },
            cause.lost_ns.into(),
            cause
                .finding
                .as_ref()
                .map_or(Cell::Nothing, |finding| Cell::Text(format!("onbeat doctor: {finding}"))),
        ]
    };
    Table {
        columns: vec![
            Column::new("cause", "cause", Unit::Text),
            Column::new("misses", "misses", Unit::Count),
            Column::new("share", "of all", Unit::Percent),
            Column::new("lost_ns", "lost", Unit::Millis),
            Column::new("finding", "fix", Unit::Text).optional(),
        ],
        rows: record.causes.iter().map(row).collect(),
    }
}

/// The latest of the misses, by how late they were, and how they were looked into.
pub fn sentences(record: &Record) -> Vec<String> {
    let mut told: Vec<(u64, &str)> = record
        .misses
        .iter()
        .filter_map(|miss| Some((miss.late_ns, miss.verdict.as_ref()?.sentence.as_str())))
        .collect();
    told.sort_by_key(|(late_ns, _)| Reverse(*late_ns));
    let mut lines: Vec<String> =
        told.iter().take(SENTENCES).map(|(_, sentence)| format!("late: {sentence}")).collect();
    if told.len() > SENTENCES {
        lines.push(format!("late: {} more; the record has them", told.len() - SENTENCES));
    }
    let Some(explained) = record.explained.as_ref().filter(|_| record.misses_total > 0) else { return lines };
    if let Some(why) = &explained.why {
        let fix = explained.fix.as_ref().map_or(String::new(), |fix| format!("; {fix}"));
        lines.push(format!("late: what the kernel did is not known: {why}{fix}"));
    }
    for (count, what) in [
        (explained.left_out, "message was late and not looked into: too many came at once"),
        (explained.unread, "step was not read in time"),
        (explained.lost, "record of the kernel was lost"),
    ] {
        if count > 0 {
            let (one, rest) = what.split_once(' ').unwrap_or((what, ""));
            let rest = if count == 1 { rest.to_owned() } else { rest.replacen("was", "were", 1) };
            lines.push(format!("late: {} {rest}", counted(count, one)));
        }
    }
    lines
}
