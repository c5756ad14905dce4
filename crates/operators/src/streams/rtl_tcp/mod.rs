//! Receives samples from an RTL-SDR receiver on another host, by the protocol of `rtl_tcp`.

mod control;
mod gain;
mod protocol;
mod rate_watch;
mod tuners;

pub use gain::TunerGain;

use super::address::{check_address, time_ns};
use super::connection::{Opening, TcpConnection, TcpPeer};
use super::patience::{on_clock_ns, real_ns};
use super::pipe::send;
use super::wire::WireCodec;
use crate::format::SampleFormat;
use num_complex::Complex;
use onbeat_runtime::{
    Chunk, Context, Declared, Ending, Error, Hertz, Kind, Operator, Output, Pace, Rate, Registry, Seconds,
    Step, Value, operator,
};
use protocol::{HEADER, ServerHeader};
pub(crate) use rate_watch::RateWatch;
use std::io::{ErrorKind, Read};

/// Bytes of a sample: I and Q.
const PAIR: usize = 2;

// Reasons of losses.
const CUT: &str = "the server closed the connection in the middle of a sample";
const AWAY: &str =
    "the connection was interrupted; their number is estimated from the time until it was back";
const SHORT: &str = "fewer came than the sample rate promises, which is an estimate: the server, the network or this \
                     pipeline was too slow";

/// Receives samples from an RTL-SDR receiver on another host.
#[doc = include_str!("../../about/rtl_tcp.md")]
#[derive(Operator)]
#[operator(
    name = "rtl_tcp.source",
    summary = "receives samples from an RTL-SDR receiver over the network (rtl_tcp)",
    about = include_str!("../../about/rtl_tcp.md"),
    prepare = Self::prepare,
)]
pub struct RtlTcpSource {
    /// The samples.
    out: Output<Chunk<Complex<f32>>>,
    /// Address and port of the server; `rtl_tcp` has the port 1234 unless told otherwise.
    #[parameter(example = "192.168.0.5:1234")]
    address: String,
    /// Centre frequency, rounded to whole hertz.
    #[parameter(min = "0 Hz", max = "4294967295 Hz", settable, example = "100 MHz")]
    frequency: Hertz,
    /// Samples per second, rounded to a whole number. It cannot change during a run: filters are made for
    /// one rate.
    #[parameter(min = "1 Hz", max = "4294967295 Hz", example = "1.2 MS/s")]
    sample_rate: Hertz,
    /// Gain of the tuner: `"auto"`, or decibels. The nearest gain that the tuner has is used.
    #[parameter(default, settable)]
    gain: TunerGain,
    /// Correction of the receiver's crystal in parts per million; without it, the server's setting stays.
    #[parameter(min = -1000, max = 1000, settable)]
    ppm: Option<i32>,
    /// Whether the receiver's digital part controls its gain too; without it, the server's setting stays.
    #[parameter(settable)]
    agc: Option<bool>,
    /// Whether the antenna's cable carries a supply voltage; without it, the server's setting stays.
    #[parameter(settable)]
    bias_tee: Option<bool>,
    /// How long to wait for a connection, for the server's header and for samples.
    #[parameter(default = "10 s")]
    patience: Seconds,
    line: Option<TcpConnection>,
    wire: Option<WireCodec<Complex<f32>>>,
    header: Vec<u8>,
    /// What the header said; `None` until it is complete.
    receiver: Option<ServerHeader>,
    /// The receiver that was described in a note.
    described: Option<ServerHeader>,
    /// Commands that the server has not taken.
    commands: Vec<u8>,
    bytes: Vec<u8>,
    /// Unused bytes at the start of `bytes`: half a sample.
    rest: usize,
    /// Index of the next sample.
    sent: u64,
    /// Whether the next chunk gets a tag with the frequency.
    tags_frequency: bool,
    /// Real time of the last arrival; it stays during an interruption.
    arrived_ns: Option<u64>,
    /// Whether samples arrived on this connection.
    has_samples: bool,
    watch: RateWatch,
}

impl RtlTcpSource {
    /// Checks the parameters, and makes the connection.
    fn prepare(&mut self) -> Result<(), Error> {
        check_address("address", &self.address)?;
        self.gain.check()?;
        let patience_ns = time_ns("patience", self.patience)?;
        let line =
            self.line.get_or_insert_with(|| TcpConnection::new(TcpPeer::Connect(self.address.clone())));
        (line.patience_ns, line.is_watched) = (patience_ns, true);
        self.wire = Some(WireCodec::new(Some(SampleFormat::Cu8))?);
        Ok(())
    }

    fn rate_hz(&self) -> f64 {
        self.sample_rate.0.round()
    }

    /// Time to wait for the server, in nanoseconds.
    fn patience_ns(&self) -> u64 {
        self.line.as_ref().map_or(0, |line| line.patience_ns)
    }

    /// Reads the header. Returns the step's result until it is complete.
    fn read_header(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        let mut bytes = [0; HEADER];
        let Some(stream) = self.line.as_mut().and_then(|line| line.stream.as_mut()) else {
            return Ok(Some(Step::Done));
        };
        let came = match stream.read(&mut bytes[self.header.len()..]) {
            Ok(count) => Some(count),
            Err(error) if is_nothing(&error) => None,
            Err(error) => return Err(self.no_header(Some(error))),
        };
        let have = self.header.len();
        self.header.extend_from_slice(&bytes[have..have + came.unwrap_or(0)]);
        if !ServerHeader::begins(&self.header) {
            return Err(Error::new(format!(
                "{} sent `{}`, and an rtl_tcp server begins with `RTL0`: is it the right port? \
                 (rtl_tcp has 1234 unless told otherwise)",
                self.address,
                self.header.escape_ascii()
            )));
        }
        if let Ok(header) = <&[u8; HEADER]>::try_from(&self.header[..]) {
            let header = ServerHeader::read(header);
            self.receiver = Some(header);
            self.describe(header, cx);
            self.command_all();
            self.arrived_ns.get_or_insert(real_ns());
            self.watch = RateWatch::new(self.rate_hz(), real_ns());
            return Ok(None);
        }
        match came {
            Some(0) => Err(self.no_header(None)),
            Some(_) => Ok(Some(Step::Again)),
            None => self.wait(cx).map(Some),
        }
    }

    /// The error of a server that ended the connection before its header was complete.
    fn no_header(&self, error: Option<std::io::Error>) -> Error {
        let text = format!(
            "{} closed the connection after {} of the {HEADER} bytes of an rtl_tcp header: is it an rtl_tcp server \
             with a receiver, and does no other program use it?",
            self.address,
            self.header.len()
        );
        error.map_or_else(|| Error::new(text.clone()), |error| Error::with_source(text.clone(), error))
    }

    /// Waits for bytes, or for room for commands, unless the patience is used up.
    fn wait(&mut self, cx: &mut Context) -> Result<Step, Error> {
        /// Time after which commands that the server does not take are tried again.
        const RETRY_NS: u64 = 20_000_000;
        let Some(line) = &self.line else { return Ok(Step::Done) };
        let since_ns = if self.has_samples { self.arrived_ns.unwrap_or(0) } else { 0 };
        let end_ns = since_ns.max(line.opened_ns).saturating_add(line.patience_ns);
        if real_ns() >= end_ns {
            return Err(self.silent());
        }
        let Some(stream) = &line.stream else { return Ok(Step::Done) };
        let retry_ns = if self.commands.is_empty() { u64::MAX } else { real_ns() + RETRY_NS };
        cx.readable_until(stream, on_clock_ns(cx, end_ns.min(retry_ns)))
    }

    /// The error of a server that sends nothing.
    fn silent(&self) -> Error {
        let within = format!("within {} ms (`patience`)", self.patience_ns() / 1_000_000);
        Error::new(if self.receiver.is_none() {
            let have = self.header.len();
            format!(
                "{} sent {have} of the {HEADER} bytes of an rtl_tcp header {within}: rtl_tcp serves one program at a \
                 time, so end the other one; or this is not an rtl_tcp server",
                self.address
            )
        } else {
            format!(
                "{} sent no samples {within}, after {} samples: look whether its receiver is plugged in and \
                 whether it takes the sample rate {} Hz",
                self.address,
                self.sent,
                self.rate_hz()
            )
        })
    }

    /// Counts the samples that an interruption cost, when samples are back.
    fn count_gap(&mut self, now_ns: u64, count: usize, cx: &mut Context) {
        let Some(before_ns) = self.arrived_ns.filter(|_| self.sent > 0) else { return };
        let away_s = now_ns.saturating_sub(before_ns) as f64 * 1e-9;
        let lost = ((away_s * self.rate_hz()) as u64).saturating_sub(count as u64);
        cx.lose(lost, "samples", AWAY);
        cx.note(format!(
            "the connection was interrupted after sample {}: about {lost} samples were lost, estimated from \
             the {away_s:.2} s until samples came again",
            self.sent
        ));
        self.sent += lost;
    }

    /// Handles the end of the connection.
    fn closed(&mut self, error: Option<std::io::Error>, cx: &mut Context) -> Error {
        cx.lose(std::mem::take(&mut self.rest) as u64, "bytes", CUT);
        let text = format!(
            "{} closed the connection after sample {}; with `on_error = \"restart\"` it is called again",
            self.address, self.sent
        );
        match error {
            Some(error) => Error::with_source(text, error),
            None => Error::new(text),
        }
    }

    /// Sends the samples that are complete, of `have` bytes.
    fn pass(&mut self, mut chunk: Chunk<Complex<f32>>, have: usize, cx: &mut Context) -> Result<(), Error> {
        let whole = have / PAIR * PAIR;
        self.rest = have - whole;
        if whole == 0 {
            return Ok(());
        }
        let now_ns = real_ns();
        if !self.has_samples {
            self.count_gap(now_ns, whole / PAIR, cx);
            self.has_samples = true;
        }
        self.arrived_ns = Some(now_ns);
        self.watch.arrive(now_ns, whole / PAIR);
        if std::mem::take(&mut self.tags_frequency) {
            self.tag_frequency(&mut chunk);
        }
        let rate_hz = self.rate_hz();
        let Some(wire) = &self.wire else { return Ok(()) };
        send(&mut self.out, chunk, wire, &self.bytes[..whole], (&mut self.sent, rate_hz), cx)?;
        self.bytes.copy_within(whole..have, 0);
        Ok(())
    }
}

/// Whether a read or write found nothing to do.
fn is_nothing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[operator]
impl Operator for RtlTcpSource {
    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.odd().into_iter().try_for_each(|text| cx.note_odd(text))?;
        (self.receiver, self.rest, self.has_samples, self.tags_frequency) = (None, 0, false, true);
        self.header.clear();
        self.commands.clear();
        self.line.as_mut().map_or(Ok(()), TcpConnection::start)
    }

    fn odd(&self) -> Vec<String> {
        let rate = self.rate_hz() as u64;
        let can = matches!(rate, 225_001..=300_000 | 900_001..=3_200_000);
        let odd = (!can).then(|| {
            format!(
                "`sample_rate` is {rate} Hz: an RTL-SDR has 225001 to 300000 and 900001 to 3200000, and keeps its \
                 former rate otherwise; receive more and use `fir.decimate`"
            )
        });
        odd.into_iter().collect()
    }

    fn rate(&self, _: Option<Pace>) -> Option<Rate> {
        let bytes = size_of::<Complex<f32>>();
        Some(Rate::Samples { rate_hz: self.rate_hz(), chunk: None, bytes })
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let Some(line) = &mut self.line else { return Ok(Step::Done) };
        match line.open(cx)? {
            Opening::Wait(step) => return Ok(step),
            Opening::GivenUp => return Ok(Step::Done),
            Opening::Over => {}
        }
        if self.receiver.is_none()
            && let Some(step) = self.read_header(cx)?
        {
            return Ok(step);
        }
        self.send_commands(cx)?;
        let Some(chunk) = self.out.chunk(cx) else { return Ok(Step::Wait) };
        let Some(stream) = self.line.as_mut().and_then(|line| line.stream.as_mut()) else {
            return Ok(Step::Done);
        };
        self.bytes.resize(chunk.capacity() * PAIR, 0);
        match stream.read(&mut self.bytes[self.rest..]) {
            Ok(0) => Err(self.closed(None, cx)),
            Ok(count) => {
                let have = self.rest + count;
                self.pass(chunk, have, cx)?;
                Ok(Step::Again)
            }
            Err(error) if is_nothing(&error) => self.wait(cx),
            Err(error) => Err(self.closed(Some(error), cx)),
        }
    }

    fn set(&mut self, cx: &mut Context, name: &str, value: &Value) -> Result<(), Error> {
        self.check_room()?;
        self.set_parameter(name, value)?;
        if self.receiver.is_some() {
            self.command(name, cx);
            // An error is found again, and reported, by the next step.
            let _reported_later = self.send_commands(cx);
        }
        Ok(())
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        if let Some(short) = std::mem::take(&mut self.watch).shortage() {
            cx.lose(short.samples, "samples", SHORT);
            cx.note(format!(
                "in {:.1} s about {} samples ({:.1} %) fewer arrived than the sample rate promises; this is an \
                 estimate",
                short.over_s, short.samples, short.percent
            ));
        }
        if let Some(line) = &mut self.line {
            line.hang_up();
        }
        Ok(())
    }
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<RtlTcpSource>());
}
