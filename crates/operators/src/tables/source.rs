//! Plays columns of a table as sample streams.

use super::columns::{Columns, Missing};
use super::format::{Decimal, TableFormat, comma};
use super::rows::Fetched;
use super::times::{FoundRate, RegularTimes, TimeColumn, TimeUnit, find_rate, time_of};
use super::{STANDARD, check_columns};
use crate::check;
use crate::format::{is_pipe, once, real};
use crate::lanes::{channel_outputs, one_or_all, show_outputs};
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Hertz, Kind, Operator, Output, Pace, Pacer, Ports, Rate,
    Registry, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Rows that are read to estimate the rate for a plan.
const FEW: u64 = 1000;

#[doc = include_str!("../about/csv_source.md")]
pub struct CsvSource {
    /// Samples of the only column.
    pub out: Output<Chunk<f32>>,
    /// With several columns, one output each: `out0`, `out1`, ... instead of `out`.
    pub outs: Vec<Output<Chunk<f32>>>,
    path: PathBuf,
    columns: Vec<String>,
    format: TableFormat,
    missing: Missing,
    time: Option<TimeColumn>,
    rate_hz: f64,
    pace: Pace,
    repeat: u64,
    playing: Option<PlayingTable>,
}

/// State of a run.
struct PlayingTable {
    /// The columns, and after them that of the times.
    table: Columns,
    times: Option<RegularTimes>,
    rate_hz: f64,
    pacer: Pacer,
    /// Chunks for the outputs during a step.
    chunks: Vec<Chunk<f32>>,
    /// Samples that were read and not sent, by column.
    staged: Vec<Vec<f32>>,
    sent: u64,
    passes_left: u64,
    is_at_end: bool,
}

impl CsvSource {
    /// Plays columns, named by the header or by their numbers from 1, once and as fast as the consumer takes
    /// them. A path of `-` is stdin.
    ///
    /// # Errors
    /// When there are not from 1 to 64 columns.
    pub fn new(path: impl Into<PathBuf>, columns: Vec<String>) -> Result<Self, Error> {
        check_columns(&columns)?;
        Ok(CsvSource {
            out: Output::default(),
            outs: channel_outputs(columns.len() as u64)?,
            path: path.into(),
            columns,
            format: TableFormat::default(),
            missing: Missing::default(),
            time: None,
            rate_hz: 0.0,
            pace: Pace::Fast,
            repeat: 1,
            playing: None,
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

    /// Sets the sample rate in hertz, and whether to keep time.
    ///
    /// # Errors
    /// When it is not a finite number above 0.
    pub fn sample_rate(mut self, rate_hz: f64, pace: Pace) -> Result<Self, Error> {
        check::positive("sample_rate", rate_hz)?;
        (self.rate_hz, self.pace) = (rate_hz, pace);
        Ok(self)
    }

    /// Sets the column of times. Without a sample rate, the rate is found in them.
    ///
    /// # Errors
    /// When the name is empty, or the jitter is not from 0 to 0.5.
    pub fn time(mut self, time: TimeColumn, pace: Pace) -> Result<Self, Error> {
        time.check()?;
        (self.time, self.pace) = (Some(time), pace);
        Ok(self)
    }

    /// Sets how many times the file is played; 0 repeats it without end.
    pub fn repeat(mut self, times: u64) -> Self {
        self.repeat = times;
        self
    }

    /// The sample rate, 0 if there is none, and the rows if they were counted.
    fn found_rate(&self, most: u64) -> Result<FoundRate, Error> {
        match &self.time {
            Some(time) if self.rate_hz == 0.0 => find_rate(&self.path, self.format, time, most),
            _ => Ok(FoundRate { rate_hz: self.rate_hz, rows: 0 }),
        }
    }

    fn open(&self) -> Result<Columns, Error> {
        let wanted = self.columns.iter().chain(self.time.iter().map(|time| &time.column)).cloned();
        Columns::open(&self.path, self.format, wanted, self.missing)
    }

    fn can_be_read_twice(&self) -> bool {
        self.path != Path::new(STANDARD) && !is_pipe(&self.path)
    }
}

impl PlayingTable {
    /// Reads rows until `most` are staged, or no more are there.
    fn stage(
        &mut self,
        most: usize,
        time: Option<&TimeColumn>,
        format: TableFormat,
    ) -> Result<Fetched, Error> {
        let PlayingTable { table, times, staged, .. } = self;
        while staged[0].len() < most {
            if self.is_at_end {
                return Ok(Fetched::End);
            }
            match table.fetch()? {
                Fetched::Nothing => return Ok(Fetched::Nothing),
                Fetched::End => {
                    // A file without rows would repeat for ever.
                    self.passes_left = if table.count == 0 { 0 } else { self.passes_left - 1 };
                    self.is_at_end = self.passes_left == 0;
                    if !self.is_at_end {
                        table.rewind()?;
                        if let Some(times) = times {
                            times.restart();
                        }
                    }
                }
                Fetched::Row => {
                    for (lane, samples) in staged.iter_mut().enumerate() {
                        samples.push(table.number(lane)?);
                    }
                    if let (Some(times), Some(time)) = (times.as_mut(), time) {
                        let found = time_of(table, staged.len(), time.unit, format.decimal)?;
                        let line = table.rows.line();
                        times.check(found, line).map_err(|text| table.rows.wrong_row(&text))?;
                    }
                }
            }
        }
        Ok(Fetched::Row)
    }

    /// Sends what is staged.
    fn send(&mut self, outputs: &mut [Output<Chunk<f32>>], cx: &mut Context) -> Result<(), Error> {
        let count = self.staged[0].len();
        for ((output, mut chunk), samples) in
            outputs.iter_mut().zip(self.chunks.drain(..)).zip(&mut self.staged)
        {
            chunk.truncate(count);
            chunk.edit_unique().expect("a new chunk is not shared").copy_from_slice(samples);
            let info = chunk.info_mut();
            (info.start, info.rate_hz) = (self.sent, self.rate_hz);
            samples.clear();
            output.push(cx, chunk)?;
        }
        self.sent += count as u64;
        Ok(())
    }
}

impl Operator for CsvSource {
    fn ports(&mut self, p: &mut Ports) {
        show_outputs(p, &mut self.out, &mut self.outs);
    }

    fn check(&self) -> Result<(), Error> {
        if !self.can_be_read_twice() {
            return Ok(());
        }
        self.open()?.fetch().map(drop)
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        let FoundRate { rate_hz, rows } = self.found_rate(u64::MAX)?;
        let table = self.open()?;
        if self.repeat != 1 && !table.rows.is_file() {
            let repeat = self.repeat;
            return Err(table.rows.wrong(&format!("`repeat` is {repeat}, but a pipe can be played once")));
        }
        let times = self.time.as_ref().map(|time| RegularTimes::new(rate_hz, time.jitter));
        let pacer = Pacer::new(rate_hz, self.pace);
        let passes_left = if self.repeat == 0 { u64::MAX } else { self.repeat };
        if rows > 0 && self.repeat > 0 {
            cx.set_length_ns(pacer.time_ns(rows.saturating_mul(self.repeat)));
        }
        let lanes = self.columns.len();
        self.playing = Some(PlayingTable {
            table,
            times,
            rate_hz,
            pacer,
            chunks: Vec::with_capacity(lanes),
            staged: vec![Vec::new(); lanes],
            sent: 0,
            passes_left,
            is_at_end: false,
        });
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let outputs = one_or_all(&mut self.out, &mut self.outs);
        let Some(playing) = &mut self.playing else { return Ok(Step::Done) };
        // Takes chunks for all outputs or for none: a chunk held while the store is empty would be missing
        // elsewhere.
        playing.chunks.clear();
        for output in outputs.iter() {
            let Some(chunk) = output.chunk(cx) else {
                playing.chunks.clear();
                return Ok(Step::Wait);
            };
            playing.chunks.push(chunk);
        }
        let room = playing.chunks.iter().map(Chunk::capacity).min().unwrap_or(0);
        let fetched = playing.stage(room, self.time.as_ref(), self.format)?;
        let count = playing.staged[0].len() as u64;
        if count == 0 {
            playing.chunks.clear();
            return if fetched == Fetched::End { Ok(Step::Done) } else { playing.table.rows.wait(cx) };
        }
        if let Some(wait) = playing.pacer.wait(cx, playing.sent, playing.sent + count) {
            playing.chunks.clear();
            return Ok(wait);
        }
        playing.send(outputs, cx)?;
        Ok(Step::Again)
    }

    fn rate(&self, pace: Option<Pace>) -> Option<Rate> {
        let rate_hz = self.found_rate(FEW).ok()?.rate_hz;
        let rate_hz = Pacer::new(rate_hz, self.pace).kept_hz(pace)?;
        Some(Rate::Samples { rate_hz, chunk: None, bytes: size_of::<f32>() })
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some(playing) = self.playing.take() else { return Ok(()) };
        playing.table.sum_up(cx);
        if let Some(times) = &playing.times {
            times.sum_up(cx);
        }
        if ending == Ending::Ended && playing.sent == 0 {
            cx.note(format!("{} has no rows of numbers", self.path.display()));
        }
        let waiting = playing.staged[0].len() as u64;
        if !playing.table.rows.is_file() && ending != Ending::Ended {
            cx.lose(waiting, "rows", "were read from a pipe and not sent when the run ended");
        }
        playing.table.rows.lose_unread(ending, cx);
        Ok(())
    }
}

/// Columns of a CSV file to play.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CsvSourceParameters {
    /// The file to play, or a named pipe; `-` is stdin.
    path: PathBuf,
    /// The columns to play, by their names in the header or by their numbers from 1: `["ecg", "2"]`. A name
    /// comes before a number. If there are several, the outputs are called `out0`, `out1`, ...
    columns: Vec<String>,
    /// Samples per second. Without it and without `time`, samples have no rate and are sent as fast as
    /// possible.
    #[serde(default)]
    sample_rate: Option<Hertz>,
    /// Column of times, by name or number. The times must be regular. Without `sample_rate`, the sample rate
    /// is found in them, which reads the file twice.
    #[serde(default)]
    time: Option<String>,
    /// Unit of the column `time`: `s`, `ms`, `us` or `ns`.
    #[serde(default)]
    time_unit: TimeUnit,
    /// How far a time may be from its place on a regular grid, as a part of the sample period, from 0 to 0.5.
    /// More than that fails the run; more than 0.1 is noted. Rounding to the decimal places of the file does
    /// not count.
    #[serde(default = "half")]
    jitter: f64,
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
    /// Used if there is a sample rate. `real`: a chunk is sent when its last sample is due. `fast`: as soon
    /// as there is room.
    #[serde(default = "real")]
    pace: Pace,
    /// How many times to play the file; 0 repeats it without end.
    #[serde(default = "once")]
    repeat: u64,
}

fn half() -> f64 {
    0.5
}

/// The path of an input, in which `-` stays stdin.
pub(super) fn input(path: &Path, folders: &Folders) -> PathBuf {
    if path == Path::new(STANDARD) { path.to_path_buf() } else { folders.input(path) }
}

fn source(p: &CsvSourceParameters, folders: &Folders) -> Result<CsvSource, Error> {
    let format =
        TableFormat { delimiter: p.delimiter, comment: p.comment, header: p.header, decimal: p.decimal };
    let mut source = CsvSource::new(input(&p.path, folders), p.columns.clone())?
        .format(format)?
        .missing(p.missing)
        .repeat(p.repeat);
    if let Some(Hertz(rate_hz)) = p.sample_rate {
        source = source.sample_rate(rate_hz, p.pace)?;
    }
    let jitter = p.jitter;
    check::within("jitter", jitter, 0.0, 0.5, "beyond it, samples could change places")?;
    match &p.time {
        Some(column) => source.time(TimeColumn { column: column.clone(), unit: p.time_unit, jitter }, p.pace),
        None => Ok(source),
    }
}

pub(super) fn add_kinds(registry: &mut Registry) {
    let example = "path = \"ecg.csv\"\ncolumns = [\"ecg\"]\nsample_rate = \"360 Hz\"";
    registry.add(
        Kind::new("csv.source", "plays columns of a CSV file", example, source)
            .about(include_str!("../about/csv_source.md")),
    );
}
