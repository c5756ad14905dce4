//! Rows of a file, of a pipe or of stdin.

use super::format::TableFormat;
use super::{STANDARD, shown};
use crate::format::{OpenSource, open_source, read_arrived, unread};
use crate::streams::{Stdin, StdinRead};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use onbeat_runtime::{Context, Ending, Error, FileUse, Step};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};

/// Bytes per read.
const BLOCK: usize = 64 << 10;
/// Longest row in bytes, and most fields of a row.
const LONGEST: usize = 1 << 20;
const MOST_FIELDS: usize = 1 << 16;
/// Byte order mark of UTF-8.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Result of asking for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetched {
    Row,
    /// Nothing more has come through the pipe so far.
    Nothing,
    End,
}

enum RowInput {
    File(File),
    Pipe(File),
    Stdin(Stdin),
}

/// Splits a file into rows and fields, which it holds until the next row is asked for.
pub(super) struct RowReader {
    input: RowInput,
    path: PathBuf,
    core: Reader,
    buffer: Box<[u8]>,
    /// Part of the buffer that was read but not split.
    filled: std::ops::Range<usize>,
    has_begun: bool,
    has_ended: bool,
    /// Fields of the current row one after the other, and where they end.
    text: Vec<u8>,
    text_length: usize,
    ends: Vec<usize>,
    fields: usize,
    is_row: bool,
    /// Line breaks in the split part, its last byte, and the line in which the row begins.
    breaks: u64,
    last: u8,
    line: u64,
    _use: Option<FileUse>,
}

impl RowReader {
    /// Opens a file or a pipe; `-` is stdin.
    pub fn open(path: &Path, format: TableFormat) -> Result<Self, Error> {
        let (input, used) = if path == Path::new(STANDARD) {
            (RowInput::Stdin(Stdin::open()?), None)
        } else {
            let OpenSource { file, bytes, used } = open_source(path)?;
            (if bytes.is_some() { RowInput::File(file) } else { RowInput::Pipe(file) }, Some(used))
        };
        let core = ReaderBuilder::new()
            .delimiter(format.delimiter as u8)
            .comment(format.comment.map(|c| c as u8))
            .build();
        Ok(RowReader {
            input,
            path: path.to_path_buf(),
            core,
            buffer: vec![0; BLOCK].into(),
            filled: 0..0,
            has_begun: false,
            has_ended: false,
            text: vec![0; 4096],
            text_length: 0,
            ends: vec![0; 64],
            fields: 0,
            is_row: false,
            breaks: 0,
            last: b'\n',
            line: 0,
            _use: used,
        })
    }

    /// Whether it can be read again from the start.
    pub fn is_file(&self) -> bool {
        matches!(self.input, RowInput::File(_))
    }

    /// Line in which the current row begins, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Number of fields of the current row.
    pub fn fields(&self) -> usize {
        self.fields
    }

    /// A field of the current row, from 0, without its quotes.
    pub fn field(&self, at: usize) -> &[u8] {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[begin..self.ends[at]]
    }

    /// An error that names the file.
    pub fn wrong(&self, text: &str) -> Error {
        Error::new(format!("{}: {text}", self.path.display()))
    }

    /// An error that names the file and the line of the current row.
    pub fn wrong_row(&self, text: &str) -> Error {
        self.wrong(&format!("line {}: {text}", self.line))
    }

    /// Splits the next row. Blank lines and comments are skipped.
    pub fn fetch(&mut self) -> Result<Fetched, Error> {
        if std::mem::take(&mut self.is_row) {
            (self.text_length, self.fields) = (0, 0);
        }
        loop {
            if (self.filled.is_empty() || !self.has_begun) && !self.has_ended && !self.fill()? {
                return Ok(Fetched::Nothing);
            }
            if !self.has_begun && !self.begin()? {
                continue;
            }
            // An empty input means the end of the file.
            if self.filled.is_empty() && !self.has_ended {
                continue;
            }
            let (result, taken, written, fields) = self.core.read_record(
                &self.buffer[self.filled.clone()],
                &mut self.text[self.text_length..],
                &mut self.ends[self.fields..],
            );
            let bytes = &self.buffer[self.filled.start..][..taken];
            self.breaks += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            self.last = bytes.last().copied().unwrap_or(self.last);
            self.filled.start += taken;
            self.text_length += written;
            self.fields += fields;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.grow_text()?,
                ReadRecordResult::OutputEndsFull => self.grow_fields()?,
                ReadRecordResult::End => return Ok(Fetched::End),
                ReadRecordResult::Record => {
                    self.is_row = true;
                    self.line = self.first_line(self.last == b'\n');
                    if self.has_ended && self.filled.is_empty() {
                        self.check_end()?;
                    }
                    return Ok(Fetched::Row);
                }
            }
        }
    }

    /// Line in which the row begins whose bytes were split last. `has_break`: whether its own line break was
    /// split too.
    fn first_line(&self, has_break: bool) -> u64 {
        let quoted = self.text[..self.text_length].iter().filter(|byte| **byte == b'\n').count() as u64;
        (self.breaks + u64::from(!has_break)).saturating_sub(quoted)
    }

    /// The last row must not be a quoted field without an end, which would have swallowed rows.
    fn check_end(&mut self) -> Result<(), Error> {
        let last = self.field(self.fields - 1);
        if last.contains(&b'\n') && self.last != b'"' {
            self.line = self.first_line(false);
            return Err(
                self.wrong_row("a double quote opens a field that is never closed: remove or close it")
            );
        }
        Ok(())
    }

    fn grow_text(&mut self) -> Result<(), Error> {
        if self.text.len() >= LONGEST {
            let line = self.first_line(false);
            return Err(self.wrong(&format!(
                "the row that begins in line {line} is longer than {} MiB: is a double quote not closed, or is \
                 it another kind of file?",
                LONGEST >> 20
            )));
        }
        self.text.resize(2 * self.text.len(), 0);
        Ok(())
    }

    fn grow_fields(&mut self) -> Result<(), Error> {
        if self.ends.len() >= MOST_FIELDS {
            let line = self.first_line(false);
            return Err(self.wrong(&format!("line {line} has more than {MOST_FIELDS} fields, the limit")));
        }
        self.ends.resize(2 * self.ends.len(), 0);
        Ok(())
    }

    /// Skips the byte order mark. False if more bytes are needed to tell.
    fn begin(&mut self) -> Result<bool, Error> {
        let bytes = &self.buffer[self.filled.clone()];
        if bytes.len() < MARK.len() && !self.has_ended {
            return Ok(false);
        }
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return Err(
                self.wrong("its text is UTF-16: save it as UTF-8, for example by `iconv -f UTF-16 -t UTF-8`")
            );
        }
        if bytes.starts_with(&MARK) {
            self.filled.start += MARK.len();
        }
        self.has_begun = true;
        Ok(true)
    }

    /// Reads more. False if nothing has come.
    fn fill(&mut self) -> Result<bool, Error> {
        self.buffer.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        let room = &mut self.buffer[self.filled.end..];
        let read = match &mut self.input {
            RowInput::Stdin(stdin) => match stdin.read(room)? {
                StdinRead::Bytes(count) => Ok(Some(count)),
                StdinRead::Nothing => Ok(None),
                StdinRead::End => Ok(Some(0)),
            },
            RowInput::Pipe(pipe) => read_arrived(pipe, room),
            RowInput::File(file) => match file.read(room) {
                Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
                read => read.map(Some),
            },
        };
        let Some(count) = read.map_err(|error| self.cannot_read(error))? else {
            return Ok(self.is_file());
        };
        self.filled.end += count;
        self.has_ended = count == 0;
        Ok(true)
    }

    fn cannot_read(&self, error: io::Error) -> Error {
        Error::with_source(format!("cannot read {}", shown(self.path.as_os_str().as_encoded_bytes())), error)
    }

    /// Goes back to the start of a file.
    pub fn rewind(&mut self) -> Result<(), Error> {
        if let RowInput::File(file) = &mut self.input {
            file.rewind().map_err(|error| self.cannot_read(error))?;
            self.core.reset();
            (self.filled, self.is_row, self.text_length, self.fields) = (0..0, false, 0, 0);
            (self.has_begun, self.has_ended, self.breaks, self.last) = (false, false, 0, b'\n');
        }
        Ok(())
    }

    /// Result of a step that waits for more.
    pub fn wait(&self, cx: &mut Context) -> Result<Step, Error> {
        match &self.input {
            RowInput::Stdin(_) => cx.readable(&io::stdin()),
            RowInput::Pipe(file) | RowInput::File(file) => cx.readable(file),
        }
    }

    /// Counts what is left in a pipe as lost, unless the run has ended at its sources' end.
    pub fn lose_unread(self, ending: Ending, cx: &mut Context) {
        let read = if self.is_row { self.filled.len() } else { self.filled.len() + self.text_length };
        match self.input {
            RowInput::Stdin(stdin) if !self.has_ended => stdin.lose_unread(read, ending, cx),
            RowInput::Pipe(file) if ending != Ending::Ended => {
                cx.lose(unread(&file) + read as u64, "bytes", "waited in a pipe when the run ended");
            }
            _ => {}
        }
    }
}
