//! Reads a Y4M stream frame by frame, from a file, a pipe or stdin.

use super::header::{FRAME, LINE, StreamHeader};
use crate::format::{self, OpenSource, read_arrived};
use crate::streams::{Stdin, StdinRead};
use onbeat_runtime::{Context, Ending, Error, FileUse, Step};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Path that stands for stdin.
pub(super) const STANDARD: &str = "-";

/// Where bytes come from.
enum ByteStream {
    File { file: File, length: u64, _use: FileUse },
    Pipe { file: File, _use: FileUse },
    Stdin(Stdin),
}

/// What the next bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextPart {
    Header,
    FrameLine,
    Planes,
}

/// Result of reading on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// The header or the frame is there.
    Complete,
    /// Nothing more has arrived.
    Nothing,
    /// The stream has ended; this many bytes of the last frame were there.
    Ended(usize),
}

/// A stream that is read.
pub(super) struct Y4mReader {
    bytes: ByteStream,
    path: PathBuf,
    header: Option<StreamHeader>,
    part: NextPart,
    line: Vec<u8>,
    planes: Vec<u8>,
    filled: usize,
    /// Number of the next frame, from 1, in this pass.
    frame: u64,
    /// First byte of the frames.
    begin: u64,
}

impl Y4mReader {
    /// Opens a file, a named pipe, or stdin for `-`.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let bytes = if path == Path::new(STANDARD) {
            ByteStream::Stdin(Stdin::open()?)
        } else {
            match format::open_source(path)? {
                OpenSource { file, bytes: Some(length), used: _use } => {
                    ByteStream::File { file, length, _use }
                }
                OpenSource { file, bytes: None, used: _use } => ByteStream::Pipe { file, _use },
            }
        };
        Ok(Y4mReader {
            bytes,
            path: path.to_path_buf(),
            header: None,
            part: NextPart::Header,
            line: Vec::with_capacity(LINE),
            planes: Vec::new(),
            filled: 0,
            frame: 1,
            begin: 0,
        })
    }

    fn wrong(&self, text: &str) -> Error {
        Error::new(format!("{}: {text}", self.path.display()))
    }

    /// Whether it is a regular file, whose bytes are all there and can be read again.
    pub fn is_file(&self) -> bool {
        matches!(self.bytes, ByteStream::File { .. })
    }

    /// The header, once it was read.
    pub fn header(&self) -> Option<StreamHeader> {
        self.header
    }

    /// Reads the header.
    pub fn read_header(&mut self) -> Result<ReadProgress, Error> {
        match self.read_line(b"YUV4MPEG2 ".len())? {
            ReadProgress::Complete => {}
            ReadProgress::Ended(_) => {
                return Err(self.wrong("its header cannot be read: it is empty or was cut off"));
            }
            ReadProgress::Nothing => return Ok(ReadProgress::Nothing),
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        self.header = Some(StreamHeader::read(line).map_err(|text| self.wrong(&text))?);
        self.begin = self.line.len() as u64;
        self.line.clear();
        self.part = NextPart::FrameLine;
        Ok(ReadProgress::Complete)
    }

    /// For a file whose header was read, requires at least one frame, and returns how many there are if all
    /// begin with the plain line `FRAME`.
    pub fn count(&self) -> Result<Option<u64>, Error> {
        let (ByteStream::File { length, .. }, Some(header)) = (&self.bytes, self.header) else {
            return Ok(None);
        };
        let (rest, frame) = (length.saturating_sub(self.begin), header.frame_bytes() as u64);
        if rest < frame {
            return Err(self.wrong(&format!(
                "there is no whole frame: one has {frame} bytes, and the file has {rest} after the header; it \
                 is truncated or unfinished"
            )));
        }
        let each = frame + FRAME.len() as u64 + 1;
        Ok(rest.is_multiple_of(each).then_some(rest / each))
    }

    /// Reads on until a frame is there. The header must have been read.
    pub fn read_frame(&mut self) -> Result<ReadProgress, Error> {
        let Some(header) = self.header else { return Ok(ReadProgress::Nothing) };
        if self.part == NextPart::FrameLine {
            match self.read_line(FRAME.len() + 1)? {
                ReadProgress::Complete => {}
                other => return Ok(other),
            }
            let is_frame = self.line.strip_prefix(FRAME);
            if !is_frame.is_some_and(|rest| matches!(rest.first(), Some(b'\n' | b' '))) {
                return Err(self.wrong(&format!(
                    "frame {} does not begin with `FRAME`: the data are damaged from there on",
                    self.frame
                )));
            }
            self.planes.resize(header.frame_bytes(), 0);
            (self.part, self.filled) = (NextPart::Planes, 0);
        }
        while self.filled < self.planes.len() {
            match read(&mut self.bytes, &self.path, &mut self.planes[self.filled..])? {
                StdinRead::Bytes(count) => self.filled += count,
                StdinRead::Nothing => return Ok(ReadProgress::Nothing),
                StdinRead::End => return Ok(ReadProgress::Ended(self.line.len() + self.filled)),
            }
        }
        Ok(ReadProgress::Complete)
    }

    /// The planes of the frame that was read.
    pub fn planes(&self) -> &[u8] {
        &self.planes
    }

    /// Whether this pass had a frame.
    pub fn has_frames(&self) -> bool {
        self.frame > 1
    }

    /// Goes on to the next frame.
    pub fn next(&mut self) {
        self.line.clear();
        (self.part, self.filled) = (NextPart::FrameLine, 0);
        self.frame += 1;
    }

    /// Goes back to the first frame of a file.
    pub fn rewind(&mut self) -> Result<(), Error> {
        if let ByteStream::File { file, .. } = &mut self.bytes {
            let sought = file.seek(SeekFrom::Start(self.begin));
            sought.map_err(|error| cannot(&self.path, error))?;
        }
        self.next();
        self.frame = 1;
        Ok(())
    }

    /// Reads a line, at first `least` bytes of it.
    fn read_line(&mut self, least: usize) -> Result<ReadProgress, Error> {
        while self.line.last() != Some(&b'\n') {
            let have = self.line.len();
            if have >= LINE {
                let what = if self.header.is_some() { "frame" } else { "stream" };
                return Err(self.wrong(&format!(
                    "the header of a {what} is longer than {LINE} bytes: it is not a Y4M file, or damaged"
                )));
            }
            self.line.resize(least.max(have + 1), 0);
            let read = read(&mut self.bytes, &self.path, &mut self.line[have..]);
            let count = if let Ok(StdinRead::Bytes(count)) = read { count } else { 0 };
            self.line.truncate(have + count);
            match read? {
                StdinRead::Bytes(_) => {}
                StdinRead::Nothing => return Ok(ReadProgress::Nothing),
                StdinRead::End => return Ok(ReadProgress::Ended(have)),
            }
        }
        Ok(ReadProgress::Complete)
    }

    /// Step of an operator that waits for more bytes.
    pub fn wait(&self, cx: &mut Context) -> Result<Step, Error> {
        match &self.bytes {
            ByteStream::File { .. } => Ok(Step::Again),
            ByteStream::Pipe { file, .. } => cx.readable(file),
            ByteStream::Stdin(_) => cx.readable(&io::stdin()),
        }
    }

    /// Counts what is left of a pipe when the run ends before it, or notes an incomplete frame of a file.
    pub fn finish(self, rest: usize, ending: Ending, cx: &mut Context) {
        match self.bytes {
            ByteStream::File { .. } if rest > 0 => {
                let name = self.path.display();
                cx.note(format!("{name}: it was cut off; {rest} bytes of its last frame were not played"));
            }
            ByteStream::File { .. } => {}
            ByteStream::Pipe { .. } | ByteStream::Stdin(_) if rest > 0 => {
                cx.lose(rest as u64, "bytes", "the stream ended in the middle of a frame");
            }
            ByteStream::Pipe { file, .. } if ending != Ending::Ended => {
                let unread = format::unread(&file) + (self.line.len() + self.filled) as u64;
                cx.lose(unread, "bytes", "waited in a pipe when the run ended");
            }
            ByteStream::Pipe { .. } => {}
            ByteStream::Stdin(stdin) => stdin.lose_unread(self.line.len() + self.filled, ending, cx),
        }
    }
}

/// Reads what is there.
fn read(bytes: &mut ByteStream, path: &Path, to: &mut [u8]) -> Result<StdinRead, Error> {
    let count = match bytes {
        ByteStream::Stdin(stdin) => return stdin.read(to),
        ByteStream::Pipe { file, .. } => read_arrived(file, to),
        ByteStream::File { file, .. } => loop {
            match io::Read::read(file, to) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map(Some),
            }
        },
    };
    Ok(match count.map_err(|error| cannot(path, error))? {
        None => StdinRead::Nothing,
        Some(0) => StdinRead::End,
        Some(count) => StdinRead::Bytes(count),
    })
}

fn cannot(path: &Path, error: io::Error) -> Error {
    Error::with_source(format!("cannot read {}", path.display()), error)
}
