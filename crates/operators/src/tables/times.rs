//! The column of times.

use super::columns::{Columns, Missing};
use super::format::{Decimal, TableFormat};
use super::rows::Fetched;
use crate::check;
use onbeat_runtime::{Context, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Deviation of a time from its regular place, in sample periods, from which on it is noted.
const NOTED: f64 = 0.1;

/// Unit of a column of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Seconds.
    #[default]
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl TimeUnit {
    fn seconds(self) -> f64 {
        match self {
            TimeUnit::S => 1.0,
            TimeUnit::Ms => 1e-3,
            TimeUnit::Us => 1e-6,
            TimeUnit::Ns => 1e-9,
        }
    }
}

/// The column of a file that has the time of each row.
#[derive(Debug, Clone)]
pub struct TimeColumn {
    /// Its name, or its number from 1.
    pub column: String,
    /// Its unit.
    pub unit: TimeUnit,
    /// How far a time may be from its place on a regular grid, in sample periods.
    pub jitter: f64,
}

impl TimeColumn {
    /// A column of seconds that may be off by half a sample period.
    pub fn new(column: impl Into<String>) -> Self {
        TimeColumn { column: column.into(), unit: TimeUnit::S, jitter: 0.5 }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if self.column.trim().is_empty() {
            return Err(Error::new("`time` is empty: give the name or the number of the column of times"));
        }
        check::within("jitter", self.jitter, 0.0, 0.5, "beyond it, samples could change places")
    }
}

/// Reads the time of the current row, in seconds, and the distance of two times that its text can tell apart.
pub(super) fn time_of(
    table: &mut Columns,
    lane: usize,
    unit: TimeUnit,
    decimal: Decimal,
) -> Result<(f64, f64), Error> {
    let time = table.exact(lane)?;
    Ok((time * unit.seconds(), resolution(table.text(lane), decimal) * unit.seconds()))
}

/// The unit of the last decimal place; 0 if an exponent hides it.
fn resolution(text: &[u8], decimal: Decimal) -> f64 {
    let mark = if decimal == Decimal::Comma { b',' } else { b'.' };
    if text.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return 0.0;
    }
    let places = text.iter().rev().position(|byte| *byte == mark).unwrap_or(0);
    10f64.powi(-(places.min(300) as i32))
}

/// Sample rate of a file, found in its times.
pub(super) struct FoundRate {
    pub rate_hz: f64,
    pub rows: u64,
}

/// Finds the sample rate of a file: rows less one by the time from the first to the last row. A whole number
/// of hertz is taken if the rounding of the times allows it.
///
/// Reads the whole file, or its first `most` rows.
pub(super) fn find_rate(
    path: &Path,
    format: TableFormat,
    time: &TimeColumn,
    most: u64,
) -> Result<FoundRate, Error> {
    let mut table = Columns::open(path, format, [time.column.clone()], Missing::Stop)?;
    if !table.rows.is_file() {
        return Err(table.rows.wrong(
            "it cannot be read twice, so its sample rate cannot be found in its times: give `sample_rate`",
        ));
    }
    let (mut first_s, mut last_s, mut step_s) = (0.0, 0.0, 0.0);
    let (mut longest, mut shortest) = ((f64::NEG_INFINITY, 0), (f64::INFINITY, 0));
    while table.count < most && table.fetch()? == Fetched::Row {
        let (time_s, resolution_s) = time_of(&mut table, 0, time.unit, format.decimal)?;
        step_s = f64::max(step_s, resolution_s);
        if table.count == 1 {
            first_s = time_s;
        } else {
            let (step_s, line) = (time_s - last_s, table.rows.line());
            longest = if step_s > longest.0 { (step_s, line) } else { longest };
            shortest = if step_s < shortest.0 { (step_s, line) } else { shortest };
        }
        last_s = time_s;
    }
    let rows = table.count;
    if rows < 2 {
        return Err(table.rows.wrong(&format!(
            "it has {rows} rows: at least 2 are needed to find its sample rate; give `sample_rate`"
        )));
    }
    let (steps, length_s) = ((rows - 1) as f64, last_s - first_s);
    let period_s = length_s / steps;
    let slack_s = 2.0 * time.jitter * period_s + 2.0 * step_s;
    let wrong = |(step_s, line): (f64, u64)| {
        table.rows.wrong(&format!(
            "line {line}: its time is {step_s} s after that of the row before, and the average step is \
             {period_s} s: a stream of samples needs regular times; resample the table, or play it with \
             `csv.source.value`"
        ))
    };
    if shortest.0 <= 0.0 && (shortest.0 < 0.0 || step_s < period_s) || length_s <= 0.0 {
        return Err(wrong(shortest));
    }
    if longest.0 - period_s > slack_s {
        return Err(wrong(longest));
    }
    if period_s - shortest.0 > slack_s {
        return Err(wrong(shortest));
    }
    let rate_hz = steps / length_s;
    let uncertain = (step_s / length_s).max(1e-9);
    let whole = rate_hz.round();
    let is_whole = whole >= 1.0 && (whole / rate_hz - 1.0).abs() <= uncertain;
    Ok(FoundRate { rate_hz: if is_whole { whole } else { rate_hz }, rows })
}

/// Compares each time with its place on the regular grid of a sample rate.
pub(super) struct RegularTimes {
    rate_hz: f64,
    jitter: f64,
    begin_s: Option<f64>,
    rows: u64,
    /// Largest deviation in sample periods, and its line.
    most: (f64, u64),
}

impl RegularTimes {
    pub fn new(rate_hz: f64, jitter: f64) -> Self {
        RegularTimes { rate_hz, jitter, begin_s: None, rows: 0, most: (0.0, 0) }
    }

    /// Begins a new pass through the file.
    pub fn restart(&mut self) {
        (self.begin_s, self.rows) = (None, 0);
    }

    /// Checks the time of the next row; the text is what is wrong with it.
    pub fn check(&mut self, (time_s, resolution_s): (f64, f64), line: u64) -> Result<(), String> {
        let begin_s = *self.begin_s.get_or_insert(time_s);
        let place = (time_s - begin_s) * self.rate_hz;
        let off = place - self.rows as f64;
        // A time that was rounded to its decimal places, as the first one was, is not irregular. The last
        // bits of a large number are not either.
        let rounding = (resolution_s + 4.0 * f64::EPSILON * time_s.abs()) * self.rate_hz;
        let beyond = (off.abs() - rounding).max(0.0);
        if beyond > self.jitter {
            return Err(format!(
                "its time is {time_s} s, which is {off:.3} sample periods from its place at {} Hz; `jitter` \
                 allows {}: correct the sample rate, resample the table, or play it with `csv.source.value`",
                self.rate_hz, self.jitter
            ));
        }
        if beyond > self.most.0 {
            self.most = (beyond, line);
        }
        self.rows += 1;
        Ok(())
    }

    /// Notes the largest deviation.
    pub fn sum_up(&self, cx: &mut Context) {
        let (most, line) = self.most;
        if most > NOTED {
            cx.note(format!(
                "the times are up to {:.0} % of a sample period from their places at {} Hz, most in line \
                 {line}; the samples were not moved",
                100.0 * most,
                self.rate_hz
            ));
        }
    }
}
