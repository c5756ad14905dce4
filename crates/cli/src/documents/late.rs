//! Causes of late messages.

use super::table::{Cell, Column, Table, Unit};
use super::{counted, time};
use onbeat::Record;
use onbeat::trace::cause::Cause;
use onbeat::trace::record::Miss;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Causes that are shown one by one.
const CAUSES: usize = 10;

/// Misses that are listed one by one. The record has all.
const SENTENCES: usize = 5;

/// Returns the table of causes over all misses.
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
            Column::new("cause", "cause", Unit::Text).first(CAUSES),
            Column::new("misses", "misses", Unit::Count),
            Column::new("share", "of all", Unit::Percent),
            Column::new("lost_ns", "lost", Unit::Millis),
            Column::new("finding", "fix", Unit::Text).optional(),
        ],
        rows: record.causes.iter().map(row).collect(),
    }
}

/// Returns sentences about the worst misses, and notes about missing data.
pub fn sentences(record: &Record) -> Vec<String> {
    let mut told: Vec<(&Miss, &str)> = record
        .misses
        .iter()
        .filter_map(|miss| Some((miss, miss.verdict.as_ref()?.sentence.as_str())))
        .collect();
    told.sort_by_key(|(miss, _)| Reverse(miss.late_ns));
    // A message that missed several limits is told once.
    let message = |miss: &Miss| (miss.sequence, miss.time_ns.saturating_sub(miss.value_ns));
    let mut sentences: Vec<(&Miss, String)> = Vec::new();
    let mut places = HashMap::new();
    for (miss, sentence) in told {
        match places.get(&message(miss)) {
            Some(&place) => {
                let (_, text): &mut (_, String) = &mut sentences[place];
                *text += &format!("; {} was {} late", miss.name, time(miss.late_ns));
            }
            None => {
                places.insert(message(miss), sentences.len());
                sentences.push((miss, sentence.to_owned()));
            }
        }
    }
    let mut lines: Vec<String> =
        sentences.iter().take(SENTENCES).map(|(_, sentence)| format!("late: {sentence}")).collect();
    if sentences.len() > SENTENCES {
        lines.push(format!("late: {} more in the record", sentences.len() - SENTENCES));
    }
    let Some(explained) = record.explained.as_ref().filter(|_| record.misses_total > 0) else { return lines };
    if let Some(why) = &explained.why {
        let fix = explained.fix.as_ref().map_or(String::new(), |fix| format!("; {fix}"));
        lines.push(format!("late: kernel events unknown: {why}{fix}"));
    }
    for (count, what) in [
        (explained.left_out, "message was late but not explained: too many came at once"),
        (explained.unread, "step was not read in time"),
        (explained.lost, "kernel record was lost"),
    ] {
        if count > 0 {
            let (one, rest) = what.split_once(' ').unwrap_or((what, ""));
            let rest = if count == 1 { rest.to_owned() } else { rest.replacen("was", "were", 1) };
            lines.push(format!("late: {} {rest}", counted(count, one)));
        }
    }
    lines
}
