//! Writes rows of a table.

use super::columns::TableNumber;
use super::format::{Decimal, TableFormat};
use crate::part::PartFile;
use csv_core::WriterBuilder;
use onbeat_runtime::{Context, Ending, Error};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Bytes per write to the file.
const BUFFER: usize = 64 << 10;

/// A CSV file that gets its final name only once it is complete.
pub(super) struct RowWriter {
    file: BufWriter<File>,
    part: PartFile,
    format: TableFormat,
    row: Vec<u8>,
    /// Rows of numbers written, and numbers that were not finite.
    pub rows: u64,
    pub not_finite: u64,
}

impl RowWriter {
    /// Creates the file, and writes the names of the columns unless the format says not to.
    pub fn create(path: &Path, format: TableFormat, names: &[String]) -> Result<Self, Error> {
        let part = PartFile::create(path)?;
        let file = BufWriter::with_capacity(BUFFER, part.handle()?);
        let row = Vec::with_capacity(1024);
        let mut writer = RowWriter { file, part, format, row, rows: 0, not_finite: 0 };
        if format.header != Some(false) {
            writer.row = header(names, format.delimiter as u8);
            writer.write()?;
        }
        Ok(writer)
    }

    /// Adds a field of a number to the row: the shortest digits from which the same number is read.
    pub fn number<T: TableNumber>(&mut self, number: T) {
        self.not_finite += u64::from(!number.is_finite());
        let begin = self.begin_field();
        // Writing to memory does not fail.
        let _written = match number.is_extreme() && number.is_finite() {
            true => write!(self.row, "{number:e}"),
            false => write!(self.row, "{number}"),
        };
        self.end_field(begin);
    }

    /// Adds a field of a time to the row: seconds with nine decimal places.
    pub fn time(&mut self, time_s: f64) {
        let begin = self.begin_field();
        let _written = write!(self.row, "{time_s:.9}");
        self.end_field(begin);
    }

    /// Adds an empty field to the row.
    pub fn empty(&mut self) {
        let begin = self.begin_field();
        self.end_field(begin);
    }

    fn begin_field(&mut self) -> usize {
        self.row.len()
    }

    fn end_field(&mut self, begin: usize) {
        if self.format.decimal == Decimal::Comma {
            self.row[begin..].iter_mut().filter(|byte| **byte == b'.').for_each(|byte| *byte = b',');
        }
        self.row.push(self.format.delimiter as u8);
    }

    /// Ends the row, which has one field or more.
    pub fn end_row(&mut self) -> Result<(), Error> {
        if let Some(last) = self.row.last_mut() {
            *last = b'\n';
        }
        self.rows += 1;
        self.write()
    }

    fn write(&mut self) -> Result<(), Error> {
        let written = self.file.write_all(&self.row);
        self.row.clear();
        written.map_err(|error| self.part.cannot_write(error))
    }

    /// Whether rows were written that the file does not have yet.
    pub fn is_buffered(&self) -> bool {
        !self.file.buffer().is_empty()
    }

    /// Writes the buffer to the file.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.file.flush().map_err(|error| self.part.cannot_write(error))
    }

    /// Completes the file. After a failure, it is left under its temporary name if it has rows.
    pub fn stop(mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let written = self.flush();
        if ending == Ending::Failed {
            if self.rows > 0 {
                self.part.keep(cx);
            }
            return Ok(());
        }
        written?;
        if self.not_finite > 0 {
            cx.note(format!(
                "{} numbers were not finite and were written as NaN, inf or -inf",
                self.not_finite
            ));
        }
        self.part.finish(cx.sync_files())
    }
}

/// The row of names, in double quotes where necessary.
fn header(names: &[String], delimiter: u8) -> Vec<u8> {
    let mut core = WriterBuilder::new().delimiter(delimiter).build();
    // Two bytes for each, two quotes around each name and a delimiter after it.
    let mut row = vec![0; names.iter().map(|name| 2 * name.len() + 3).sum::<usize>() + 8];
    let mut at = 0;
    for (number, name) in names.iter().enumerate() {
        if number > 0 {
            at += core.delimiter(&mut row[at..]).1;
        }
        at += core.field(name.as_bytes(), &mut row[at..]).2;
    }
    at += core.terminator(&mut row[at..]).1;
    row.truncate(at);
    row
}
