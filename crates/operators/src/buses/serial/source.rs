//! Samples, lines and bytes from a serial port.

use super::line::{BYTES, SerialLine, SerialSetup};
use super::shared::PortUse;
use crate::format::SampleFormat;
use crate::streams::{LineBuffer, WireCodec, send};
use onbeat_runtime::{Chunk, Context, Ending, Error, Operator, Output, Ports, Step};

// Units and reasons of losses.
const LINES: &str = "lines";
const UNREAD: &str = "waited in the port when the run was stopped";
const NOT_TEXT: &str = "not UTF-8: is `baud` that of the device?";
const TOO_LONG: &str = "longer than `longest`: is `baud` that of the device?";
const CUT: &str = "the device went away in the middle of a sample or line";

/// Result of a step without data.
fn wait(line: &SerialLine, cx: &mut Context) -> Result<Step, Error> {
    line.lease().map_or(Ok(Step::Done), |lease| cx.readable(lease))
}

/// Counts what was not read when the run ends, and closes the port. An incomplete sample or line at a stop is
/// not a loss.
fn stop(line: &mut SerialLine, rest: usize, cx: &mut Context, ending: Ending) {
    if ending == Ending::Failed {
        cx.lose(rest as u64, BYTES, CUT);
    }
    cx.lose(line.unread(cx), BYTES, UNREAD);
    line.stop(cx);
}

#[doc = include_str!("../../about/serial.md")]
pub struct SerialSampleSource {
    /// The samples.
    pub out: Output<Chunk<f32>>,
    line: SerialLine,
    wire: WireCodec<f32>,
    rate_hz: f64,
    bytes: Vec<u8>,
    /// Bytes of an incomplete sample.
    rest: usize,
    sent: u64,
}

impl SerialSampleSource {
    /// Receives samples in a format (32-bit floating point without one), at a rate in hertz (0: no rate).
    ///
    /// # Errors
    /// When the format is of complex samples.
    pub fn new(setup: SerialSetup, format: Option<SampleFormat>, rate_hz: f64) -> Result<Self, Error> {
        Ok(SerialSampleSource {
            out: Output::default(),
            line: SerialLine::new(setup, PortUse::Read),
            wire: WireCodec::new(format)?,
            rate_hz,
            bytes: Vec::new(),
            rest: 0,
            sent: 0,
        })
    }
}

impl Operator for SerialSampleSource {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn sample_rate(&self) -> Option<f64> {
        (self.rate_hz > 0.0).then_some(self.rate_hz)
    }

    fn check(&self) -> Result<(), Error> {
        self.line.look()
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.line.start(cx)
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        cx.lose(std::mem::take(&mut self.rest) as u64, BYTES, CUT);
        self.line.restart(cx);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(step) = self.line.open(cx)? {
            return Ok(step);
        }
        let Some(chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let size = self.wire.bytes();
        self.bytes.resize(chunk.capacity() * size, 0);
        let Some(count) = self.line.read(&mut self.bytes[self.rest..])? else {
            return wait(&self.line, cx);
        };
        let have = self.rest + count;
        let whole = have / size * size;
        if whole > 0 {
            let bytes = &self.bytes[..whole];
            send(&mut self.out, chunk, &self.wire, bytes, (&mut self.sent, self.rate_hz), cx)?;
            self.bytes.copy_within(whole..have, 0);
        }
        self.rest = have - whole;
        Ok(Step::Again)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        stop(&mut self.line, std::mem::take(&mut self.rest), cx, ending);
        Ok(())
    }
}

/// Receives bytes from a serial port. A chunk holds those that were there when the port was read.
///
/// What else holds for [`SerialSampleSource`] holds here, too.
pub struct SerialByteSource {
    /// The bytes.
    pub out: Output<Chunk<u8>>,
    line: SerialLine,
    sent: u64,
}

impl SerialByteSource {
    /// Receives from a port.
    pub fn new(setup: SerialSetup) -> Self {
        SerialByteSource { out: Output::default(), line: SerialLine::new(setup, PortUse::Read), sent: 0 }
    }
}

impl Operator for SerialByteSource {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn check(&self) -> Result<(), Error> {
        self.line.look()
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.line.start(cx)
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.line.restart(cx);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(step) = self.line.open(cx)? {
            return Ok(step);
        }
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let Some(count) = self.line.read(chunk.edit(cx)?)? else { return wait(&self.line, cx) };
        chunk.truncate(count);
        chunk.info_mut().start = self.sent;
        self.sent += count as u64;
        let now_ns = cx.now_ns();
        cx.set_time(now_ns.saturating_sub(cx.start_ns()), Some(now_ns));
        self.out.push(cx, chunk)?;
        Ok(Step::Again)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        stop(&mut self.line, 0, cx, ending);
        Ok(())
    }
}

/// Receives lines of text from a serial port, each as a message without its line break (`\n` or `\r\n`).
///
/// A line that is not UTF-8 or too long is lost and counted. The source time of a line is the time at which
/// its end was read, since the start of the run.
///
/// What else holds for [`SerialSampleSource`] holds here, too.
pub struct SerialTextSource {
    /// The lines.
    pub out: Output<String>,
    line: SerialLine,
    buffer: LineBuffer,
    skip: u64,
    /// Lines to leave out.
    to_skip: u64,
    /// Time at which the bytes in the buffer were read, on the run's clock.
    came_ns: u64,
}

impl SerialTextSource {
    /// Receives lines of at most `longest` bytes.
    pub fn new(setup: SerialSetup, longest: usize) -> Self {
        SerialTextSource {
            out: Output::default(),
            line: SerialLine::new(setup, PortUse::Read),
            buffer: LineBuffer::new(longest),
            skip: 0,
            to_skip: 0,
            came_ns: 0,
        }
    }

    /// Leaves out this many lines each time that the port is opened: the first one is often cut.
    pub fn skip(mut self, lines: u64) -> Self {
        (self.skip, self.to_skip) = (lines, lines);
        self
    }

    /// Sends the next line that is complete. Returns whether there was one.
    fn send_line(&mut self, cx: &mut Context) -> Result<bool, Error> {
        while let Some(line) = self.buffer.next() {
            if self.to_skip > 0 {
                self.to_skip -= 1;
                continue;
            }
            let reason = match line.map(std::str::from_utf8) {
                Ok(Ok(text)) => {
                    let text = text.to_string();
                    let time_ns = self.came_ns.saturating_sub(cx.start_ns());
                    cx.set_time(time_ns, Some(self.came_ns));
                    self.out.push(cx, text)?;
                    return Ok(true);
                }
                Ok(Err(_)) => NOT_TEXT,
                Err(_) => TOO_LONG,
            };
            cx.lose(1, LINES, reason);
        }
        Ok(false)
    }
}

impl Operator for SerialTextSource {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn check(&self) -> Result<(), Error> {
        self.line.look()
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.line.start(cx)
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        cx.lose(self.buffer.clear() as u64, BYTES, CUT);
        self.to_skip = self.skip;
        self.line.restart(cx);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(step) = self.line.open(cx)? {
            return Ok(step);
        }
        if self.send_line(cx)? {
            return Ok(Step::Again);
        }
        let (line, mut is_empty) = (&mut self.line, false);
        self.buffer.fill(|bytes| {
            let read = line.read(bytes)?;
            is_empty = read.is_none();
            Ok::<_, Error>(read.unwrap_or(0))
        })?;
        if is_empty {
            return wait(&self.line, cx);
        }
        self.came_ns = cx.now_ns();
        Ok(Step::Again)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        while self.buffer.next().is_some() {
            cx.lose(1, LINES, UNREAD);
        }
        let rest = self.buffer.clear();
        stop(&mut self.line, rest, cx, ending);
        Ok(())
    }
}
