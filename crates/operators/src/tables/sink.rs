//! Writes sample streams as columns of a table.

use super::check_columns;
use super::format::{Decimal, TableFormat, comma};
use super::row_writer::RowWriter;
use crate::flush_timer::FlushTimer;
use crate::lanes::{channel_inputs, one_or_all, show_inputs};
use crate::part::not_restartable;
use crate::spectral::AXIS_FIRST;
use onbeat_runtime::{
    Aligned, Chunk, Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Registry, Step, Tag,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Writes one or more real streams to a CSV file: a row for each sample, a column for each stream.
///
/// Numbers are written with the fewest digits from which the same 32-bit number is read again; those below
/// 1e-5 and from 1e16 on have an exponent. Numbers that are not finite are written as `NaN`, `inf` and
/// `-inf`, and counted. With `time`, the first column `time_s` has the time of the sample in seconds: its
/// number in the stream, from 0, divided by the sample rate, to the nanosecond.
///
/// All streams must have the same sample rate; the file ends with the shortest. Tags are not written. The
/// file is called "NAME.part" until it is complete. If the run fails, that file is left with the rows so far.
/// If no sample arrives, the file has only its header.
pub struct CsvSink {
    /// Samples of the only column.
    pub input: Input<Chunk<f32>>,
    /// With several columns, one input each: `in0`, `in1`, ... instead of `in`.
    pub inputs: Vec<Input<Chunk<f32>>>,
    streams: Aligned<f32>,
    path: PathBuf,
    columns: Vec<String>,
    has_time: bool,
    format: TableFormat,
    writer: Option<RowWriter>,
    rate_hz: Option<f64>,
    /// Whether the samples of a stream are frames with an axis of frequencies.
    has_axis: bool,
    flush: FlushTimer,
}

impl CsvSink {
    /// Writes columns with these names.
    ///
    /// # Errors
    /// When there are not from 1 to 64 columns.
    pub fn new(path: impl Into<PathBuf>, columns: Vec<String>) -> Result<Self, Error> {
        check_columns(&columns)?;
        Ok(CsvSink {
            input: Input::default(),
            inputs: channel_inputs(columns.len() as u64)?,
            streams: Aligned::new(columns.len()),
            path: path.into(),
            columns,
            has_time: false,
            format: TableFormat::default(),
            writer: None,
            rate_hz: None,
            has_axis: false,
            flush: FlushTimer::default(),
        })
    }

    /// Sets whether the first column has the times.
    pub fn time(mut self, has_time: bool) -> Self {
        self.has_time = has_time;
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

    /// Checks the sample rate, from which the times are computed.
    fn check_rate(&mut self) -> Result<f64, Error> {
        let rate_hz = self.streams.rate_hz();
        if !self.has_time || self.rate_hz == Some(rate_hz) {
            return Ok(rate_hz);
        }
        if let Some(known_hz) = self.rate_hz {
            return Err(Error::new(format!(
                "cannot write {}: the sample rate changed from {known_hz} Hz to {rate_hz} Hz, and the column of \
                 times needs one: resample before merging streams",
                self.path.display()
            )));
        }
        crate::check::rate(rate_hz)?;
        self.rate_hz = Some(rate_hz);
        Ok(rate_hz)
    }
}

impl Operator for CsvSink {
    fn ports(&mut self, p: &mut Ports) {
        show_inputs(p, &mut self.input, &mut self.inputs);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        let time = self.has_time.then(|| "time_s".to_owned());
        let names: Vec<String> = time.into_iter().chain(self.columns.iter().cloned()).collect();
        self.writer = Some(RowWriter::create(&self.path, self.format, &names)?);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.flush.is_due()
            && let Some(writer) = &mut self.writer
        {
            writer.flush()?;
        }
        let is_buffered = |writer: &Option<RowWriter>| writer.as_ref().is_some_and(RowWriter::is_buffered);
        let inputs = one_or_all(&mut self.input, &mut self.inputs);
        let Some(count) = self.streams.take(inputs, cx)? else {
            let wait = self.streams.wait(inputs, cx);
            return Ok(self.flush.wait(is_buffered(&self.writer), wait, cx));
        };
        let rate_hz = self.check_rate()?;
        let is_axis = |tag: &Tag| &*tag.key == AXIS_FIRST;
        self.has_axis = self.has_axis
            || (0..self.columns.len())
                .any(|lane| self.streams.tags(lane, count).any(|(_, tag)| is_axis(tag)));
        let Some(writer) = &mut self.writer else { return Ok(Step::Done) };
        let (lanes, has_time) = (self.columns.len(), self.has_time);
        self.streams.frames(count, |samples| {
            for row in samples.chunks_exact(lanes) {
                if has_time {
                    writer.time(writer.rows as f64 / rate_hz);
                }
                row.iter().for_each(|x| writer.number(*x));
                writer.end_row()?;
            }
            Ok(())
        })?;
        self.streams.consume(count);
        Ok(self.flush.wait(is_buffered(&self.writer), self.streams.rest(), cx))
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if self.has_axis {
            cx.note(format!(
                "{} has a row for each bin of a spectrum, without its frequency: `waterfall.sink` draws spectra, and \
                 `npy.sink` keeps them as rows",
                self.path.display()
            ));
        }
        self.writer.take().map_or(Ok(()), |writer| writer.stop(cx, ending))
    }
}

/// A CSV file to write.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CsvSinkParameters {
    /// The file to write; missing folders are created.
    path: PathBuf,
    /// Names of the columns. If there are several, each has its own input: `in0`, `in1`, ...
    columns: Vec<String>,
    /// Whether the first column, `time_s`, has the time of each sample in seconds.
    #[serde(default)]
    time: bool,
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

/// Default of a parameter `header`.
pub(super) fn yes() -> bool {
    true
}

fn sink(p: &CsvSinkParameters, folders: &Folders) -> Result<CsvSink, Error> {
    let format =
        TableFormat { delimiter: p.delimiter, comment: None, header: Some(p.header), decimal: p.decimal };
    CsvSink::new(folders.output(&p.path), p.columns.clone())?.time(p.time).format(format)
}

pub(super) fn add_kinds(registry: &mut Registry) {
    let example = "path = \"ecg.csv\"\ncolumns = [\"ecg\"]\ntime = true";
    registry.add(Kind::new("csv.sink", "writes streams as columns of a CSV file", example, sink));
}
