//! Lines of text.

use super::address::time_ns;
use super::line_buffer::LineBuffer;
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
    buffer: LineBuffer,
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
            buffer: LineBuffer::new(LINE),
            lines: 0,
            ended: false,
        }
    }

    /// Returns the next line if it is complete.
    fn line(&mut self) -> Result<Option<String>, Error> {
        let Some(line) = self.buffer.next() else { return Ok(None) };
        self.lines += 1;
        let wrong =
            |what: &str| Error::new(format!("{}: line {} is {what}", self.path.display(), self.lines));
        let line = line.map_err(|_| wrong(&format!("longer than {} MiB: is it a text file?", LINE >> 20)))?;
        let text = std::str::from_utf8(line).map_err(|_| wrong("not valid UTF-8"))?;
        Ok(Some(text.to_string()))
    }

    /// Reads more. Returns whether anything arrived.
    fn read(&mut self) -> Result<bool, Error> {
        let mut found = Read::End;
        self.buffer.fill(|bytes| {
            found = match &mut self.from {
                None => Read::End,
                Some(From::Stdin(stdin)) => stdin.read(bytes)?,
                Some(From::File { file, .. }) => match std::io::Read::read(file, bytes) {
                    Ok(0) => Read::End,
                    Ok(count) => Read::Bytes(count),
                    Err(error) => {
                        let text = format!("cannot read {}", self.path.display());
                        return Err(Error::with_source(text, error));
                    }
                },
            };
            Ok(if let Read::Bytes(count) = found { count } else { 0 })
        })?;
        if matches!(found, Read::End) {
            self.ended = true;
            self.buffer.end();
        }
        Ok(!matches!(found, Read::Nothing))
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
            stdin.lose_unread(self.buffer.rest(), ending, cx);
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
