//! Sends samples in UDP datagrams.

use super::address::{check_address, time_ns};
use super::patience::{is_over, over_at_ns, usual as usual_patience, usual_ns};
use super::wire::WireCodec;
use crate::format::{FileSample, SampleFormat};
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Input, Kind, Operator, Ports, Registry, Seconds, Step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

/// Bytes of a header: the number of the datagram from 0, low byte first. The highest bit marks the end of the
/// stream; the number is then the number of datagrams sent.
pub(super) const HEADER: usize = 8;
/// Header bit that marks the end of the stream.
pub(super) const LAST: u64 = 1 << 63;
/// Bytes of samples in a datagram that fits one Ethernet frame, including the headers of IPv6 and UDP.
const USUAL: usize = 1400;
/// Most bytes of a datagram.
const MOST: usize = 65_507;
/// Time until the next attempt while the queue of the device is full.
const QUEUE_NS: u64 = 200_000;
/// How often the last datagram is sent, because each may be lost.
const LAST_SENT: usize = 3;

/// Sends samples in UDP datagrams. Each holds as many samples as fit, all from the same chunk.
///
/// With a header, a datagram begins with its number:
///
/// ```text
///  byte 0 .. 7                                    8 ..
/// ┌──────────────────────────────────────────┬───────────────┐
/// │ bits 0..62  number, from 0, low byte first │ samples       │
/// │ bit  63     this is the end              │ (none, at end) │
/// └──────────────────────────────────────────┴───────────────┘
/// ```
///
/// The end of the stream is a datagram without samples, sent three times; its number is the number of
/// datagrams sent.
///
/// Datagrams are lost if nothing receives them or the network drops them. Datagrams that the other end
/// refuses are counted as lost. So are those that the kernel does not take within `patience` after a stop of
/// the run.
pub struct UdpSink<T: FileSample> {
    /// The samples.
    pub input: Input<Chunk<T>>,
    address: String,
    wire: WireCodec<T>,
    header: bool,
    most: usize,
    socket: Option<UdpSocket>,
    /// Whether the last datagram did not fit the queue of the device.
    is_queue_full: bool,
    /// The current chunk, and its first sample that has not been sent.
    held: Option<(Chunk<T>, usize)>,
    datagram: Vec<u8>,
    number: u64,
    refused: u64,
    last_sent: usize,
    patience_ns: u64,
    /// Whether the rest is not sent.
    has_given_up: bool,
}

impl<T: FileSample> UdpSink<T> {
    /// Sends to an address with a port.
    ///
    /// # Errors
    /// When the format is of the other sample type.
    pub fn new(address: impl Into<String>, format: Option<SampleFormat>) -> Result<Self, Error> {
        Ok(UdpSink {
            input: Input::default(),
            address: address.into(),
            wire: WireCodec::new(format)?,
            header: false,
            most: USUAL,
            socket: None,
            is_queue_full: false,
            held: None,
            datagram: Vec::new(),
            number: 0,
            refused: 0,
            last_sent: 0,
            patience_ns: usual_ns(),
            has_given_up: false,
        })
    }

    /// Sets whether each datagram begins with its number.
    pub fn header(mut self, header: bool) -> Self {
        self.header = header;
        self
    }

    /// Sets the time for the kernel to take the rest, after a stop of the run.
    pub fn patience(mut self, time_ns: u64) -> Self {
        self.patience_ns = time_ns;
        self
    }

    /// Sets the most bytes of samples in a datagram.
    ///
    /// # Errors
    /// When that is less than one sample, or more than a datagram can hold.
    pub fn size(mut self, bytes: usize) -> Result<Self, Error> {
        let (least, most) = (self.wire.bytes(), MOST - HEADER);
        if !(least..=most).contains(&bytes) {
            return Err(Error::new(format!(
                "`size` is {bytes}: a datagram holds from {least} (one sample) to {most} bytes of samples"
            )));
        }
        self.most = bytes;
        Ok(self)
    }

    /// Sends the bytes in `datagram`. Returns whether they were sent.
    fn send(&mut self) -> Result<bool, Error> {
        let Some(socket) = &self.socket else { return Ok(true) };
        match socket.send(&self.datagram) {
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(false),
                ErrorKind::OutOfMemory => {
                    self.is_queue_full = true;
                    Ok(false)
                }
                // This error is about a datagram sent earlier.
                ErrorKind::ConnectionRefused => {
                    self.count_refused();
                    Ok(false)
                }
                _ => Err(Error::with_source(format!("cannot send to {}", self.address), error)),
            },
        }
    }

    /// Counts a refused datagram. After the end of the stream was sent, the receiver may be gone.
    fn count_refused(&mut self) {
        self.refused += u64::from(self.last_sent == 0);
    }

    /// Waits for room, unless the patience is used up.
    fn wait(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if is_over(cx, self.patience_ns) {
            self.has_given_up = true;
            return Ok(self.discard(cx));
        }
        let over_ns = over_at_ns(cx, self.patience_ns);
        match &self.socket {
            // The queue of the device is full; no event says when it has room.
            _ if std::mem::take(&mut self.is_queue_full) => {
                let again_ns = cx.now_ns() + QUEUE_NS;
                Ok(cx.until(again_ns.min(over_ns)))
            }
            Some(socket) => cx.writable_until(socket, over_ns),
            None => Ok(Step::Done),
        }
    }

    /// Counts input as lost until it ends.
    fn discard(&mut self, cx: &mut Context) -> Step {
        let per_datagram = self.most / self.wire.bytes();
        let mut datagrams = 0;
        while let Some((chunk, at)) = self.held.take().or_else(|| self.input.pop(cx).map(|chunk| (chunk, 0)))
        {
            datagrams += (chunk.len() - at).div_ceil(per_datagram) as u64;
        }
        cx.lose(datagrams, "datagrams", "the kernel did not take them within `patience`");
        if self.input.is_ended(cx) { Step::Done } else { Step::Wait }
    }

    fn begin(&mut self, number: u64) {
        self.datagram.clear();
        if self.header {
            self.datagram.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Sends the current chunk. Returns whether all of it was sent.
    fn send_held(&mut self) -> Result<bool, Error> {
        let per_datagram = self.most / self.wire.bytes();
        while let Some((chunk, at)) = self.held.take() {
            let end = chunk.len().min(at + per_datagram);
            if at < end {
                self.begin(self.number);
                let mut datagram = std::mem::take(&mut self.datagram);
                self.wire.pack(&chunk[at..end], &mut datagram);
                self.datagram = datagram;
                if !self.send_or_again()? {
                    self.held = Some((chunk, at));
                    return Ok(false);
                }
                self.number += 1;
            }
            self.held = (end < chunk.len()).then_some((chunk, end));
        }
        Ok(true)
    }

    /// Sends the datagram, and again if that failed: a refusal is about an earlier one.
    fn send_or_again(&mut self) -> Result<bool, Error> {
        Ok(self.send()? || self.send()?)
    }
}

impl<T: FileSample> Operator for UdpSink<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        let cannot = |error| Error::with_source(format!("cannot send to {}", self.address), error);
        let found = self.address.to_socket_addrs().map_err(cannot)?.next();
        let Some(address) = found else {
            return Err(Error::new(format!("cannot send to {}: the host has no address", self.address)));
        };
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any.parse::<SocketAddr>().expect("an address")).map_err(cannot)?;
        socket.connect(address).map_err(cannot)?;
        socket.set_nonblocking(true).map_err(cannot)?;
        self.socket = Some(socket);
        self.datagram.reserve(HEADER + self.most);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.has_given_up {
            return Ok(self.discard(cx));
        }
        if self.held.is_none()
            && let Some(chunk) = self.input.pop(cx)
        {
            self.held = Some((chunk, 0));
        }
        if !self.send_held()? {
            return self.wait(cx);
        }
        if self.input.is_ended(cx) {
            while self.header && self.last_sent < LAST_SENT {
                self.begin(self.number | LAST);
                if !self.send_or_again()? {
                    return self.wait(cx);
                }
                self.last_sent += 1;
            }
            return Ok(Step::Done);
        }
        Ok(if self.input.is_empty(cx) { Step::Wait } else { Step::Again })
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        if let Some(socket) = self.socket.take()
            && let Ok(Some(error)) = socket.take_error()
            && error.kind() == ErrorKind::ConnectionRefused
        {
            self.count_refused();
        }
        let refused = std::mem::take(&mut self.refused);
        cx.lose(refused, "datagrams", "nothing receives at the address, which refused them");
        self.wire.sum_up(cx);
        Ok(())
    }
}

/// The sending end of a UDP stream.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UdpSinkParameters {
    /// Address and port to send to, such as `127.0.0.1:9000`.
    address: String,
    /// Sample format; without it, 32-bit floating point.
    #[serde(default)]
    format: Option<SampleFormat>,
    /// Whether each datagram begins with its number (8 bytes, low byte first), so that `udp.source` finds
    /// gaps. If so, the end of the stream is sent too.
    #[serde(default)]
    header: bool,
    /// Most bytes of samples per datagram.
    #[serde(default = "usual")]
    size: usize,
    /// How long to wait after a stop until the kernel takes the rest.
    #[serde(default = "usual_patience")]
    patience: Seconds,
}

fn usual() -> usize {
    USUAL
}

fn sink<T: FileSample>(p: &UdpSinkParameters, _: &Folders) -> Result<UdpSink<T>, Error> {
    check_address("address", &p.address)?;
    let patience_ns = time_ns("patience", p.patience)?;
    UdpSink::new(&p.address, p.format)?.header(p.header).patience(patience_ns).size(p.size)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "sends samples in UDP datagrams";
    let example = "address = \"127.0.0.1:9000\"";
    registry
        .add(Kind::new("udp.sink", text, example, sink::<f32>).about(include_str!("../about/samples.md")));
    registry.add(Kind::new("udp.sink.complex", text, example, sink::<Complex<f32>>));
}
