//! Receives samples in UDP datagrams.

use super::address::{check_address, time_ns};
use super::datagrams::{DatagramReceiver, UNREAD};
use super::pipe::{rate, stamp_at};
use super::wire::WireCodec;
use crate::format::{FileSample, SampleFormat};
use num_complex::Complex;
use onbeat_runtime::{
    Bytes, Chunk, Context, Ending, Error, Folders, Hertz, Kind, Operator, Output, Ports, Registry, Seconds,
    Step, Tag,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::UdpSocket;
use std::ops::Range;

/// A datagram that comes this long after the one before does not wait for others to fill a chunk.
const ALONE_NS: u64 = 50_000;
/// Most datagrams in the window.
const MOST_EARLY: usize = 1024;

/// Receives samples in UDP datagrams.
///
/// Datagrams are plain: all bytes are samples. The stream ends when no datagram has arrived for `timeout`, or
/// when the run is stopped. Bytes after the last complete sample of a datagram are lost.
///
/// With a header, as [`UdpSink`](super::UdpSink) sends it, every datagram has a number, so that gaps are
/// found: the first sample after a gap has a tag `lost` with the number of missing datagrams. A datagram that
/// arrives after its successor is dropped and counted as late; duplicates are dropped. Lost samples are not
/// replaced. A datagram marked as the last one ends the stream. A sender that begins again at 0 is followed.
/// Numbers that `udp.sink` does not send are an error.
///
/// With a window (`reorder`), datagrams that the network swapped are put in order. A datagram that comes
/// early is held until the missing ones before it come, but not for longer than `reorder_wait`, and not if
/// it is more than `reorder` numbers ahead of a missing one. A missing datagram that comes later still is
/// late. A datagram keeps the time at which the kernel received it, so the wait is part of its latency.
///
/// Each datagram that was sent is received, lost or late. The kernel drops datagrams while the buffer of the
/// socket is full; it counts them. Datagrams that wait in the socket when the run is stopped are lost, too.
/// If any is lost or late, the run ends with exit status 3.
///
/// The latency of a path from here counts from the time at which the kernel received the datagram
/// (`SO_TIMESTAMPNS`), so it includes the wait in the socket. If a chunk has samples of several datagrams,
/// the first one counts.
pub struct UdpSource<T: FileSample> {
    /// The samples.
    pub out: Output<Chunk<T>>,
    wire: WireCodec<T>,
    rate_hz: f64,
    timeout_ns: Option<u64>,
    receiver: DatagramReceiver,
    /// Range of the receiver's buffer that has not been sent.
    left: Range<usize>,
    sent: u64,
    received_ns: Option<u64>,
    /// Time at which the kernel received the datagram in `left`, on the run's clock.
    came_ns: u64,
}

impl<T: FileSample> UdpSource<T> {
    /// Receives on an address with a port, such as `127.0.0.1:9000` or `[::]:9000`.
    ///
    /// # Errors
    /// When the format is of the other sample type.
    pub fn new(bind: impl Into<String>, format: Option<SampleFormat>) -> Result<Self, Error> {
        Ok(UdpSource {
            out: Output::default(),
            wire: WireCodec::new(format)?,
            rate_hz: 0.0,
            timeout_ns: None,
            receiver: DatagramReceiver::new(bind.into()),
            left: 0..0,
            sent: 0,
            received_ns: None,
            came_ns: 0,
        })
    }

    /// Sets whether each datagram begins with its number.
    pub fn header(mut self, header: bool) -> Self {
        self.receiver.header = header;
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

    /// Requests a buffer of this size for the socket, in bytes.
    pub fn receive_buffer(mut self, bytes: usize) -> Self {
        self.receiver.receive_buffer = Some(bytes);
        self
    }

    /// Puts datagrams in order that come up to `datagrams` numbers early, and waits this time for a missing
    /// one; 0 for no order. Needs a header.
    ///
    /// # Errors
    /// When there are more than 1024.
    pub fn reorder(mut self, datagrams: usize, wait_ns: u64) -> Result<Self, Error> {
        if datagrams > MOST_EARLY {
            return Err(Error::new(format!(
                "`reorder` is {datagrams}: it can be {MOST_EARLY} at most, because each needs a buffer of 64 KiB"
            )));
        }
        (self.receiver.window.size, self.receiver.window.wait_ns) = (datagrams, wait_ns);
        Ok(self)
    }

    /// Uses a socket that is already open, instead of opening one at the start.
    pub fn socket(mut self, socket: UdpSocket) -> Self {
        self.receiver.given = Some(socket);
        self
    }

    /// Fills a chunk with the samples received. Returns their number, and when the first of them came.
    fn fill(&mut self, chunk: &mut Chunk<T>, cx: &mut Context) -> Result<(usize, u64), Error> {
        let size = self.wire.bytes();
        let (mut filled, mut came_ns, room) = (0, self.came_ns, chunk.capacity());
        let mut is_alone = false;
        while filled < room {
            if self.left.is_empty() {
                if self.receiver.ended {
                    break;
                }
                let Some(mut data) = self.receiver.receive(cx)? else { break };
                let ragged = data.len() % size;
                cx.lose(ragged as u64, "bytes", "after the last complete sample of a datagram");
                data.end -= ragged;
                self.left = data;
                let before_ns = std::mem::replace(&mut self.came_ns, self.receiver.came_ns);
                if filled == 0 {
                    came_ns = self.came_ns;
                    is_alone = self.came_ns.saturating_sub(before_ns) >= ALONE_NS;
                }
                continue;
            }
            if self.receiver.gap > 0 {
                let lost = i64::try_from(std::mem::take(&mut self.receiver.gap)).unwrap_or(i64::MAX);
                chunk.info_mut().tags.push(Tag { offset: filled, key: "lost".into(), value: lost.into() });
            }
            let count = (self.left.len() / size).min(room - filled);
            let bytes = &self.receiver.buffer[self.left.start..self.left.start + count * size];
            if let Some(samples) = chunk.edit_unique() {
                self.wire.unpack(bytes, &mut samples[filled..filled + count]);
            }
            self.left.start += count * size;
            filled += count;
            if is_alone && self.left.is_empty() {
                // It goes on at once, before the question whether there is another.
                break;
            }
        }
        Ok((filled, came_ns))
    }
}

impl<T: FileSample> Operator for UdpSource<T> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn sample_rate(&self) -> Option<f64> {
        (self.rate_hz > 0.0).then_some(self.rate_hz)
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.receiver.start(cx)
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(mut chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let (filled, came_ns) = self.fill(&mut chunk, cx)?;
        let now_ns = cx.now_ns();
        if filled > 0 {
            self.received_ns = Some(now_ns);
            chunk.truncate(filled);
            stamp_at(came_ns, &mut chunk, (&mut self.sent, self.rate_hz), cx);
            self.out.push(cx, chunk)?;
            return Ok(Step::Again);
        }
        if self.receiver.ended {
            return Ok(Step::Done);
        }
        let received_ns = *self.received_ns.get_or_insert(now_ns);
        let until_ns = self.timeout_ns.map_or(u64::MAX, |timeout_ns| received_ns.saturating_add(timeout_ns));
        if now_ns >= until_ns && self.receiver.window.is_empty() {
            let ms = self.timeout_ns.unwrap_or(0) / 1_000_000;
            cx.note(format!("no datagram on {} for {ms} ms: the stream was ended", self.receiver.bind));
            return Ok(Step::Done);
        }
        self.receiver.wait(until_ns, cx)
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        cx.lose((self.left.len() / self.wire.bytes()) as u64, "samples", UNREAD);
        self.left = 0..0;
        self.receiver.stop(cx);
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
    /// Whether each datagram begins with its number (8 bytes, low byte first), as `udp.sink` sends it with
    /// `header = true`. Without it, all bytes are samples.
    #[serde(default)]
    header: bool,
    /// Number of datagrams by which one can come early, to be put in order (1024 at most); 0: datagrams are
    /// not put in order. Needs `header = true`.
    #[serde(default)]
    reorder: usize,
    /// How long a datagram that came early waits for those before it.
    #[serde(default = "usual_wait")]
    reorder_wait: Seconds,
    /// Samples per second; without it there is no source time.
    #[serde(default)]
    sample_rate: Option<Hertz>,
    /// Ends the stream when no datagram has arrived for this time; without it, only a stop of the run ends
    /// it, or, with `header = true`, an end datagram: 8 bytes, low byte first, with the number of datagrams
    /// sent before it and the highest bit set.
    #[serde(default)]
    timeout: Option<Seconds>,
    /// Size of the socket's buffer, in which datagrams wait, such as `"4 MiB"`. It includes about 0.8 KiB of
    /// the kernel's own data per datagram. Without it, the kernel's default (`net.core.rmem_default`).
    #[serde(default)]
    receive_buffer: Option<Bytes>,
}

fn usual_wait() -> Seconds {
    Seconds(0.005)
}

fn source<T: FileSample>(p: &UdpSourceParameters, _: &Folders) -> Result<UdpSource<T>, Error> {
    check_address("bind", &p.bind)?;
    let mut source = UdpSource::new(&p.bind, p.format)?.header(p.header).rate(rate(p.sample_rate)?);
    if p.reorder > 0 && !p.header {
        return Err(Error::new(format!(
            "`reorder` is {}: datagrams without a header have no numbers; set `header = true` at both ends",
            p.reorder
        )));
    }
    source = source.reorder(p.reorder, time_ns("reorder_wait", p.reorder_wait)?)?;
    if let Some(timeout) = p.timeout {
        source = source.timeout(time_ns("timeout", timeout)?);
    }
    if let Some(Bytes(bytes)) = p.receive_buffer {
        crate::check::positive("receive_buffer", bytes)?;
        source = source.receive_buffer(bytes as usize);
    }
    Ok(source)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    let text = "receives samples in UDP datagrams and counts lost ones";
    let example = "bind = \"127.0.0.1:9000\"";
    registry.add(
        Kind::new("udp.source", text, example, source::<f32>).about(include_str!("../about/samples.md")),
    );
    registry.add(Kind::new("udp.source.complex", text, example, source::<Complex<f32>>));
}
