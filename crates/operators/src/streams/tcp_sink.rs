//! Sends samples over TCP.

use super::address::time_ns;
use super::connection::{Framing, LENGTH, Opening, TcpConnection, TcpPeer, connect_at_once};
use super::patience::{is_over, on_clock_ns, over_at_ns, real_ns, usual};
use super::wire::WireCodec;
use crate::format::{FileSample, SampleFormat};
use num_complex::Complex;
use onbeat_os::socket;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Registry, Seconds, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpListener};
use std::time::Duration;

/// Unit of losses.
const BYTES: &str = "bytes";
// Reasons of losses.
const CLOSED: &str =
    "the peer closed the connection before the end of the stream; `may_close = true` permits that";
const NOT_TAKEN: &str = "the peer did not take them within `patience`";
const NO_PEER: &str = "there was no connection within `patience`";
const NOT_SENT: &str = "not sent when the run failed";

/// Time from one question whether the peer has acknowledged all to the next, at the end.
const ACKNOWLEDGED_NS: u64 = 200_000;

/// Sends samples over one TCP connection.
///
/// While the peer does not read, the operator's input edge fills. After the source has ended, the peer has to
/// take bytes at least every `patience`. After a stop of the run, it has to take all within `patience`.
/// Otherwise the rest is lost, and the connection is reset, so that the peer does not take the data for
/// complete.
///
/// A peer whose kernel does not answer for `patience` has vanished: that is an error.
///
/// If the peer closes the connection before the end, the rest is lost as well, unless `may_close` permits
/// that. With strict framing it is an error.
///
/// Lost bytes are counted: those in the operator's queue, and those that the peer's kernel has not
/// acknowledged. Bytes that the kernel has and the peer did not read are not known. If bytes are lost, the
/// run ends with exit status 3.
pub struct TcpSink<T: FileSample> {
    /// The samples.
    pub input: Input<Chunk<T>>,
    line: TcpConnection,
    framing: Framing,
    may_close: bool,
    wire: WireCodec<T>,
    bytes: Vec<u8>,
    done: usize,
    /// Whether the end of the stream is in `bytes`.
    said_end: bool,
    /// Whether the end of the connection was sent.
    shut: bool,
    /// Reason why the rest is not sent.
    lost: Option<&'static str>,
    /// Real time at which the peer last took bytes.
    taken_ns: u64,
    sent: u64,
}

impl<T: FileSample> TcpSink<T> {
    /// Sends to a peer.
    ///
    /// # Errors
    /// When the format is of the other sample type.
    pub fn new(peer: TcpPeer, format: Option<SampleFormat>) -> Result<Self, Error> {
        Ok(TcpSink {
            input: Input::default(),
            line: TcpConnection::new(peer),
            framing: Framing::Raw,
            may_close: false,
            wire: WireCodec::new(format)?,
            bytes: Vec::new(),
            done: 0,
            said_end: false,
            shut: false,
            lost: None,
            taken_ns: 0,
            sent: 0,
        })
    }

    /// Uses a listening socket that is already open, instead of opening one at the start.
    pub fn listener(mut self, listener: TcpListener) -> Self {
        self.line.listener = Some(listener);
        self
    }

    /// Sets the framing.
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Sets whether the peer may close the connection before the end of the stream.
    pub fn may_close(mut self, may_close: bool) -> Self {
        self.may_close = may_close;
        self
    }

    /// Sets the time to wait for a connection, and at the end for the peer to take the rest.
    pub fn patience(mut self, time_ns: u64) -> Self {
        self.line.patience_ns = time_ns;
        self
    }

    /// Puts the next input into `bytes`.
    fn fill(&mut self, cx: &mut Context) {
        let strict = self.framing == Framing::Strict;
        if let Some(chunk) = self.input.pop(cx) {
            let length = chunk.len() * self.wire.bytes();
            if length > 0 {
                if strict {
                    self.bytes.extend_from_slice(&(length as u32).to_le_bytes());
                }
                self.wire.pack(&chunk, &mut self.bytes);
                self.sent += chunk.len() as u64;
            }
        } else if self.input.is_ended(cx) && !self.said_end {
            self.said_end = true;
            if strict {
                self.bytes.extend_from_slice(&[0; LENGTH]);
            }
        }
    }

    /// Writes `bytes`. Returns the result of the step unless all were written.
    fn write(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        while self.done < self.bytes.len() {
            let Some(stream) = &mut self.line.stream else { return Ok(Some(Step::Done)) };
            match stream.write(&self.bytes[self.done..]) {
                Ok(count) => {
                    self.done += count;
                    self.taken_ns = real_ns();
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return self.wait(cx).map(Some),
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => return self.closed(cx).map(Some),
                    _ => {
                        self.lose_rest(NOT_SENT, cx);
                        return Err(self.line.broken(error));
                    }
                },
            }
        }
        self.bytes.clear();
        self.done = 0;
        Ok(None)
    }

    /// Sends the end of the connection, and waits until the peer has acknowledged all.
    fn finish(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(stream) = &self.line.stream else { return Ok(Step::Done) };
        if !self.shut {
            // A peer that has gone is found below.
            let _gone = stream.shutdown(Shutdown::Write);
            (self.shut, self.taken_ns) = (true, real_ns());
        }
        if self.unacknowledged() == 0 {
            return Ok(Step::Done);
        }
        match stream.take_error() {
            Ok(None) => self.wait(cx),
            Ok(Some(_)) | Err(_) => self.closed(cx),
        }
    }

    /// Number of bytes of the stream that were written and that the peer has not acknowledged.
    fn unacknowledged(&self) -> u64 {
        let Some(stream) = &self.line.stream else { return 0 };
        // The end of the connection counts as a byte.
        socket::unacknowledged(stream).unwrap_or(0).saturating_sub(u64::from(self.shut))
    }

    /// Whether the peer's kernel has not answered for the patience. One whose peer only does not read
    /// answers.
    fn has_vanished(&self) -> bool {
        let unanswered = self.line.stream.as_ref().and_then(|stream| socket::unanswered(stream).ok()?);
        unanswered.is_some_and(|time| time >= Duration::from_nanos(self.line.patience_ns))
    }

    /// Waits for the peer, unless the patience is used up.
    fn wait(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let patience_ns = self.line.patience_ns;
        let end_ns = self.taken_ns.max(self.line.opened_ns).saturating_add(patience_ns);
        let is_late = real_ns() >= end_ns;
        if is_over(cx, patience_ns) || self.input.is_closed(cx) && is_late {
            if let Some(stream) = &self.line.stream {
                // Without the reset, the kernel would go on sending, and the count would be wrong.
                let _closed = socket::reset_on_close(stream);
            }
            return Ok(self.give_up(NOT_TAKEN, cx));
        }
        if is_late && self.has_vanished() {
            self.lose_rest(NOT_SENT, cx);
            return Err(self.line.broken(ErrorKind::TimedOut.into()));
        }
        // A look after that time, whether the peer is still there and whether the stream has ended.
        let look_ns = on_clock_ns(cx, if is_late { real_ns().saturating_add(patience_ns) } else { end_ns });
        let until_ns = over_at_ns(cx, patience_ns).min(look_ns);
        match &self.line.stream {
            // No event says that the peer has acknowledged all.
            Some(_) if self.shut => Ok(cx.look_again_in(ACKNOWLEDGED_NS)),
            Some(stream) => cx.writable_until(stream, until_ns),
            None => Ok(Step::Done),
        }
    }

    /// Counts the rest as lost, also what is still to come.
    fn give_up(&mut self, reason: &'static str, cx: &mut Context) -> Step {
        self.lost = Some(reason);
        self.lose_rest(reason, cx);
        self.line.hang_up();
        self.discard(reason, cx)
    }

    /// Counts input as lost until it ends.
    fn discard(&mut self, reason: &'static str, cx: &mut Context) -> Step {
        while !self.input.is_empty(cx) {
            self.fill(cx);
            cx.lose(self.bytes.len() as u64, BYTES, reason);
            self.bytes.clear();
        }
        if self.input.is_ended(cx) { Step::Done } else { Step::Wait }
    }

    fn lose_rest(&mut self, reason: &'static str, cx: &mut Context) {
        cx.lose(self.unacknowledged() + (self.bytes.len() - self.done) as u64, BYTES, reason);
        self.bytes.clear();
        self.done = 0;
    }

    /// Handles a connection that the peer closed before the end.
    fn closed(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let text = format!("{} closed the connection before the end of the stream", self.line.address());
        if self.may_close {
            cx.note(format!("{text}: the rest is not sent"));
            self.bytes.clear();
            self.done = 0;
            return Ok(Step::Done);
        }
        self.lose_rest(CLOSED, cx);
        self.discard(CLOSED, cx);
        match self.framing {
            Framing::Strict => Err(Error::new(format!("{text}, after {} samples", self.sent))),
            Framing::Raw => {
                cx.note(format!("{text}: the rest is not sent"));
                Ok(Step::Done)
            }
        }
    }
}

impl<T: FileSample> Operator for TcpSink<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        // Once more after a restart.
        (self.said_end, self.shut, self.lost) = (false, false, None);
        self.line.start()?;
        connect_at_once(cx);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(reason) = self.lost {
            return Ok(self.discard(reason, cx));
        }
        match self.line.open(cx)? {
            Opening::Wait(step) => return Ok(step),
            Opening::GivenUp => return Ok(self.give_up(NO_PEER, cx)),
            Opening::Over => {}
        }
        if self.bytes.is_empty() {
            self.fill(cx);
        }
        if let Some(step) = self.write(cx)? {
            return Ok(step);
        }
        if self.said_end {
            return self.finish(cx);
        }
        Ok(if self.input.is_empty(cx) && !self.input.is_ended(cx) { Step::Wait } else { Step::Again })
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        cx.lose((self.bytes.len() - self.done) as u64, BYTES, NOT_SENT);
        self.bytes.clear();
        self.done = 0;
        self.line.hang_up();
        self.wire.sum_up(cx);
        Ok(())
    }
}

/// The other end of a connection.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TcpSinkParameters {
    /// Address and port to connect to, such as `127.0.0.1:9000`; give either `connect` or `listen`.
    #[serde(default)]
    connect: Option<String>,
    /// Address and port to listen on for one connection; give either `connect` or `listen`.
    #[serde(default)]
    listen: Option<String>,
    /// `raw`: bare samples until the connection closes. `strict`: runs of samples with a length before each,
    /// and an explicit end.
    #[serde(default)]
    framing: Framing,
    /// Sample format; without it, 32-bit floating point.
    #[serde(default)]
    format: Option<SampleFormat>,
    /// Whether the peer may close the connection before the end of the stream. If not, the rest counts as
    /// lost (exit status 3).
    #[serde(default)]
    may_close: bool,
    /// How long to wait for a connection, and at the end for the peer to take the rest.
    #[serde(default = "usual")]
    patience: Seconds,
}

fn sink<T: FileSample>(p: &TcpSinkParameters, _: &Folders) -> Result<TcpSink<T>, Error> {
    let peer = TcpPeer::of(p.connect.as_deref(), p.listen.as_deref())?;
    let sink = TcpSink::new(peer, p.format)?.framing(p.framing).may_close(p.may_close);
    Ok(sink.patience(time_ns("patience", p.patience)?))
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "sends samples over a TCP connection";
    let example = "connect = \"127.0.0.1:9000\"";
    registry
        .add(Kind::new("tcp.sink", text, example, sink::<f32>).about(include_str!("../about/samples.md")));
    registry.add(Kind::new("tcp.sink.complex", text, example, sink::<Complex<f32>>));
}
