//! Receives samples in UDP datagrams.

use super::patience::Patience;
use super::pipe::{rate, stamp};
use super::wire::WireCodec;
use crate::format::{FileSample, SampleFormat};
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Ending, Error, Folders, Hertz, Kind, Operator, Output, Ports, Registry, Seconds, Step,
    Tag,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::net::UdpSocket;

/// Bytes of a header: the number of the datagram from 0, low byte first. The highest bit marks the end of the
/// stream; the number is then the number of datagrams sent.
pub(super) const HEADER: usize = 8;
/// Header bit that marks the end of the stream.
pub(super) const LAST: u64 = 1 << 63;
/// A number further back than this means that the sender was restarted.
const FAR_BACK: u64 = 1 << 16;

/// Receives samples in UDP datagrams, as [`UdpSink`](super::UdpSink) sends them.
///
/// With a header, every datagram has a number. Lost datagrams are counted, and the first sample after a gap
/// has a tag `lost` with their number. A datagram that arrives after its successor is dropped and counted as
/// late, and so is a duplicate. Lost samples are not replaced. A datagram marked as the last one ends the
/// stream.
///
/// Without a header, losses cannot be detected. The stream ends when no datagram has arrived for `timeout`,
/// or when the run is stopped. Bytes after the last complete sample of a datagram are dropped and counted.
pub struct UdpSource<T: FileSample> {
    /// The samples.
    pub out: Output<Chunk<T>>,
    bind: String,
    wire: WireCodec<T>,
    header: bool,
    rate_hz: f64,
    timeout_ns: Option<u64>,
    socket: Option<UdpSocket>,
    buffer: Box<[u8]>,
    /// Range of the buffer that has not been sent.
    left: std::ops::Range<usize>,
    /// Datagrams lost before this range; its first sample gets the tag.
    gap: u64,
    /// Number of the next datagram.
    next: u64,
    counts: DatagramCounts,
    sent: u64,
    received_ns: Option<u64>,
    ended: bool,
    patience: Patience,
}

#[derive(Debug, Default)]
struct DatagramCounts {
    lost: u64,
    late: u64,
    ragged: u64,
    short: u64,
    restarts: u64,
}

impl<T: FileSample> UdpSource<T> {
    /// Receives on an address with a port, such as `127.0.0.1:9000` or `[::]:9000`.
    ///
    /// # Errors
    /// When the format is of the other sample type.
    pub fn new(bind: impl Into<String>, format: Option<SampleFormat>) -> Result<Self, Error> {
        Ok(UdpSource {
            out: Output::default(),
            bind: bind.into(),
            wire: WireCodec::new(format)?,
            header: true,
            rate_hz: 0.0,
            timeout_ns: None,
            socket: None,
            buffer: vec![0; 1 << 16].into(),
            left: 0..0,
            gap: 0,
            next: 0,
            counts: DatagramCounts::default(),
            sent: 0,
            received_ns: None,
            ended: false,
            patience: Patience::default(),
        })
    }

    /// Sets whether each datagram begins with its number.
    pub fn header(mut self, header: bool) -> Self {
        self.header = header;
        self
    }

    /// Sets the sample rate in hertz; 0 for no rate.
    pub fn rate(mut self, rate_hz: f64) -> Self {
        self.rate_hz = rate_hz;
        self
    }

    /// Ends the stream when nothing has arrived for this time, counted from the start of the run.
    pub fn timeout(mut self, timeout_ns: u64) -> Self {
        self.timeout_ns = Some(timeout_ns);
        self
    }

    /// Uses a socket that is already open, instead of opening one at the start.
    pub fn socket(mut self, socket: UdpSocket) -> Self {
        self.socket = Some(socket);
        self
    }

    /// Takes the next datagram from the socket. Returns whether there was one.
    fn receive(&mut self) -> Result<bool, Error> {
        let Some(socket) = &self.socket else { return Ok(false) };
        let length = match socket.recv(&mut self.buffer) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(false);
            }
            Err(error) => {
                return Err(Error::with_source(format!("cannot receive on {}", self.bind), error));
            }
        };
        let begin = if self.header { HEADER } else { 0 };
        let Some((number, _)) = self.buffer[..length].split_first_chunk::<HEADER>().filter(|_| self.header)
        else {
            if self.header {
                self.counts.short += 1;
            } else {
                self.take(begin, length);
            }
            return Ok(true);
        };
        let number = u64::from_le_bytes(*number);
        let last = number & LAST != 0;
        let number = number & !LAST;
        if number < self.next {
            if self.next - number <= FAR_BACK || last {
                self.counts.late += 1;
                return Ok(true);
            }
            self.counts.restarts += 1;
            self.next = number;
        }
        let lost = number - self.next;
        self.counts.lost += lost;
        self.gap += lost;
        self.ended = last;
        self.next = number + u64::from(!last);
        self.take(begin, length);
        Ok(true)
    }

    fn take(&mut self, begin: usize, end: usize) {
        let ragged = (end - begin) % self.wire.bytes();
        self.counts.ragged += u64::from(ragged > 0);
        self.left = begin..end - ragged;
    }

    /// Fills a chunk with the samples received. Returns their number.
    fn fill(&mut self, chunk: &mut Chunk<T>) -> Result<usize, Error> {
        let size = self.wire.bytes();
        let (mut filled, room) = (0, chunk.capacity());
        while filled < room {
            if self.left.is_empty() {
                if self.ended || !self.receive()? {
                    break;
                }
                continue;
            }
            if self.gap > 0 {
                let lost = i64::try_from(std::mem::take(&mut self.gap)).unwrap_or(i64::MAX);
                chunk.info_mut().tags.push(Tag { offset: filled, key: "lost".into(), value: lost.into() });
            }
            let count = (self.left.len() / size).min(room - filled);
            let bytes = &self.buffer[self.left.start..self.left.start + count * size];
            if let Some(samples) = chunk.edit_unique() {
                self.wire.unpack(bytes, &mut samples[filled..filled + count]);
            }
            self.left.start += count * size;
            filled += count;
        }
        Ok(filled)
    }
}

impl<T: FileSample> Operator for UdpSource<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        let cannot = |error| Error::with_source(format!("cannot receive on {}", self.bind), error);
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => UdpSocket::bind(&self.bind).map_err(cannot)?,
        };
        socket.set_nonblocking(true).map_err(cannot)?;
        self.socket = Some(socket);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let filled = self.fill(&mut chunk)?;
        let now_ns = cx.now_ns();
        if filled > 0 {
            self.patience.reset();
            self.received_ns = Some(now_ns);
            chunk.truncate(filled);
            stamp(&mut chunk, (&mut self.sent, self.rate_hz), cx);
            self.out.push(cx, chunk)?;
            return Ok(Step::Again);
        }
        if self.ended {
            return Ok(Step::Done);
        }
        let received_ns = *self.received_ns.get_or_insert(now_ns);
        if self.timeout_ns.is_some_and(|timeout_ns| now_ns >= received_ns.saturating_add(timeout_ns)) {
            let ms = self.timeout_ns.unwrap_or(0) / 1_000_000;
            cx.note(format!("no datagram on {} for {ms} ms: the stream was ended", self.bind));
            return Ok(Step::Done);
        }
        Ok(self.patience.wait(cx))
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        self.socket = None;
        let DatagramCounts { lost, late, ragged, short, restarts } = std::mem::take(&mut self.counts);
        for (count, what) in [
            (lost, "datagrams were lost: the first sample after each gap has a tag `lost`"),
            (late, "datagrams were late or duplicates and were dropped"),
            (ragged, "datagrams ended in the middle of a sample, whose bytes were dropped"),
            (short, "datagrams were shorter than their header of 8 bytes: does the sender send a header?"),
            (restarts, "restarts of the sender were detected"),
        ] {
            if count > 0 {
                cx.note(format!("{count} {what}"));
            }
        }
        Ok(())
    }
}

/// The receiving end of a UDP stream.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UdpSourceParameters {
    /// Address and port to receive on: `127.0.0.1:9000`, or `0.0.0.0:9000` for all addresses of this machine.
    bind: String,
    /// Sample format; without it, 32-bit floating point.
    #[serde(default)]
    format: Option<SampleFormat>,
    /// Whether each datagram begins with its number (8 bytes, low byte first), as `udp.sink` sends it.
    #[serde(default = "yes")]
    header: bool,
    /// Samples per second; without it there is no source time.
    #[serde(default)]
    sample_rate: Option<Hertz>,
    /// Ends the stream when no datagram has arrived for this time; without it, only an end
    /// datagram or a stop of the run ends it.
    #[serde(default)]
    timeout: Option<Seconds>,
}

pub(super) fn yes() -> bool {
    true
}

fn source<T: FileSample>(p: &UdpSourceParameters, _: &Folders) -> Result<UdpSource<T>, Error> {
    check_address("bind", &p.bind)?;
    let mut source = UdpSource::new(&p.bind, p.format)?.header(p.header).rate(rate(p.sample_rate)?);
    if let Some(timeout) = p.timeout {
        source = source.timeout(time_ns("timeout", timeout)?);
    }
    Ok(source)
}

/// Converts a time above 0 to nanoseconds.
pub(super) fn time_ns(name: &str, time: Seconds) -> Result<u64, Error> {
    crate::check::positive(name, time.0)?;
    time.as_ns().ok_or_else(|| Error::new(format!("`{name}` is {} s: it must be below 584 years", time.0)))
}

/// Checks the form `host:port`, without resolving the host.
pub(super) fn check_address(name: &str, address: &str) -> Result<(), Error> {
    let port =
        address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    // The longest host name, and a port.
    const MOST: usize = 253 + 6;
    match port {
        Some(Ok(_)) if address.len() <= MOST => Ok(()),
        _ => {
            let shown: String = address.chars().take(MOST).flat_map(char::escape_debug).collect();
            Err(Error::new(format!(
                "`{name}` is `{shown}`: it must be a host and a port from 0 to 65535, such as `127.0.0.1:9000`"
            )))
        }
    }
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "receives samples in UDP datagrams and counts lost ones";
    let example = "bind = \"127.0.0.1:9000\"";
    registry.add(Kind::new("udp.source", text, example, source::<f32>));
    registry.add(Kind::new("udp.source.complex", text, example, source::<Complex<f32>>));
}
