//! Writes values as rows of a table, by time.

use super::check_columns;
use super::format::{Decimal, TableFormat, comma};
use super::row_writer::RowWriter;
use super::sink::yes;
use crate::flush_timer::FlushTimer;
use crate::lanes::one_or_all;
use crate::part::not_restartable;
use onbeat_runtime::{Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Registry, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Writes the values of one or more inputs to a CSV file, a row for each source time.
///
/// The first column, `time_s`, has the source time in seconds with nine decimal places; the others have the
/// values. Rows are sorted by time. Values with the same source time share a row. A column without a value at
/// that time is empty; with `hold`, it has its last value. If the values of one input go back in time, their
/// rows do too, and a note counts them.
///
/// Numbers are written with the fewest digits from which the same 64-bit number is read again; those below
/// 1e-5 and from 1e16 on have an exponent. Numbers that are not finite are written as `NaN`, `inf` and
/// `-inf`, and counted.
///
/// To sort by time, a row is written once every input has a later value or has ended: an input without
/// values holds the others back. Their values wait in their edges: if one input is slower, give the edges
/// of the others a `capacity` for all values between two of its own, or their senders wait, and sources
/// such as timers and sockets then skip and lose. The file is called "NAME.part" until it is complete. If
/// the run fails, that file is left with the rows so far.
///
/// [`ValueSink`](crate::ValueSink) takes one input and says the lowest, highest and last value at the end; it
/// writes each value when it comes, or every n-th.
pub struct CsvValueSink {
    /// Values of the only column.
    pub input: Input<f64>,
    /// With several columns, one input each: `in0`, `in1`, ... instead of `in`.
    pub inputs: Vec<Input<f64>>,
    path: PathBuf,
    columns: Vec<String>,
    holds: bool,
    format: TableFormat,
    writer: Option<RowWriter>,
    flush: FlushTimer,
    lanes: Vec<ValueLane>,
    last_ns: u64,
    backwards: u64,
}

/// State of an input: the next value with its source time, and the value before it.
#[derive(Clone, Copy, Default)]
struct ValueLane {
    next: Option<(u64, f64)>,
    last: Option<f64>,
}

impl CsvValueSink {
    /// Writes columns with these names.
    ///
    /// # Errors
    /// When there are not from 1 to 64 columns.
    pub fn new(path: impl Into<PathBuf>, columns: Vec<String>) -> Result<Self, Error> {
        check_columns(&columns)?;
        let several = if columns.len() > 1 { columns.len() } else { 0 };
        Ok(CsvValueSink {
            input: Input::default(),
            inputs: (0..several).map(|_| Input::default()).collect(),
            path: path.into(),
            lanes: vec![ValueLane::default(); columns.len()],
            columns,
            holds: false,
            format: TableFormat::default(),
            writer: None,
            flush: FlushTimer::default(),
            last_ns: 0,
            backwards: 0,
        })
    }

    /// Sets whether a column without a value at the time of a row has its last value.
    pub fn hold(mut self, holds: bool) -> Self {
        self.holds = holds;
        self
    }

    /// Sets how the file is written.
    ///
    /// # Errors
    /// When characters of the format cannot be told apart.
    pub fn format(mut self, format: TableFormat) -> Result<Self, Error> {
        self.format = format.check()?;
        Ok(self)
    }

    /// Writes the row of the earliest values.
    fn write(&mut self) -> Result<(), Error> {
        let times = self.lanes.iter().filter_map(|lane| lane.next);
        let Some(time_ns) = times.map(|(time_ns, _)| time_ns).min() else { return Ok(()) };
        let Some(writer) = &mut self.writer else { return Ok(()) };
        self.backwards += u64::from(time_ns < self.last_ns);
        self.last_ns = time_ns;
        writer.time(time_ns as f64 / 1e9);
        for lane in &mut self.lanes {
            let now = lane.next.take_if(|(next_ns, _)| *next_ns == time_ns).map(|(_, value)| value);
            lane.last = now.or(lane.last);
            match if self.holds { lane.last } else { now } {
                Some(value) => writer.number(value),
                None => writer.empty(),
            }
        }
        writer.end_row()
    }
}

impl Operator for CsvValueSink {
    fn ports(&mut self, p: &mut Ports) {
        if self.inputs.is_empty() {
            p.input("in", &mut self.input);
        }
        for (lane, input) in self.inputs.iter_mut().enumerate() {
            p.input(&format!("in{lane}"), input);
        }
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        let names: Vec<String> = [String::from("time_s")].into_iter().chain(self.columns.clone()).collect();
        self.writer = Some(RowWriter::create(&self.path, self.format, &names)?);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.flush.is_due()
            && let Some(writer) = &mut self.writer
        {
            writer.flush()?;
        }
        let inputs = one_or_all(&mut self.input, &mut self.inputs);
        let mut waits = false;
        for (lane, input) in self.lanes.iter_mut().zip(inputs.iter_mut()) {
            if lane.next.is_none() {
                lane.next = input.pop_stamped(cx).map(|(value, stamp)| (stamp.time_ns, value));
            }
            waits |= lane.next.is_none() && !input.is_ended(cx);
        }
        if !waits {
            if self.lanes.iter().all(|lane| lane.next.is_none()) {
                return Ok(Step::Done);
            }
            self.write()?;
            return Ok(Step::Again);
        }
        for (lane, input) in self.lanes.iter().zip(inputs.iter()) {
            if lane.next.is_some() {
                // It need not have another value before the next step.
                input.keep(cx);
            }
        }
        let is_buffered = self.writer.as_ref().is_some_and(RowWriter::is_buffered);
        Ok(self.flush.wait(is_buffered, Step::Wait, cx))
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        if self.backwards > 0 {
            cx.note(format!("{} rows have an earlier time than the row before", self.backwards));
        }
        writer.stop(cx, ending)
    }
}

/// A CSV file of values to write.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CsvValueSinkParameters {
    /// The file to write; missing folders are created.
    path: PathBuf,
    /// Names of the columns after `time_s`. If there are several, each has its own input: `in0`, `in1`, ...
    columns: Vec<String>,
    /// Whether a column without a value at the time of a row has its last value. Otherwise it is empty.
    #[serde(default)]
    hold: bool,
    /// Whether the first row has the names of the columns.
    #[serde(default = "yes")]
    header: bool,
    /// Character between the fields, such as `";"` or `"\t"`.
    #[serde(default = "comma")]
    delimiter: char,
    /// Decimal mark of the numbers: `"."` or `","`.
    #[serde(default)]
    decimal: Decimal,
}

fn sink(p: &CsvValueSinkParameters, folders: &Folders) -> Result<CsvValueSink, Error> {
    let format =
        TableFormat { delimiter: p.delimiter, comment: None, header: Some(p.header), decimal: p.decimal };
    CsvValueSink::new(folders.output(&p.path), p.columns.clone())?.hold(p.hold).format(format)
}

pub(super) fn add_kinds(registry: &mut Registry) {
    let example = "path = \"speeds.csv\"\ncolumns = [\"speed\"]";
    registry.add(Kind::new("csv.sink.value", "writes values as rows of a CSV file, by time", example, sink));
}
