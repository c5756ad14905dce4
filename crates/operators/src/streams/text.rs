//! Lines of text.

use super::address::time_ns;
use super::patience::{usual, usual_ns};
use super::standard::{Outgoing, Read, Stdin};
use crate::flush_timer::FlushTimer;
use crate::part::{PartFile, not_restartable};
use onbeat_runtime::{
    Context, Ending, Error, Folders, Input, Kind, Merge, Operator, Output, Ports, Registry, Seconds, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Path that stands for a standard stream.
const STANDARD: &str = "-";
/// Bytes that may wait for room on stdout before the operator takes no more lines.
const WAITING: usize = 64 << 10;
/// Bytes per read.
const BLOCK: usize = 16 << 10;
/// Longest line that is read, in bytes.
const LINE: usize = 1 << 20;

/// Writes each message as a line, to a file or to stdout.
///
/// A file is called "NAME.part" until it is complete. If the run fails, that file is left with the lines so
/// far. Lines for stdout are
/// written as soon as no other line is waiting; while stdout is full, the operator's input edge fills. When
/// the reader of stdout has closed it, the operator is done, and so are operators that feed nothing else.
/// That is not an error. What the reader of stdout does not take within `patience` after a stop of the run is
/// lost, and the run ends with exit status 3.
pub struct TextSink {
    /// Lines without a line break at the end. Messages of several edges are merged by source time.
    pub input: Input<String>,
    path: PathBuf,
    patience_ns: u64,
    to: Option<To>,
}

enum To {
    File { part: PartFile, writer: BufWriter<File>, flush: FlushTimer },
    Stdout(Outgoing),
}

impl TextSink {
    /// Writes to a file; `-` is stdout.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        TextSink { input: Input::default(), path: path.into(), patience_ns: usual_ns(), to: None }
    }

    /// Sets the time for the reader of stdout to take the rest, after a stop of the run.
    pub fn patience(mut self, time_ns: u64) -> Self {
        self.patience_ns = time_ns;
        self
    }
}

impl Operator for TextSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).many(Merge::Ordered);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.to = Some(if self.path == Path::new(STANDARD) {
            To::Stdout(Outgoing::open(self.patience_ns)?)
        } else {
            let part = PartFile::create(&self.path)?;
            let writer = BufWriter::with_capacity(WAITING, part.handle()?);
            To::File { part, writer, flush: FlushTimer::default() }
        });
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match &mut self.to {
            None => Ok(Step::Done),
            Some(To::File { part, writer, flush }) => {
                if flush.is_due() {
                    writer.flush().map_err(|error| part.cannot_write(error))?;
                }
                if let Some(line) = self.input.pop(cx) {
                    writeln!(writer, "{line}").map_err(|error| part.cannot_write(error))?;
                } else if self.input.is_ended(cx) {
                    return Ok(Step::Done);
                }
                Ok(flush.wait(!writer.buffer().is_empty(), Step::Wait, cx))
            }
            Some(To::Stdout(outgoing)) => {
                while outgoing.bytes.len() < WAITING
                    && let Some(line) = self.input.pop(cx)
                {
                    outgoing.bytes.extend_from_slice(line.as_bytes());
                    outgoing.bytes.push(b'\n');
                }
                outgoing.step(&self.input, cx)
            }
        }
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some(To::File { part, mut writer, .. }) = self.to.take() else { return Ok(()) };
        let written = writer.flush();
        if ending == Ending::Failed {
            part.keep(cx);
            return Ok(());
        }
        written.map_err(|error| part.cannot_write(error))?;
        part.finish(cx.sync_files())
    }
}

/// Reads lines from a file or from stdin, and sends each as a message without its line break.
///
/// Lines are UTF-8 of at most 1 MiB. The last line may lack a line break. Bytes that wait in the pipe of
/// stdin when the run is stopped are lost. If there are any, the run ends with exit status 3.
pub struct TextSource {
    /// The lines.
    pub out: Output<String>,
    path: PathBuf,
    from: Option<From>,
    bytes: Vec<u8>,
    /// Start of the next line, and the position up to which there is no line break.
    at: usize,
    searched: usize,
    lines: u64,
    ended: bool,
}

enum From {
    File { file: File, _use: onbeat_runtime::FileUse },
    Stdin(Stdin),
}

impl TextSource {
    /// Reads a file; `-` is stdin.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        TextSource {
            out: Output::default(),
            path: path.into(),
            from: None,
            bytes: Vec::new(),
            at: 0,
            searched: 0,
            lines: 0,
            ended: false,
        }
    }

    /// Returns the next line if it is complete.
    fn line(&mut self) -> Result<Option<String>, Error> {
        let found = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n');
        let end = match found {
            Some(offset) => self.searched + offset,
            None if self.ended && self.at < self.bytes.len() => self.bytes.len(),
            None => {
                self.searched = self.bytes.len();
                if self.bytes.len() - self.at > LINE {
                    let line = self.lines + 1;
                    let shown = self.path.display();
                    return Err(Error::new(format!(
                        "{shown}: line {line} is longer than {} MiB: is it a text file?",
                        LINE >> 20
                    )));
                }
                return Ok(None);
            }
        };
        self.lines += 1;
        let line = &self.bytes[self.at..end];
        let text = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).map_err(|_| {
            Error::new(format!("{}: line {} is not valid UTF-8", self.path.display(), self.lines))
        })?;
        let text = text.to_string();
        self.at = (end + 1).min(self.bytes.len());
        self.searched = self.at;
        Ok(Some(text))
    }

    /// Reads more. Returns whether anything arrived.
    fn read(&mut self) -> Result<bool, Error> {
        self.bytes.drain(..self.at);
        self.searched -= self.at;
        self.at = 0;
        let begin = self.bytes.len();
        self.bytes.resize(begin + BLOCK, 0);
        let read = match &mut self.from {
            None => Read::End,
            Some(From::Stdin(stdin)) => stdin.read(&mut self.bytes[begin..])?,
            Some(From::File { file, .. }) => match std::io::Read::read(file, &mut self.bytes[begin..]) {
                Ok(0) => Read::End,
                Ok(count) => Read::Bytes(count),
                Err(error) => {
                    return Err(Error::with_source(format!("cannot read {}", self.path.display()), error));
                }
            },
        };
        let count = if let Read::Bytes(count) = read { count } else { 0 };
        self.bytes.truncate(begin + count);
        self.ended |= matches!(read, Read::End);
        Ok(!matches!(read, Read::Nothing))
    }
}

impl Operator for TextSource {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn check(&self) -> Result<(), Error> {
        if self.path == Path::new(STANDARD) { Ok(()) } else { crate::format::open(&self.path).map(drop) }
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.from = Some(if self.path == Path::new(STANDARD) {
            From::Stdin(Stdin::open()?)
        } else {
            let (file, _, _use) = crate::format::open(&self.path)?;
            From::File { file, _use }
        });
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        loop {
            if let Some(line) = self.line()? {
                self.out.push(cx, line)?;
                return Ok(Step::Again);
            }
            if self.ended {
                return Ok(Step::Done);
            }
            if !self.read()? {
                return cx.readable(&std::io::stdin());
            }
        }
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if let Some(From::Stdin(stdin)) = self.from.take()
            && !self.ended
        {
            stdin.lose_unread(self.bytes.len() - self.at, ending, cx);
        }
        Ok(())
    }
}

/// Lines to write.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TextSinkParameters {
    /// The file to write; missing folders are created. `-` is stdout: all other output then goes to stderr.
    path: PathBuf,
    /// How long to wait after a stop until the reader of stdout takes the rest.
    #[serde(default = "usual")]
    patience: Seconds,
}

/// Lines to read.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TextSourceParameters {
    /// The file to read; `-` is stdin.
    path: PathBuf,
}

fn sink(p: &TextSinkParameters, folders: &Folders) -> Result<TextSink, Error> {
    let standard = p.path == Path::new(STANDARD);
    let sink = TextSink::new(if standard { p.path.clone() } else { folders.output(&p.path) });
    Ok(sink.patience(time_ns("patience", p.patience)?))
}

fn source(p: &TextSourceParameters, folders: &Folders) -> Result<TextSource, Error> {
    let standard = p.path == Path::new(STANDARD);
    Ok(TextSource::new(if standard { p.path.clone() } else { folders.input(&p.path) }))
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::new("text.sink", "writes lines to a file or to stdout", "path = \"lines.txt\"", sink));
    let text = "writes JSON lines to a file or to stdout, one value per line";
    registry.add(Kind::new("jsonl.sink", text, "path = \"found.jsonl\"", sink));
    registry.add(Kind::new(
        "text.source",
        "reads lines from a file or from stdin",
        "path = \"lines.txt\"",
        source,
    ));
}
