//! Receives samples over TCP.

use super::address::time_ns;
use super::connection::{Framing, LENGTH, Opening, TcpConnection, TcpPeer};
use super::patience::usual;
use super::pipe::{rate, send};
use super::wire::WireCodec;
use crate::format::{FileSample, SampleFormat};
use num_complex::Complex;
use onbeat_os::socket;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Hertz, Kind, Operator, Output, Ports, Registry, Seconds, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read};
use std::net::TcpListener;

/// Receives samples from one TCP connection until it ends.
///
/// The [`Framing`] defines the end of the stream. With raw framing that is the end of what the peer sends;
/// the peer may go on reading. A connection that breaks is always an error: a reset, or a peer that
/// vanished. A peer has vanished if its kernel does not answer for `patience`, at least 4 s. It may be
/// silent for longer.
///
/// Bytes after the last complete sample are lost. So are bytes that wait in the socket when the run is
/// stopped. If there are any, the run ends with exit status 3.
///
/// The latency of a path from here counts from the time at which this operator read the data. It leaves out
/// the wait in the socket.
pub struct TcpSource<T: FileSample> {
    /// The samples.
    pub out: Output<Chunk<T>>,
    line: TcpConnection,
    framing: Framing,
    wire: WireCodec<T>,
    rate_hz: f64,
    /// Bytes at the begin of a connection that are left out, and those of them that are still to come.
    skip: u64,
    to_skip: u64,
    bytes: Vec<u8>,
    /// Unused bytes at the start of `bytes`.
    rest: usize,
    /// Bytes of the current frame still to come; `None` between frames.
    frame: Option<usize>,
    sent: u64,
}

impl<T: FileSample> TcpSource<T> {
    /// Receives from a peer.
    ///
    /// # Errors
    /// When the format is of the other sample type.
    pub fn new(peer: TcpPeer, format: Option<SampleFormat>) -> Result<Self, Error> {
        let mut line = TcpConnection::new(peer);
        line.is_watched = true;
        Ok(TcpSource {
            out: Output::default(),
            line,
            framing: Framing::Raw,
            wire: WireCodec::new(format)?,
            rate_hz: 0.0,
            skip: 0,
            to_skip: 0,
            bytes: Vec::new(),
            rest: 0,
            frame: None,
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

    /// Sets the sample rate in hertz; 0 for no rate.
    pub fn rate(mut self, rate_hz: f64) -> Self {
        self.rate_hz = rate_hz;
        self
    }

    /// Leaves out this many bytes at the begin of the connection: a header of the peer.
    pub fn skip(mut self, bytes: u64) -> Self {
        self.skip = bytes;
        self
    }

    /// Sets the time to wait for a connection, and for an answer of the peer's kernel (at least 4 s).
    pub fn patience(mut self, time_ns: u64) -> Self {
        self.line.patience_ns = time_ns;
        self
    }

    /// Returns the byte range of the complete samples at the start of `bytes[..have]`, limited by the frame
    /// and by `room` bytes. Consumes the lengths of frames. `None` at the end of the stream.
    fn samples(&mut self, have: usize, room: usize) -> Result<Option<std::ops::Range<usize>>, Error> {
        let size = self.wire.bytes();
        if self.to_skip > 0 {
            let count = (have as u64).min(self.to_skip);
            self.to_skip -= count;
            return Ok(Some(count as usize..count as usize));
        }
        if self.framing == Framing::Raw {
            return Ok(Some(0..have.min(room) / size * size));
        }
        let mut at = 0;
        if self.frame.is_none_or(|left| left == 0) {
            let Some((length, _)) = self.bytes[..have].split_first_chunk::<LENGTH>() else {
                return Ok(Some(0..0));
            };
            let length = u32::from_le_bytes(*length) as usize;
            if length == 0 {
                return Ok(None);
            }
            if !length.is_multiple_of(size) {
                return Err(Error::new(format!(
                    "{} sent a frame of {length} bytes, which is not a multiple of the sample size of {size} \
                     bytes: does it send {}, with `framing = \"strict\"`?",
                    self.line.address(),
                    self.wire.format.name()
                )));
            }
            self.frame = Some(length);
            at = LENGTH;
        }
        let left = self.frame.unwrap_or(0);
        let count = left.min(have - at).min(room) / size * size;
        self.frame = Some(left - count);
        Ok(Some(at..at + count))
    }

    /// Handles the end of the connection.
    fn closed(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match self.framing {
            Framing::Strict => Err(Error::new(format!(
                "{} closed the connection in the middle of the stream, after {} samples",
                self.line.address(),
                self.sent
            ))),
            Framing::Raw => {
                cx.lose(
                    self.rest as u64,
                    "bytes",
                    "the peer closed the connection in the middle of a sample",
                );
                self.rest = 0;
                Ok(Step::Done)
            }
        }
    }
}

impl<T: FileSample> Operator for TcpSource<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn sample_rate(&self) -> Option<f64> {
        (self.rate_hz > 0.0).then_some(self.rate_hz)
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.to_skip = self.skip;
        self.line.start()
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match self.line.open(cx)? {
            Opening::Wait(step) => return Ok(step),
            Opening::GivenUp => return Ok(Step::Done),
            Opening::Over => {}
        }
        let Some(stream) = &mut self.line.stream else { return Ok(Step::Done) };
        let Some(chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        // A read holds at most one chunk and the length of the frame before it.
        self.bytes.resize(chunk.capacity() * self.wire.bytes() + LENGTH, 0);
        let room = if self.framing == Framing::Raw { self.bytes.len() - LENGTH } else { self.bytes.len() };
        let mut closed = false;
        let came = match stream.read(&mut self.bytes[self.rest..room]) {
            Ok(count) => {
                closed = count == 0 && self.rest < room;
                count
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(error) => return Err(self.line.broken(error)),
        };
        let have = self.rest + came;
        let room = chunk.capacity() * self.wire.bytes();
        let Some(whole) = self.samples(have, room)? else {
            self.line.hang_up();
            return Ok(Step::Done);
        };
        let moved = whole.end > 0;
        if !whole.is_empty() {
            let bytes = &self.bytes[whole.clone()];
            send(&mut self.out, chunk, &self.wire, bytes, (&mut self.sent, self.rate_hz), cx)?;
        }
        self.bytes.copy_within(whole.end..have, 0);
        self.rest = have - whole.end;
        if moved || came > 0 {
            return Ok(Step::Again);
        }
        // Everything received before the end of the connection is used up.
        if closed {
            self.line.hang_up();
            return self.closed(cx);
        }
        match &self.line.stream {
            Some(stream) => cx.readable(stream),
            None => Ok(Step::Done),
        }
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        if let Some(stream) = &self.line.stream {
            let unread = socket::unread(stream).unwrap_or(0) + self.rest as u64;
            cx.lose(unread, "bytes", "waited in the socket when the run ended");
        }
        self.line.hang_up();
        Ok(())
    }
}

/// The other end of a connection.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TcpSourceParameters {
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
    /// Samples per second; without it there is no source time.
    #[serde(default)]
    sample_rate: Option<Hertz>,
    /// Bytes to leave out at the begin: a header of the peer, such as the 12 bytes of `rtl_tcp`.
    #[serde(default)]
    skip: u64,
    /// How long to wait for a connection, and later for an answer of the peer's kernel (at least 4 s).
    #[serde(default = "usual")]
    patience: Seconds,
}

fn source<T: FileSample>(p: &TcpSourceParameters, _: &Folders) -> Result<TcpSource<T>, Error> {
    let peer = TcpPeer::of(p.connect.as_deref(), p.listen.as_deref())?;
    let source = TcpSource::new(peer, p.format)?.framing(p.framing).rate(rate(p.sample_rate)?);
    Ok(source.skip(p.skip).patience(time_ns("patience", p.patience)?))
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "receives samples over a TCP connection";
    let example = "listen = \"127.0.0.1:9000\"";
    registry.add(
        Kind::new("tcp.source", text, example, source::<f32>).about(include_str!("../about/samples.md")),
    );
    registry.add(Kind::new("tcp.source.complex", text, example, source::<Complex<f32>>));
}
