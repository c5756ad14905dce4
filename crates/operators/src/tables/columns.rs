//! The chosen columns of a file, as numbers.

use super::format::{Decimal, TableFormat};
use super::rows::{Fetched, RowReader};
use super::shown;
use onbeat_runtime::{Context, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::str::FromStr;

/// What a source sends for a field that is empty or not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// NaN; a note gives the count and the first line.
    #[default]
    Nan,
    /// The number before it in the column, NaN before the first; a note gives the count and the first line.
    Hold,
    /// The run fails.
    Stop,
}

/// A number of a table.
pub(super) trait TableNumber: FromStr + Copy + std::fmt::Display + std::fmt::LowerExp {
    const NAN: Self;
    fn is_finite(self) -> bool;
    fn of_f64(number: f64) -> Self;
    fn to_f64(self) -> f64;
    /// Whether a number is shorter with an exponent.
    fn is_extreme(self) -> bool;
}

macro_rules! table_number {
    ($($type:ty),*) => {
        $(impl TableNumber for $type {
            const NAN: Self = <$type>::NAN;
            fn is_finite(self) -> bool {
                self.is_finite()
            }
            fn of_f64(number: f64) -> Self {
                number as $type
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn is_extreme(self) -> bool {
                self != 0.0 && !(1e-5..1e16).contains(&self.abs())
            }
        })*
    };
}
table_number!(f32, f64);

/// One chosen column.
struct ChosenColumn {
    wanted: String,
    /// Place in the row, from 0, once the first row is known.
    at: usize,
    /// Last number, which has at most 64 bits.
    last: f64,
    not_finite: u64,
    empty: Odd,
    words: Odd,
}

/// Fields that were not numbers: how many, and the line and text of the first.
#[derive(Default)]
struct Odd {
    count: u64,
    line: u64,
    text: String,
}

/// Rows of a file, of which some columns are read.
pub(super) struct Columns {
    pub rows: RowReader,
    format: TableFormat,
    missing: Missing,
    columns: Vec<ChosenColumn>,
    /// Fields of the first row.
    width: Option<usize>,
    scratch: Vec<u8>,
    /// Rows sent so far.
    pub count: u64,
}

impl Columns {
    /// Opens a file; the columns have names, or numbers from 1.
    pub fn open(
        path: &Path,
        format: TableFormat,
        wanted: impl IntoIterator<Item = String>,
        missing: Missing,
    ) -> Result<Self, Error> {
        let column = |wanted| ChosenColumn {
            wanted,
            at: 0,
            last: f64::NAN,
            not_finite: 0,
            empty: Odd::default(),
            words: Odd::default(),
        };
        Ok(Columns {
            rows: RowReader::open(path, format)?,
            format,
            missing,
            columns: wanted.into_iter().map(column).collect(),
            width: None,
            scratch: Vec::with_capacity(64),
            count: 0,
        })
    }

    /// Goes to the next row of numbers.
    pub fn fetch(&mut self) -> Result<Fetched, Error> {
        loop {
            let fetched = self.rows.fetch()?;
            if fetched != Fetched::Row {
                if fetched == Fetched::End && self.width.is_none() {
                    return Err(self.rows.wrong("it is empty: there are no rows"));
                }
                return Ok(fetched);
            }
            let (fields, line) = (self.rows.fields(), self.rows.line());
            match self.width {
                Some(width) if width == fields => {}
                Some(width) => {
                    return Err(self.rows.wrong_row(&format!(
                        "it has {fields} fields, and the first row has {width}: correct the line, or \
                         `delimiter`, or name its first character in `comment`"
                    )));
                }
                None => {
                    self.width = Some(fields);
                    let is_header = self.format.header.unwrap_or_else(|| self.looks_like_header());
                    self.choose(is_header)?;
                    if is_header {
                        continue;
                    }
                }
            }
            debug_assert!(line > 0);
            self.count += 1;
            return Ok(Fetched::Row);
        }
    }

    /// Starts over at the first row.
    pub fn rewind(&mut self) -> Result<(), Error> {
        self.rows.rewind()?;
        (self.width, self.count) = (None, 0);
        Ok(())
    }

    fn looks_like_header(&mut self) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        let is_number = (0..self.rows.fields()).any(|at| {
            let field = self.rows.field(at);
            // `inf` and `nan` may be names.
            let has_digit = field.iter().any(u8::is_ascii_digit);
            has_digit && read::<f64>(field, self.format.decimal, &mut scratch).is_some()
        });
        self.scratch = scratch;
        !is_number
    }

    /// Finds the columns in the first row.
    fn choose(&mut self, is_header: bool) -> Result<(), Error> {
        let rows = &self.rows;
        let names: Vec<&[u8]> =
            (0..if is_header { rows.fields() } else { 0 }).map(|at| rows.field(at).trim_ascii()).collect();
        for column in &mut self.columns {
            let wanted = column.wanted.trim();
            let mut found = names.iter().enumerate().filter(|(_, name)| **name == wanted.as_bytes());
            let number = wanted.parse::<usize>().ok();
            column.at = match (found.next(), found.next(), number) {
                (Some((at, _)), None, _) => at,
                (Some((one, _)), Some((two, _)), _) => {
                    return Err(rows.wrong(&format!(
                        "its columns {} and {} are both called `{}`: give the number of one of them",
                        one + 1,
                        two + 1,
                        shown(wanted.as_bytes())
                    )));
                }
                (None, _, Some(number)) if (1..=rows.fields()).contains(&number) => number - 1,
                _ => return Err(rows.wrong(&unknown(wanted, &names, rows.fields()))),
            };
        }
        Ok(())
    }

    /// The number in a chosen column of the current row, or what is sent instead if it is missing.
    pub fn number<T: TableNumber>(&mut self, lane: usize) -> Result<T, Error> {
        let column = &mut self.columns[lane];
        let field = self.rows.field(column.at);
        if let Some(number) = read::<T>(field, self.format.decimal, &mut self.scratch) {
            column.not_finite += u64::from(!number.is_finite());
            column.last = number.to_f64();
            return Ok(number);
        }
        let field = field.trim_ascii();
        if self.missing == Missing::Stop || field.contains(&b'\n') {
            return Err(self.not_a_number(lane, "; correct it, or set `missing = \"nan\"` or `\"hold\"`"));
        }
        let odd = if field.is_empty() { &mut column.empty } else { &mut column.words };
        if odd.count == 0 {
            (odd.line, odd.text) = (self.rows.line(), shown(field));
        }
        odd.count += 1;
        Ok(if self.missing == Missing::Hold { T::of_f64(column.last) } else { T::NAN })
    }

    /// The finite number in a column where none may be missing.
    pub fn exact(&mut self, lane: usize) -> Result<f64, Error> {
        let field = self.rows.field(self.columns[lane].at);
        match read::<f64>(field, self.format.decimal, &mut self.scratch) {
            Some(number) if number.is_finite() => Ok(number),
            _ => Err(self.not_a_number(lane, ", and each row needs a time; correct it or remove the row")),
        }
    }

    fn not_a_number(&self, lane: usize, fix: &str) -> Error {
        let column = &self.columns[lane];
        let (name, field) = (shown(column.wanted.as_bytes()), self.text(lane));
        if field.contains(&b'\n') {
            return self.rows.wrong_row(&format!(
                "the field of column `{name}` has a line break: is the double quote at its start not closed?"
            ));
        }
        let what = if field.is_empty() { "empty".into() } else { format!("`{}`", shown(field)) };
        self.rows.wrong_row(&format!("the field of column `{name}` is {what}, which is not a number{fix}"))
    }

    /// The text in a chosen column of the current row.
    pub fn text(&self, lane: usize) -> &[u8] {
        self.rows.field(self.columns[lane].at).trim_ascii()
    }

    /// Notes the fields that were not numbers.
    pub fn sum_up(&self, cx: &mut Context) {
        let sent_as = if self.missing == Missing::Hold { "the number before" } else { "NaN" };
        for ChosenColumn { wanted, empty, words, not_finite, .. } in &self.columns {
            let name = shown(wanted.as_bytes());
            if empty.count > 0 {
                let Odd { count, line, .. } = empty;
                cx.note(format!(
                    "column `{name}`: {count} fields were empty and were sent as {sent_as}, the first in line \
                     {line}"
                ));
            }
            if words.count > 0 {
                let Odd { count, line, text } = words;
                cx.note(format!(
                    "column `{name}`: {count} fields were not numbers and were sent as {sent_as}, the first \
                     `{text}` in line {line}"
                ));
            }
            if *not_finite > 0 {
                cx.note(format!(
                    "column `{name}`: {not_finite} numbers were not finite and were sent unchanged"
                ));
            }
        }
    }
}

/// Reads a number, with spaces around it.
fn read<T: FromStr>(field: &[u8], decimal: Decimal, scratch: &mut Vec<u8>) -> Option<T> {
    let field = field.trim_ascii();
    if decimal == Decimal::Point {
        return std::str::from_utf8(field).ok()?.parse().ok();
    }
    if field.contains(&b'.') {
        return None;
    }
    scratch.clear();
    scratch.extend(field.iter().map(|byte| if *byte == b',' { b'.' } else { *byte }));
    std::str::from_utf8(scratch).ok()?.parse().ok()
}

fn unknown(wanted: &str, names: &[&[u8]], fields: usize) -> String {
    const MOST_NAMES: usize = 12;
    let wanted = shown(wanted.as_bytes());
    if names.is_empty() {
        return format!(
            "there is no column `{wanted}`: the file has no header, so give a number from 1 to {fields}; if \
             its first row has names, set `header = true`"
        );
    }
    let mut known: Vec<String> =
        names.iter().take(MOST_NAMES).map(|name| format!("`{}`", shown(name))).collect();
    if names.len() > MOST_NAMES {
        known.push("…".into());
    }
    format!(
        "there is no column `{wanted}`: the header has {}; give one of them, or a number from 1 to {fields}",
        known.join(", ")
    )
}
