//! Samples on stdin and stdout, and raw bytes in a file.

use super::address::time_ns;
use super::patience::{usual, usual_ns};
use super::standard::{Outgoing, Read, Stdin};
use super::wire::WireCodec;
use crate::flush_timer::FlushTimer;
use crate::format::{FileSample, SampleFormat};
use crate::part::{PartFile, not_restartable};
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Hertz, Input, Kind, Operator, Output, Ports, Registry, Sample,
    Seconds, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Reads samples from stdin until it ends.
///
/// A chunk holds the samples available when stdin was polled. Bytes after the last complete sample are
/// lost. So are bytes that wait in the pipe when the run is stopped. If there are any, the run ends with
/// exit status 3.
///
/// The latency of a path from here counts from the time at which this operator read the data. It leaves out
/// the wait in the pipe.
pub struct StdinSource<T: FileSample> {
    /// The samples.
    pub out: Output<Chunk<T>>,
    wire: WireCodec<T>,
    rate_hz: f64,
    stdin: Option<Stdin>,
    bytes: Vec<u8>,
    /// Bytes of an incomplete sample.
    rest: usize,
    sent: u64,
}

impl<T: FileSample> StdinSource<T> {
    /// Reads samples in a format, at a rate in hertz (0: no rate).
    ///
    /// # Errors
    /// When the format is of the other sample type.
    pub fn new(format: Option<SampleFormat>, rate_hz: f64) -> Result<Self, Error> {
        Ok(StdinSource {
            out: Output::default(),
            wire: WireCodec::new(format)?,
            rate_hz,
            stdin: None,
            bytes: Vec::new(),
            rest: 0,
            sent: 0,
        })
    }
}

impl<T: FileSample> Operator for StdinSource<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn sample_rate(&self) -> Option<f64> {
        (self.rate_hz > 0.0).then_some(self.rate_hz)
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.stdin = Some(Stdin::open()?);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(stdin) = &mut self.stdin else { return Ok(Step::Done) };
        let Some(chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let size = self.wire.bytes();
        self.bytes.resize(chunk.capacity() * size, 0);
        match stdin.read(&mut self.bytes[self.rest..])? {
            Read::Nothing => cx.readable(&std::io::stdin()),
            Read::End => {
                cx.lose(self.rest as u64, "bytes", "stdin ended in the middle of a sample");
                self.stdin = None;
                Ok(Step::Done)
            }
            Read::Bytes(count) => {
                let have = self.rest + count;
                let whole = have / size;
                if whole > 0 {
                    let bytes = &self.bytes[..whole * size];
                    send(&mut self.out, chunk, &self.wire, bytes, (&mut self.sent, self.rate_hz), cx)?;
                    self.bytes.copy_within(whole * size..have, 0);
                }
                self.rest = have - whole * size;
                Ok(Step::Again)
            }
        }
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if let Some(stdin) = self.stdin.take() {
            stdin.lose_unread(std::mem::take(&mut self.rest), ending, cx);
        }
        Ok(())
    }
}

/// Sends bytes as the next chunk of the stream.
pub(crate) fn send<T: FileSample>(
    out: &mut Output<Chunk<T>>,
    mut chunk: Chunk<T>,
    wire: &WireCodec<T>,
    bytes: &[u8],
    (sent, rate_hz): (&mut u64, f64),
    cx: &mut Context,
) -> Result<(), Error> {
    chunk.truncate(bytes.len() / wire.bytes());
    if let Some(samples) = chunk.edit_unique() {
        wire.unpack(bytes, samples);
    }
    let now_ns = cx.now_ns();
    stamp_at(now_ns, &mut chunk, (sent, rate_hz), cx);
    out.push(cx, chunk)
}

/// Data from outside are due when they arrive.
pub(crate) fn stamp_at<T: Sample>(
    came_ns: u64,
    chunk: &mut Chunk<T>,
    (sent, rate_hz): (&mut u64, f64),
    cx: &mut Context,
) {
    let info = chunk.info_mut();
    (info.start, info.rate_hz) = (*sent, rate_hz);
    let time_ns = if rate_hz > 0.0 { (*sent as f64 * 1e9 / rate_hz).round() as u64 } else { 0 };
    cx.set_time(time_ns, Some(came_ns));
    *sent += chunk.len() as u64;
}

/// Writes samples to stdout.
///
/// While stdout is full, the operator's input edge fills. When the reader of stdout has closed it, the
/// operator is done, and so are operators that feed nothing else. That is not an error. What the reader does
/// not take within `patience` after a stop of the run is lost, and the run ends with exit status 3.
pub struct StdoutSink<T: FileSample> {
    /// The samples.
    pub input: Input<Chunk<T>>,
    wire: WireCodec<T>,
    patience_ns: u64,
    outgoing: Option<Outgoing>,
}

impl<T: FileSample> StdoutSink<T> {
    /// Writes samples in a format.
    ///
    /// # Errors
    /// When the format is of the other sample type.
    pub fn new(format: Option<SampleFormat>) -> Result<Self, Error> {
        let wire = WireCodec::new(format)?;
        Ok(StdoutSink { input: Input::default(), wire, patience_ns: usual_ns(), outgoing: None })
    }

    /// Sets the time for the reader to take the rest, after a stop of the run.
    pub fn patience(mut self, time_ns: u64) -> Self {
        self.patience_ns = time_ns;
        self
    }
}

impl<T: FileSample> Operator for StdoutSink<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.outgoing = Some(Outgoing::open(self.patience_ns)?);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(outgoing) = &mut self.outgoing else { return Ok(Step::Done) };
        if outgoing.bytes.is_empty()
            && let Some(chunk) = self.input.pop(cx)
        {
            self.wire.pack(&chunk, &mut outgoing.bytes);
        }
        outgoing.step(&self.input, cx)
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        self.outgoing = None;
        self.wire.sum_up(cx);
        Ok(())
    }
}

/// Writes chunks to a file, byte by byte as they are in memory.
///
/// The file is called "NAME.part" until it is complete. If the run fails, that
/// file is left with the data so far.
pub struct FileSink<T: Sample> {
    /// The chunks.
    pub input: Input<Chunk<T>>,
    path: PathBuf,
    open: Option<(PartFile, BufWriter<File>)>,
    flush: FlushTimer,
}

impl<T: Sample> FileSink<T> {
    /// Writes to a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        FileSink { input: Input::default(), path: path.into(), open: None, flush: FlushTimer::default() }
    }
}

impl<T: Sample> Operator for FileSink<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        let part = PartFile::create(&self.path)?;
        let writer = BufWriter::with_capacity(64 << 10, part.handle()?);
        self.open = Some((part, writer));
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some((part, writer)) = &mut self.open else { return Ok(Step::Done) };
        if self.flush.is_due() {
            writer.flush().map_err(|error| part.cannot_write(error))?;
        }
        let Some(chunk) = self.input.pop(cx) else {
            let wait = if self.input.is_ended(cx) { Step::Done } else { Step::Wait };
            return Ok(self.flush.wait(!writer.buffer().is_empty(), wait, cx));
        };
        writer.write_all(bytemuck::cast_slice(&chunk)).map_err(|error| part.cannot_write(error))?;
        Ok(self.flush.wait(!writer.buffer().is_empty(), Step::Wait, cx))
    }

    fn restartable(&self) -> Result<(), Error> {
        not_restartable()
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        let Some((part, mut writer)) = self.open.take() else { return Ok(()) };
        let written = writer.flush();
        if ending == Ending::Failed {
            part.keep(cx);
            return Ok(());
        }
        written.map_err(|error| part.cannot_write(error))?;
        part.finish(cx.sync_files())
    }
}

/// Samples from stdin.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StdinSourceParameters {
    /// Sample format; without it, 32-bit floating point.
    #[serde(default)]
    format: Option<SampleFormat>,
    /// Samples per second; without it there is no source time.
    #[serde(default)]
    sample_rate: Option<Hertz>,
}

/// Samples to stdout.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StdoutSinkParameters {
    /// Sample format; without it, 32-bit floating point.
    #[serde(default)]
    format: Option<SampleFormat>,
    /// How long to wait after a stop until the reader takes the rest.
    #[serde(default = "usual")]
    patience: Seconds,
}

/// A file of raw bytes.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileParameters {
    /// The file to write; missing folders are created.
    path: PathBuf,
}

/// Reads an optional rate.
pub(crate) fn rate(rate: Option<Hertz>) -> Result<f64, Error> {
    let Some(Hertz(rate_hz)) = rate else { return Ok(0.0) };
    crate::check::positive("sample_rate", rate_hz)?;
    Ok(rate_hz)
}

fn source<T: FileSample>(p: &StdinSourceParameters, _: &Folders) -> Result<StdinSource<T>, Error> {
    StdinSource::new(p.format, rate(p.sample_rate)?)
}

fn sink<T: FileSample>(p: &StdoutSinkParameters, _: &Folders) -> Result<StdoutSink<T>, Error> {
    Ok(StdoutSink::new(p.format)?.patience(time_ns("patience", p.patience)?))
}

fn file<T: Sample>(p: &FileParameters, folders: &Folders) -> Result<FileSink<T>, Error> {
    Ok(FileSink::new(folders.output(&p.path)))
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "reads samples from stdin";
    registry.add(
        Kind::new("stdin.source", text, "sample_rate = \"48 kHz\"", source::<f32>)
            .about(include_str!("../about/samples.md")),
    );
    let example = "format = \"cu8\"\nsample_rate = \"2.4 MHz\"";
    registry.add(Kind::new("stdin.source.complex", text, example, source::<Complex<f32>>));
    let text = "writes samples to stdout";
    registry.add(Kind::new("stdout.sink", text, "format = \"ri16_le\"", sink::<f32>));
    registry.add(Kind::new("stdout.sink.complex", text, "", sink::<Complex<f32>>));
    let text = "writes the raw bytes of chunks to a file";
    registry.add(Kind::new("file.sink", text, "path = \"samples.f32\"", file::<f32>));
    registry.add(Kind::new("file.sink.complex", text, "path = \"samples.cf32\"", file::<Complex<f32>>));
    registry.add(Kind::new("file.sink.bytes", text, "path = \"bytes\"", file::<u8>));
}
