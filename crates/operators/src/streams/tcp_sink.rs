//! Sends samples over TCP.

use super::connection::{Framing, LENGTH, TcpConnection, TcpPeer, usual};
use super::patience::Patience;
use super::udp::time_ns;
use super::wire::WireCodec;
use crate::format::{FileSample, SampleFormat};
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Registry, Seconds, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpListener};

/// Sends samples over one TCP connection.
///
/// While the peer does not read, the operator's input edge fills. If the peer closes the connection before
/// the end, that is an error with strict framing; with raw framing, the operator is done and a note says so.
/// If the stream has ended and the peer does not take the rest within `patience`, that is an error too.
pub struct TcpSink<T: FileSample> {
    /// The samples.
    pub input: Input<Chunk<T>>,
    line: TcpConnection,
    framing: Framing,
    wire: WireCodec<T>,
    bytes: Vec<u8>,
    done: usize,
    /// Whether the end of the stream is in `bytes`.
    said_end: bool,
    /// Time at which the peer last took bytes.
    taken_ns: u64,
    sent: u64,
    polls: Patience,
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
            wire: WireCodec::new(format)?,
            bytes: Vec::new(),
            done: 0,
            said_end: false,
            taken_ns: 0,
            sent: 0,
            polls: Patience::default(),
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

    /// Handles a connection that the peer closed before the end.
    fn closed(&self, cx: &mut Context) -> Result<Step, Error> {
        let text = format!("{} closed the connection before the end of the stream", self.line.address());
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

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        self.line.start()
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(step) = self.line.open(cx)? {
            return Ok(step);
        }
        if self.bytes.is_empty() {
            self.fill(cx);
        }
        let Some(stream) = &mut self.line.stream else { return Ok(Step::Done) };
        while self.done < self.bytes.len() {
            match stream.write(&self.bytes[self.done..]) {
                Ok(count) => {
                    self.done += count;
                    self.taken_ns = cx.now_ns();
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => {
                        let waited_ns = cx.now_ns().saturating_sub(self.taken_ns.max(self.line.opened_ns));
                        if self.said_end && waited_ns >= self.line.patience_ns {
                            let (ms, address) = (self.line.patience_ns / 1_000_000, self.line.address());
                            return Err(Error::new(format!(
                                "{address} did not take the end of the stream within {ms} ms (`patience`)"
                            )));
                        }
                        return Ok(self.polls.wait(cx));
                    }
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => return self.closed(cx),
                    _ => return Err(self.line.broken(error)),
                },
            }
        }
        self.polls.reset();
        self.bytes.clear();
        self.done = 0;
        if self.said_end {
            // The peer still reads the bytes in flight, then the end. A peer that has gone does not matter
            // any more.
            let _gone = stream.shutdown(Shutdown::Write);
            return Ok(Step::Done);
        }
        Ok(if self.input.is_empty(cx) && !self.input.is_ended(cx) { Step::Wait } else { Step::Again })
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
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
    /// How long to wait for a connection, and at the end for the peer to take the rest.
    #[serde(default = "usual")]
    patience: Seconds,
}

fn sink<T: FileSample>(p: &TcpSinkParameters, _: &Folders) -> Result<TcpSink<T>, Error> {
    let peer = TcpPeer::of(p.connect.as_deref(), p.listen.as_deref())?;
    let sink = TcpSink::new(peer, p.format)?.framing(p.framing);
    Ok(sink.patience(time_ns("patience", p.patience)?))
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "sends samples over a TCP connection";
    let example = "connect = \"127.0.0.1:9000\"";
    registry.add(Kind::new("tcp.sink", text, example, sink::<f32>));
    registry.add(Kind::new("tcp.sink.complex", text, example, sink::<Complex<f32>>));
}
