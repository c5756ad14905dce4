//! Samples, lines and bytes to a serial port.

use super::line::{BYTES, SerialLine, SerialSetup};
use super::shared::PortUse;
use crate::format::SampleFormat;
use crate::streams::{WireCodec, is_over, on_clock_ns, over_at_ns, real_ns};
use onbeat_runtime::{Chunk, Context, Ending, Error, Input, Merge, Message, Operator, Ports, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Reasons of losses.
const AWAY: &str = "not sent when the device went away";
const NOT_TAKEN: &str = "the device did not take them within `patience`";
const NOT_SENT: &str = "not sent when the run failed";

/// Bytes that may wait for the port before no more lines are taken.
const WAITING: usize = 4 << 10;
/// Time from one look whether all has been sent to the next, at the end.
const LOOK_NS: u64 = 1_000_000;

/// Bytes on their way to a port.
struct PortWriter {
    line: SerialLine,
    bytes: Vec<u8>,
    done: usize,
    /// Whether the rest is not sent.
    has_given_up: bool,
    /// Real time at which the port last took bytes, and what it had not sent then.
    taken_ns: u64,
    unsent: u64,
}

impl PortWriter {
    fn new(setup: SerialSetup) -> Self {
        let line = SerialLine::new(setup, PortUse::Write);
        PortWriter { line, bytes: Vec::new(), done: 0, has_given_up: false, taken_ns: 0, unsent: 0 }
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.taken_ns = real_ns();
        self.line.start(cx)
    }

    /// Closes the port after a failed step; the next steps open it again.
    fn restart(&mut self, cx: &mut Context) {
        self.lose_rest(AWAY, cx);
        self.line.restart(cx);
    }

    /// Writes pending bytes. Returns the result of the step of an operator whose bytes come from `input`.
    fn step<M: Message>(&mut self, input: &Input<M>, cx: &mut Context) -> Result<Step, Error> {
        if self.has_given_up {
            return Ok(self.discard(input, cx));
        }
        let patience_ns = self.line.setup.patience_ns;
        if let Some(step) = self.line.open(cx)? {
            if is_over(cx, patience_ns) {
                return Ok(self.give_up(input, cx));
            }
            self.taken_ns = real_ns();
            return Ok(step);
        }
        while self.done < self.bytes.len() {
            let Some(count) = self.line.write(&self.bytes[self.done..])? else {
                return self.wait(input, cx);
            };
            self.done += count;
            self.taken_ns = real_ns();
        }
        self.bytes.clear();
        self.done = 0;
        if input.is_ended(cx) {
            return Ok(self.finish(input, cx));
        }
        Ok(if input.is_empty(cx) { Step::Wait } else { Step::Again })
    }

    /// Whether the device has taken nothing for the patience, at the end.
    fn is_late<M: Message>(&self, input: &Input<M>, cx: &Context) -> bool {
        let patience_ns = self.line.setup.patience_ns;
        let late = real_ns() >= self.taken_ns.saturating_add(patience_ns);
        is_over(cx, patience_ns) || late && input.is_closed(cx)
    }

    /// Waits for room.
    fn wait<M: Message>(&mut self, input: &Input<M>, cx: &mut Context) -> Result<Step, Error> {
        if self.is_late(input, cx) {
            return Ok(self.give_up(input, cx));
        }
        let patience_ns = self.line.setup.patience_ns;
        // A look after that time, whether the stream has ended meanwhile.
        let look_ns = on_clock_ns(cx, self.taken_ns.max(real_ns()).saturating_add(patience_ns));
        let until_ns = over_at_ns(cx, patience_ns).min(look_ns);
        self.line.lease().map_or(Ok(Step::Done), |lease| cx.writable_until(lease, until_ns))
    }

    /// Waits until the port has sent all.
    fn finish<M: Message>(&mut self, input: &Input<M>, cx: &mut Context) -> Step {
        let unsent = self.line.lease().map_or(0, |lease| lease.port().unsent());
        if unsent == 0 {
            return Step::Done;
        }
        if unsent != self.unsent {
            (self.unsent, self.taken_ns) = (unsent, real_ns());
        }
        if self.is_late(input, cx) {
            return self.give_up(input, cx);
        }
        // No event says that all has been sent.
        cx.look_again_in(LOOK_NS)
    }

    fn give_up<M: Message>(&mut self, input: &Input<M>, cx: &mut Context) -> Step {
        self.has_given_up = true;
        self.lose_unsent(NOT_TAKEN, cx);
        self.discard(input, cx)
    }

    /// Counts pending bytes as lost.
    fn discard<M: Message>(&mut self, input: &Input<M>, cx: &mut Context) -> Step {
        self.lose_rest(NOT_TAKEN, cx);
        match (input.is_empty(cx), input.is_ended(cx)) {
            (_, true) => Step::Done,
            (true, false) => Step::Wait,
            (false, false) => Step::Again,
        }
    }

    fn lose_rest(&mut self, reason: &'static str, cx: &mut Context) {
        cx.lose((self.bytes.len() - self.done) as u64, BYTES, reason);
        self.bytes.clear();
        self.done = 0;
    }

    /// Drops what the port has and has not sent.
    fn lose_unsent(&mut self, reason: &'static str, cx: &mut Context) {
        if let Some(lease) = self.line.lease() {
            cx.lose(lease.port().unsent(), BYTES, reason);
            lease.port().drop_unsent();
        }
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) {
        self.lose_rest(NOT_SENT, cx);
        if ending == Ending::Failed {
            self.lose_unsent(NOT_SENT, cx);
        }
        self.line.stop(cx);
    }
}

/// Sends samples to a serial port.
///
/// While the port has no room, the operator's input edge fills. At the end the operator waits until the port
/// has sent all, as far as its driver tells; a device that takes nothing for `patience` loses the rest, which
/// is counted.
///
/// A device that goes away is an error. Bytes that were not written are lost and counted; bytes that the
/// driver had and did not send are not known. After a restart the operator waits for the device.
pub struct SerialSampleSink {
    /// The samples.
    pub input: Input<Chunk<f32>>,
    writer: PortWriter,
    wire: WireCodec<f32>,
}

impl SerialSampleSink {
    /// Sends samples in a format; without one, 32-bit floating point.
    ///
    /// # Errors
    /// When the format is of complex samples.
    pub fn new(setup: SerialSetup, format: Option<SampleFormat>) -> Result<Self, Error> {
        let wire = WireCodec::new(format)?;
        Ok(SerialSampleSink { input: Input::default(), writer: PortWriter::new(setup), wire })
    }
}

impl Operator for SerialSampleSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn check(&self) -> Result<(), Error> {
        self.writer.line.look()
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.writer.start(cx)
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.writer.restart(cx);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.writer.bytes.is_empty()
            && let Some(chunk) = self.input.pop(cx)
        {
            self.wire.pack(&chunk, &mut self.writer.bytes);
        }
        self.writer.step(&self.input, cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.writer.stop(cx, ending);
        self.wire.sum_up(cx);
        Ok(())
    }
}

/// Sends bytes to a serial port. What holds for [`SerialSampleSink`] holds here, too.
pub struct SerialByteSink {
    /// The bytes.
    pub input: Input<Chunk<u8>>,
    writer: PortWriter,
}

impl SerialByteSink {
    /// Sends to a port.
    pub fn new(setup: SerialSetup) -> Self {
        SerialByteSink { input: Input::default(), writer: PortWriter::new(setup) }
    }
}

impl Operator for SerialByteSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn check(&self) -> Result<(), Error> {
        self.writer.line.look()
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.writer.start(cx)
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.writer.restart(cx);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.writer.bytes.is_empty()
            && let Some(chunk) = self.input.pop(cx)
        {
            self.writer.bytes.extend_from_slice(&chunk);
        }
        self.writer.step(&self.input, cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.writer.stop(cx, ending);
        Ok(())
    }
}

/// Characters after each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineEnd {
    /// Line feed, 0x0a.
    #[default]
    Lf,
    /// Carriage return and line feed, 0x0d 0x0a.
    Crlf,
    /// Carriage return, 0x0d.
    Cr,
}

impl LineEnd {
    fn bytes(self) -> &'static [u8] {
        match self {
            LineEnd::Lf => b"\n",
            LineEnd::Crlf => b"\r\n",
            LineEnd::Cr => b"\r",
        }
    }
}

/// Sends each message as a line to a serial port. What holds for [`SerialSampleSink`] holds here, too.
pub struct SerialTextSink {
    /// Lines without a line break at the end. Messages of several edges are merged by source time.
    pub input: Input<String>,
    writer: PortWriter,
    end: LineEnd,
}

impl SerialTextSink {
    /// Sends lines that end so.
    pub fn new(setup: SerialSetup, end: LineEnd) -> Self {
        SerialTextSink { input: Input::default(), writer: PortWriter::new(setup), end }
    }
}

impl Operator for SerialTextSink {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).many(Merge::Ordered);
    }

    fn check(&self) -> Result<(), Error> {
        self.writer.line.look()
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.writer.start(cx)
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.writer.restart(cx);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        while self.writer.bytes.len() < WAITING
            && let Some(line) = self.input.pop(cx)
        {
            self.writer.bytes.extend_from_slice(line.as_bytes());
            self.writer.bytes.extend_from_slice(self.end.bytes());
        }
        self.writer.step(&self.input, cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        self.writer.stop(cx, ending);
        Ok(())
    }
}
