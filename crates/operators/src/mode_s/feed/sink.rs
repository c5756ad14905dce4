//! Sends frames to other programs.

use super::clients::FeedClients;
use super::sbs::SbsWriter;
use super::{avr, beast};
use crate::mode_s::Frame;
use crate::streams::{
    Opening, TcpConnection, TcpPeer, check_address, is_over, on_clock_ns, over_at_ns, real_ns, time_ns,
};
use onbeat_os::clock::realtime_unix_ns;
use onbeat_runtime::{Context, Ending, Error, Input, Operator, Seconds, Step, operator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::TcpListener;

/// Most frames of a step.
const FRAMES: usize = 256;
/// Time from one look for clients to the next while frames come.
const LOOK_NS: u64 = 1_000_000;
/// Pause before a server that has gone is called again.
const PAUSE_NS: u64 = 1_000_000_000;

// Reasons of losses.
const AWAY: &str = "the server was away";
const NO_PEER: &str = "there was no connection within `patience`";

/// Format in which Mode S frames are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FrameOutputFormat {
    /// A line of text for each frame: `*8D4D2023...;`.
    Avr,
    /// The same with the time before each frame: `@0000000012AB8D4D2023...;`.
    AvrMlat,
    /// The binary format of Beast receivers, with time and level.
    #[default]
    Beast,
    /// Lines of decoded fields, as the program BaseStation sends them.
    Sbs,
}

/// Sends Mode S frames to map programs and other receivers.
#[doc = include_str!("../../about/mode_s_sink.md")]
#[derive(Operator)]
#[operator(
    name = "mode_s.sink",
    summary = "sends Mode S frames to map programs over TCP",
    about = include_str!("../../about/mode_s_sink.md"),
    prepare = Self::prepare,
)]
pub struct FrameSink {
    /// Frames to send.
    input: Input<Frame>,
    /// Address and port of a server to send to; give either `connect` or `listen`.
    #[parameter]
    connect: Option<String>,
    /// Address and port on which any number of clients, at most 64 at a time, can connect; give either
    /// `connect` or `listen`.
    #[parameter(example = "127.0.0.1:30005")]
    listen: Option<String>,
    /// `avr`: lines of hexadecimal digits. `avr_mlat`: the same with times. `beast`: binary, with times and
    /// levels. `sbs`: lines of decoded fields.
    #[parameter(default)]
    format: FrameOutputFormat,
    /// Number of clients to wait for, at most `patience`, before the first frame is sent; with `listen`.
    #[parameter(default = 0, max = 64)]
    wait_for: u32,
    /// Latitude of the receiver in degrees, north above 0. With it and `longitude`, `sbs` has positions of
    /// aircraft on the ground.
    #[parameter]
    latitude: Option<f64>,
    /// Longitude of the receiver in degrees, east above 0.
    #[parameter]
    longitude: Option<f64>,
    /// How long to wait for the first connection, and at the end for the clients to take the rest.
    #[parameter(default = "10 s")]
    patience: Seconds,
    patience_ns: u64,
    /// The connection to a server.
    line: Option<TcpConnection>,
    given: Option<TcpListener>,
    clients: Option<FeedClients>,
    sbs: SbsWriter,
    bytes: Vec<u8>,
    begun_ns: u64,
    looked_ns: u64,
    /// Real time at which the input had ended.
    ended_ns: Option<u64>,
    /// Frames that came while nobody listened.
    unheard: u64,
    is_noted: bool,
    /// Whether the rest is counted as lost.
    is_given_up: bool,
}

impl FrameSink {
    /// Checks the parameters.
    fn prepare(&mut self) -> Result<(), Error> {
        self.patience_ns = time_ns("patience", self.patience)?;
        let receiver = match (self.latitude, self.longitude) {
            (Some(latitude), Some(longitude)) => Some((latitude, longitude)),
            (None, None) => None,
            _ => {
                return Err(Error::new(
                    "`latitude` and `longitude` are the place of the receiver: give both",
                ));
            }
        };
        self.sbs = SbsWriter::new(receiver)?;
        let peer = TcpPeer::of(self.connect.as_deref(), self.listen.as_deref())?;
        if let TcpPeer::Connect(address) = &peer {
            check_address("connect", address)?;
            if self.wait_for > 0 {
                return Err(Error::new(format!(
                    "`wait_for` is {}: it counts clients of `listen`, so leave it out with `connect`",
                    self.wait_for
                )));
            }
            let mut line = TcpConnection::new(peer);
            (line.patience_ns, line.is_watched) = (self.patience_ns, true);
            self.line = Some(line);
        }
        Ok(())
    }

    /// Uses a listening socket that is already open, instead of opening one at the start.
    pub fn listener(mut self, listener: TcpListener) -> Self {
        self.given = Some(listener);
        self
    }

    /// Connects to the server. Returns the step's result while there is no connection.
    fn connect(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        let (Some(line), Some(clients)) = (&mut self.line, &mut self.clients) else { return Ok(None) };
        if clients.count() > 0 {
            return Ok(None);
        }
        let was_there = clients.came > 0;
        if was_there && !line.is_begun() {
            if !std::mem::replace(&mut self.is_noted, true) {
                let address = line.address();
                cx.note(format!(
                    "{address} closed the connection: it is called again, and frames are lost meanwhile"
                ));
            }
            line.call_again(PAUSE_NS);
        }
        let opening = match line.open(cx) {
            Err(_) if was_there => {
                line.hang_up();
                Opening::Wait(cx.look_again_in(PAUSE_NS))
            }
            other => other?,
        };
        match opening {
            Opening::Over => {
                if let Some(stream) = line.stream.take() {
                    // A server that has gone at once is found later.
                    drop(clients.add(stream));
                }
                line.hang_up();
                Ok(None)
            }
            // The first connection is waited for; later, frames get lost.
            Opening::Wait(step) if !was_there => Ok(Some(step)),
            Opening::Wait(step) => Ok(Some(self.discard(AWAY, cx).unwrap_or(step))),
            Opening::GivenUp => {
                self.is_given_up = true;
                Ok(Some(self.discard(NO_PEER, cx).unwrap_or(Step::Wait)))
            }
        }
    }

    /// Counts waiting input as lost. Returns `Done` at its end.
    fn discard(&mut self, reason: &'static str, cx: &mut Context) -> Option<Step> {
        while self.input.pop(cx).is_some() {
            cx.lose(1, "frames", reason);
        }
        self.input.is_ended(cx).then_some(Step::Done)
    }

    /// Waits for the first clients. Returns the step's result until they are there.
    fn await_clients(&mut self, cx: &mut Context) -> Result<Option<Step>, Error> {
        let Some(clients) = &mut self.clients else { return Ok(None) };
        if clients.came >= u64::from(self.wait_for) || self.line.is_some() {
            return Ok(None);
        }
        let end_ns = self.begun_ns.saturating_add(self.patience_ns);
        if real_ns() >= end_ns || is_over(cx, self.patience_ns) {
            return Err(Error::new(format!(
                "{} of {} clients (`wait_for`) have connected to {} within {} ms (`patience`)",
                clients.came,
                self.wait_for,
                self.listen.as_deref().unwrap_or_default(),
                self.patience_ns / 1_000_000
            )));
        }
        clients.await_all()?;
        let until_ns = on_clock_ns(cx, end_ns).min(over_at_ns(cx, self.patience_ns));
        cx.readable_until(&clients.poll, until_ns).map(Some)
    }

    /// Takes frames from the input, and puts them into the queues.
    fn take(&mut self, cx: &mut Context) {
        let Some(clients) = &mut self.clients else { return };
        for _ in 0..FRAMES {
            let Some(frame) = self.input.pop(cx) else { break };
            self.unheard += u64::from(clients.count() == 0);
            self.bytes.clear();
            match self.format {
                FrameOutputFormat::Avr => avr::write(&frame, false, &mut self.bytes),
                FrameOutputFormat::AvrMlat => avr::write(&frame, true, &mut self.bytes),
                FrameOutputFormat::Beast => beast::write(&frame, &mut self.bytes),
                FrameOutputFormat::Sbs => self.sbs.write(&frame, realtime_unix_ns(), &mut self.bytes),
            }
            if !self.bytes.is_empty() {
                clients.push(&self.bytes, cx);
            }
        }
    }
}

#[operator]
impl Operator for FrameSink {
    fn start(&mut self, _: &mut Context) -> Result<(), Error> {
        (self.begun_ns, self.ended_ns, self.is_given_up) = (real_ns(), None, false);
        let mut clients = FeedClients::new()?;
        if let Some(line) = &mut self.line {
            line.start()?;
        } else if let Some(address) = &self.listen {
            let cannot = |error| Error::with_source(format!("cannot listen on {address}"), error);
            let listener = match self.given.take() {
                Some(listener) => listener,
                None => TcpListener::bind(address).map_err(cannot)?,
            };
            listener.set_nonblocking(true).map_err(cannot)?;
            clients.listener = Some(listener);
        }
        self.clients = Some(clients);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.is_given_up {
            return Ok(self.discard(NO_PEER, cx).unwrap_or(Step::Wait));
        }
        let now_ns = cx.now_ns();
        if let Some(clients) = &mut self.clients
            && (self.input.is_empty(cx) || now_ns >= self.looked_ns.saturating_add(LOOK_NS))
        {
            self.looked_ns = now_ns;
            clients.look(cx)?;
        }
        if let Some(step) = self.connect(cx)? {
            return Ok(step);
        }
        if let Some(step) = self.await_clients(cx)? {
            return Ok(step);
        }
        self.take(cx);
        let Some(clients) = &mut self.clients else { return Ok(Step::Done) };
        let is_waiting = clients.write(cx);
        if !self.input.is_empty(cx) || self.line.is_some() && clients.count() == 0 {
            return Ok(Step::Again);
        }
        let mut until_ns = u64::MAX;
        if self.input.is_ended(cx) {
            let end_ns = self.ended_ns.get_or_insert_with(real_ns).saturating_add(self.patience_ns);
            if !is_waiting || real_ns() >= end_ns || is_over(cx, self.patience_ns) {
                clients.close(cx);
                return Ok(Step::Done);
            }
            until_ns = on_clock_ns(cx, end_ns).min(over_at_ns(cx, self.patience_ns));
        }
        clients.await_all()?;
        cx.readable_until(&clients.poll, until_ns)
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        if let Some(mut clients) = self.clients.take() {
            clients.close(cx);
            if self.unheard > 0 {
                let (unheard, came) = (self.unheard, clients.came);
                cx.note(format!(
                    "{unheard} frames came while no client was connected; number of clients in all: {came}"
                ));
            }
        }
        if let Some(line) = &mut self.line {
            line.hang_up();
        }
        Ok(())
    }
}
