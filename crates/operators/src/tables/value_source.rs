//! Sends the rows of a table at their times.

use super::columns::{Columns, Missing};
use super::format::{Decimal, TableFormat, comma};
use super::rows::Fetched;
use super::source::input;
use super::times::{TimeColumn, TimeUnit, time_of};
use super::{STANDARD, check_columns};
use crate::format::{is_pipe, real};
use crate::lanes::one_or_all;
use onbeat_runtime::{Context, Ending, Error, Folders, Kind, Operator, Output, Pace, Ports, Registry, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Latest first time: some 3 years. A later one is a date.
const LATEST_S: f64 = 1e8;

/// Sends the numbers of each row of a CSV file as values, at the time of the row: for set-points.
///
/// The time of a row counts from the start of the run; with `relative`, from the first row. It is the
/// source time of the values, and with `pace = "real"` the time at which they are due. Rows with the same
/// time come one after the other. A row whose time is before that of the row before it fails the run. If the
/// source is late, it sends the late rows at once.
///
/// Numbers have 64 bits and are not scaled. Fields that are empty or not numbers are sent as `missing` says.
/// Rows of unequal length, and columns that are not there, are errors that name the line.
pub struct CsvValueSource {
    /// Values of the only column.
    pub out: Output<f64>,
    /// With several columns, one output each: `out0`, `out1`, ... instead of `out`.
    pub outs: Vec<Output<f64>>,
    path: PathBuf,
    columns: Vec<String>,
    time: TimeColumn,
    is_relative: bool,
    format: TableFormat,
    missing: Missing,
    pace: Pace,
    table: Option<Columns>,
    /// Time of the row that waits for it, and the numbers of that row.
    row_ns: Option<u64>,
    values: Vec<f64>,
    /// Time of the first row and of the last one, in seconds.
    begin_s: Option<f64>,
    last_s: f64,
}

impl CsvValueSource {
    /// Sends columns, named by the header or by their numbers from 1, at the times of another one. A path of
    /// `-` is stdin. The jitter of the times has no meaning here.
    ///
    /// # Errors
    /// When there are not from 1 to 64 columns, or the name of the column of times is empty.
    pub fn new(
        path: impl Into<PathBuf>,
        columns: Vec<String>,
        time: TimeColumn,
        pace: Pace,
    ) -> Result<Self, Error> {
        check_columns(&columns)?;
        time.check()?;
        let several = if columns.len() > 1 { columns.len() } else { 0 };
        Ok(CsvValueSource {
            out: Output::default(),
            outs: (0..several).map(|_| Output::default()).collect(),
            path: path.into(),
            columns,
            time,
            is_relative: false,
            format: TableFormat::default(),
            missing: Missing::default(),
            pace,
            table: None,
            row_ns: None,
            values: Vec::new(),
            begin_s: None,
            last_s: 0.0,
        })
    }

    /// Sets how the file is written.
    ///
    /// # Errors
    /// When characters of the format cannot be told apart.
    pub fn format(mut self, format: TableFormat) -> Result<Self, Error> {
        self.format = format.check()?;
        Ok(self)
    }

    /// Sets what is sent for fields that are not numbers.
    pub fn missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// Counts times from the first row.
    pub fn relative(mut self, is_relative: bool) -> Self {
        self.is_relative = is_relative;
        self
    }

    fn open(&self) -> Result<Columns, Error> {
        let wanted = self.columns.iter().chain([&self.time.column]).cloned();
        Columns::open(&self.path, self.format, wanted, self.missing)
    }

    /// Takes the numbers of the current row of the table.
    fn take_row(&mut self) -> Result<(), Error> {
        let Some(table) = &mut self.table else { return Ok(()) };
        let (time_s, _) = time_of(table, self.columns.len(), self.time.unit, self.format.decimal)?;
        let zero_s = if self.is_relative { *self.begin_s.get_or_insert(time_s) } else { 0.0 };
        let since_s = time_s - zero_s;
        if self.begin_s.is_none() && since_s > LATEST_S {
            return Err(table.rows.wrong_row(&format!(
                "its time is {since_s} s, which is years after the start of the run: if it is a date, set \
                 `relative = true`; if it has another unit, set `time_unit`"
            )));
        }
        self.begin_s.get_or_insert(time_s);
        if since_s < self.last_s {
            return Err(table.rows.wrong_row(&format!(
                "its time is {since_s} s, before the {} s of the row before it or of the start: sort the rows \
                 by time, or set `relative = true`",
                self.last_s
            )));
        }
        self.last_s = since_s;
        // 584 years: beyond it, the conversion saturates.
        self.row_ns = Some((since_s * 1e9).round() as u64);
        self.values.clear();
        for lane in 0..self.columns.len() {
            self.values.push(table.number(lane)?);
        }
        Ok(())
    }
}

impl Operator for CsvValueSource {
    fn ports(&mut self, p: &mut Ports) {
        if self.outs.is_empty() {
            p.output("out", &mut self.out);
        }
        for (lane, output) in self.outs.iter_mut().enumerate() {
            p.output(&format!("out{lane}"), output);
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.path == Path::new(STANDARD) || is_pipe(&self.path) {
            return Ok(());
        }
        self.open()?.fetch().map(drop)
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.table = Some(self.open()?);
        (self.row_ns, self.begin_s, self.last_s) = (None, None, 0.0);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(table) = &mut self.table else { return Ok(Step::Done) };
        if self.row_ns.is_none() {
            match table.fetch()? {
                Fetched::Row => self.take_row()?,
                Fetched::Nothing => return table.rows.wait(cx),
                Fetched::End => return Ok(Step::Done),
            }
        }
        let Some(time_ns) = self.row_ns else { return Ok(Step::Done) };
        let is_timed = cx.pace(self.pace) == Pace::Real;
        let due_ns = cx.start_ns().saturating_add(time_ns);
        if is_timed && cx.now_ns() < due_ns {
            return Ok(cx.until(due_ns));
        }
        cx.set_time(time_ns, is_timed.then_some(due_ns));
        for (output, value) in one_or_all(&mut self.out, &mut self.outs).iter_mut().zip(&self.values) {
            output.push(cx, *value)?;
        }
        self.row_ns = None;
        Ok(Step::Again)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some(table) = self.table.take() else { return Ok(()) };
        table.sum_up(cx);
        if ending == Ending::Ended && table.count == 0 {
            cx.note(format!("{} has no rows of numbers", self.path.display()));
        }
        if self.row_ns.take().is_some() && !table.rows.is_file() && ending != Ending::Ended {
            cx.lose(1, "rows", "were read from a pipe and not sent when the run ended");
        }
        table.rows.lose_unread(ending, cx);
        Ok(())
    }
}

/// Columns of a CSV file to send by time.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CsvValueSourceParameters {
    /// The file to read, or a named pipe; `-` is stdin.
    path: PathBuf,
    /// The columns to send, by their names in the header or by their numbers from 1. If there are several,
    /// the outputs are called `out0`, `out1`, ...
    columns: Vec<String>,
    /// Column of times, by name or number. The times must not decrease.
    time: String,
    /// Unit of the column `time`: `s`, `ms`, `us` or `ns`.
    #[serde(default)]
    time_unit: TimeUnit,
    /// Whether times count from the first row, which is then sent at once. Otherwise they count from the
    /// start of the run.
    #[serde(default)]
    relative: bool,
    /// Whether the first row has the names of the columns. Without it: if none of its fields is a number.
    #[serde(default)]
    header: Option<bool>,
    /// Character between the fields, such as `";"` or `"\t"`.
    #[serde(default = "comma")]
    delimiter: char,
    /// Character at the start of lines that are skipped, such as `"#"`.
    #[serde(default)]
    comment: Option<char>,
    /// Decimal mark of the numbers: `"."` or `","`.
    #[serde(default)]
    decimal: Decimal,
    /// What to send for a field that is empty or not a number. `nan`: NaN. `hold`: the number before it.
    /// `stop`: the run fails.
    #[serde(default)]
    missing: Missing,
    /// `real`: a row is sent when it is due. `fast`: as soon as there is room.
    #[serde(default = "real")]
    pace: Pace,
}

fn source(p: &CsvValueSourceParameters, folders: &Folders) -> Result<CsvValueSource, Error> {
    let format =
        TableFormat { delimiter: p.delimiter, comment: p.comment, header: p.header, decimal: p.decimal };
    let time = TimeColumn { unit: p.time_unit, ..TimeColumn::new(p.time.as_str()) };
    let source = CsvValueSource::new(input(&p.path, folders), p.columns.clone(), time, p.pace)?;
    Ok(source.format(format)?.missing(p.missing).relative(p.relative))
}

pub(super) fn add_kinds(registry: &mut Registry) {
    let example = "path = \"steps.csv\"\ncolumns = [\"speed\"]\ntime = \"t\"";
    registry.add(Kind::new(
        "csv.source.value",
        "sends the rows of a CSV file at their times",
        example,
        source,
    ));
}
