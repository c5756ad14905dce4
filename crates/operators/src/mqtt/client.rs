//! A connection with a broker, from the first call to its end, also over times without the broker.

use super::claim::ClientClaim;
use super::packet::{
    BrokerPacket, CONNACK_BYTE, Greeting, LONGEST_TEXT, Publication, is_grant, is_sign_of_life, read,
    write_disconnect, write_ping, write_puback,
};
use super::packet_buffer::{FoundPacket, PacketBuffer};
use super::refusal::refused;
use super::setup::MqttSetup;
use crate::streams::{Opening, TcpConnection, TcpPeer, on_clock_ns, real_ns};
use onbeat_runtime::{Context, Error, Step};
use std::io::{ErrorKind, Read, Write};

/// Where a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientStage {
    Calling,
    /// Our CONNECT has no answer yet.
    Greeting,
    Open,
}

/// State of a connection before a step.
pub(super) enum ClientOpening {
    /// The broker has accepted it just now.
    New,
    Open,
    /// Result of the step.
    Wait(Step),
    /// The run was stopped before there was a connection.
    GivenUp,
}

/// A packet, or what was made of it here.
pub(super) enum MqttArrival<'a> {
    /// A message, and whether the end of its payload was left out.
    Message(Publication<'a>, bool),
    /// A message of ours was acknowledged.
    Acknowledged(u16),
    /// The identifier of a SUBSCRIBE, and the qualities of its subscriptions.
    Granted(u16, &'a [u8]),
    /// An answer to a PINGREQ: the broker has read all before it.
    Alive,
}

pub(super) struct MqttClient {
    pub setup: MqttSetup,
    /// The identifier, known from the start on.
    pub id: String,
    claim: Option<ClientClaim>,
    secret: Option<Vec<u8>>,
    line: TcpConnection,
    stage: ClientStage,
    incoming: PacketBuffer,
    pub outgoing: Vec<u8>,
    pub written: usize,
    /// Real time of the last bytes that the broker took.
    sent_ns: u64,
    /// Requests without an answer, and the real time of the last answer, or of the first of them.
    requests: u32,
    asked_ns: u64,
    /// Whether a PINGREQ has no answer yet, and the real time of the last one, or of the connection.
    pub is_pinging: bool,
    pinged_ns: u64,
    /// Real time at which the broker went away.
    away_ns: Option<u64>,
    /// Whether the broker has kept a session from before this connection.
    pub has_session: bool,
    /// For how long the broker was away before this connection, in seconds.
    pub was_away_s: Option<f64>,
}

impl MqttClient {
    /// A client that takes payloads of at most `longest` bytes.
    pub fn new(setup: MqttSetup, longest: usize) -> Result<Self, Error> {
        setup.check()?;
        let mut line = TcpConnection::new(TcpPeer::Connect(setup.broker.clone()));
        (line.patience_ns, line.is_watched) = (setup.patience_ns, true);
        Ok(MqttClient {
            setup,
            id: String::new(),
            claim: None,
            secret: None,
            line,
            stage: ClientStage::Calling,
            incoming: PacketBuffer::new(longest),
            outgoing: Vec::new(),
            written: 0,
            sent_ns: 0,
            requests: 0,
            asked_ns: 0,
            is_pinging: false,
            pinged_ns: 0,
            away_ns: None,
            has_session: false,
            was_away_s: None,
        })
    }

    pub fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.id = match &self.setup.client_id {
            Some(id) => id.clone(),
            // Two clients with one identifier put each other off the broker.
            None => {
                let process = std::process::id();
                let mut id = format!("onbeat-{process}-{}", cx.name());
                id.truncate(id.floor_char_boundary(LONGEST_TEXT));
                id
            }
        };
        self.claim = None;
        self.claim = Some(ClientClaim::take(&self.setup.broker, &self.id)?);
        self.secret = self.setup.secret()?;
        self.call()
    }

    /// Closes the connection after a failed step. The next steps open another one.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.away_ns.get_or_insert_with(real_ns);
        self.call()
    }

    fn call(&mut self) -> Result<(), Error> {
        self.incoming.clear();
        self.outgoing.clear();
        (self.written, self.requests, self.is_pinging) = (0, 0, false);
        self.stage = ClientStage::Calling;
        self.line.hang_up();
        self.line.start()
    }

    /// Opens the connection, unless it is open.
    pub fn open(&mut self, cx: &mut Context) -> Result<ClientOpening, Error> {
        if self.stage == ClientStage::Open {
            return Ok(ClientOpening::Open);
        }
        if self.stage == ClientStage::Calling {
            match self.line.open(cx)? {
                Opening::Wait(step) => return Ok(ClientOpening::Wait(step)),
                Opening::GivenUp => return Ok(ClientOpening::GivenUp),
                Opening::Over => {}
            }
            self.greet();
        }
        if let Some(begin) = self.incoming.begin().filter(|begin| begin[0] != CONNACK_BYTE) {
            return Err(self.odd(&format!("`{}` instead of an answer to CONNECT", begin.escape_ascii())));
        }
        let answer = match self.packet()? {
            None if self.flush()? && self.fill()? => return Ok(ClientOpening::Wait(Step::Again)),
            None => return self.wait(u64::MAX, cx).map(ClientOpening::Wait),
            Some(found) => match self.read(&found)? {
                BrokerPacket::ConnAck { has_session, code } => Some((has_session, code)),
                _ => None,
            },
        };
        match answer {
            Some((has_session, 0)) => self.has_session = has_session,
            Some((_, code)) => return Err(refused(code, &self.setup, &self.id)),
            None => return Ok(ClientOpening::Wait(Step::Again)),
        }
        (self.stage, self.pinged_ns) = (ClientStage::Open, real_ns());
        self.answered();
        let since_ns = self.away_ns.take();
        self.was_away_s = since_ns.map(|since_ns| real_ns().saturating_sub(since_ns) as f64 / 1e9);
        Ok(ClientOpening::New)
    }

    fn greet(&mut self) {
        let setup = &self.setup;
        let greeting = Greeting {
            client_id: &self.id,
            clean_session: setup.clean_session,
            keep_alive_s: setup.keep_alive_s,
            user: setup.user.as_deref(),
            password: self.secret.as_deref(),
            will: setup.will.as_ref(),
        };
        greeting.write(&mut self.outgoing);
        self.stage = ClientStage::Greeting;
        self.sent_ns = real_ns();
        self.ask();
    }

    /// Notes that what is sent next wants an answer.
    pub fn ask(&mut self) {
        if self.requests == 0 {
            self.asked_ns = real_ns();
        }
        self.requests += 1;
    }

    /// Notes that an answer came.
    pub fn answered(&mut self) {
        self.requests = self.requests.saturating_sub(1);
        self.asked_ns = real_ns();
    }

    /// The next packet that has arrived.
    fn packet(&mut self) -> Result<Option<FoundPacket>, Error> {
        self.incoming.next().map_err(|what| self.odd(what))
    }

    fn read(&self, found: &FoundPacket) -> Result<BrokerPacket<'_>, Error> {
        read(found.first, self.incoming.rest(found)).map_err(|what| self.odd(what))
    }

    /// The next packet on an open connection.
    pub fn next(&mut self) -> Result<Option<MqttArrival<'_>>, Error> {
        let Some(found) = self.packet()? else { return Ok(None) };
        let is_alive = is_sign_of_life(found.first);
        if is_alive {
            self.is_pinging = false;
        }
        if is_alive || is_grant(found.first) {
            self.answered();
        }
        Ok(Some(match self.read(&found)? {
            BrokerPacket::Publish(message) => MqttArrival::Message(message, found.is_cut),
            BrokerPacket::PubAck(id) => MqttArrival::Acknowledged(id),
            BrokerPacket::SubAck(id, codes) => MqttArrival::Granted(id, codes),
            BrokerPacket::PingResp => MqttArrival::Alive,
            BrokerPacket::ConnAck { .. } => return Err(self.odd("a second answer to CONNECT")),
        }))
    }

    /// Acknowledges a message.
    pub fn acknowledge(&mut self, id: u16) {
        write_puback(id, &mut self.outgoing);
    }

    /// Asks the broker for a sign of life, which comes when it has read all before.
    pub fn ping(&mut self) {
        if !self.is_pinging {
            write_ping(&mut self.outgoing);
            (self.is_pinging, self.pinged_ns) = (true, real_ns());
            self.ask();
        }
    }

    /// Writes the outgoing bytes. Returns whether the broker took all.
    pub fn flush(&mut self) -> Result<bool, Error> {
        while self.written < self.outgoing.len() {
            let Some(stream) = &mut self.line.stream else { return Ok(false) };
            match stream.write(&self.outgoing[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    self.sent_ns = real_ns();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(self.closed(Some(error))),
            }
        }
        self.outgoing.clear();
        self.written = 0;
        Ok(true)
    }

    /// Reads what has arrived. Returns whether there was anything.
    pub fn fill(&mut self) -> Result<bool, Error> {
        let Some(stream) = &mut self.line.stream else { return Ok(false) };
        match self.incoming.fill(|bytes| stream.read(bytes)) {
            Ok(0) => Err(self.closed(None)),
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(self.closed(Some(error))),
        }
    }

    /// Waits for the broker, at most until a time on the run's clock, and keeps the connection alive.
    pub fn wait(&mut self, until_ns: u64, cx: &mut Context) -> Result<Step, Error> {
        let (now_ns, patience_ns) = (real_ns(), self.setup.patience_ns);
        // Three quarters of the time, so that a packet is there before the broker misses it. Also beside
        // other packets: the answer says that the broker has read them.
        let alive_ns = u64::from(self.setup.keep_alive_s) * 750_000_000;
        let mut ping_ns = u64::MAX;
        if alive_ns > 0 && !self.is_pinging && self.stage == ClientStage::Open {
            ping_ns = self.pinged_ns.saturating_add(alive_ns);
            if now_ns >= ping_ns {
                self.ping();
                self.flush()?;
                ping_ns = u64::MAX;
            }
        }
        // Behind the ping: it wants an answer, too.
        let answer_ns = if self.requests > 0 { self.asked_ns.saturating_add(patience_ns) } else { u64::MAX };
        if now_ns >= answer_ns {
            return Err(self.silent());
        }
        let is_stuck = self.written < self.outgoing.len();
        let taken_ns = if is_stuck { self.sent_ns.saturating_add(patience_ns) } else { u64::MAX };
        if now_ns >= taken_ns {
            let limit = self.limit();
            return Err(self.lost(&format!("did not take what it was sent within {limit}")));
        }
        let end_ns = answer_ns.min(ping_ns).min(taken_ns);
        let until_ns = if end_ns == u64::MAX { until_ns } else { until_ns.min(on_clock_ns(cx, end_ns)) };
        match &self.line.stream {
            Some(stream) if is_stuck => cx.writable_until(stream, until_ns),
            Some(stream) => cx.readable_until(stream, until_ns),
            None => Ok(Step::Done),
        }
    }

    /// Takes leave, so that the broker does not publish the will, and closes the connection.
    pub fn leave(&mut self) {
        if self.stage == ClientStage::Open && self.line.stream.is_some() {
            write_disconnect(&mut self.outgoing);
            // A broker that has gone misses nothing.
            let _gone = self.flush();
        }
        self.hang_up();
    }

    /// Closes the connection without a word: the broker publishes the will.
    pub fn hang_up(&mut self) {
        self.stage = ClientStage::Calling;
        self.line.hang_up();
        self.claim = None;
    }

    fn limit(&self) -> String {
        format!("{} ms (`patience`)", self.setup.patience_ns / 1_000_000)
    }

    /// The error of a connection that is of no use any more.
    fn lost(&self, what: &str) -> Error {
        Error::new(format!("{} {what}; with `on_error = \"restart\"` it is called again", self.setup.broker))
    }

    fn silent(&self) -> Error {
        let limit = self.limit();
        if self.stage == ClientStage::Open {
            return self.lost(&format!("did not answer within {limit}"));
        }
        let broker = &self.setup.broker;
        Error::new(format!(
            "{broker} did not answer CONNECT within {limit}: is it an MQTT broker, with a port without TLS?"
        ))
    }

    /// The error of a broker that sends what no broker sends.
    pub fn odd(&self, what: &str) -> Error {
        let broker = &self.setup.broker;
        if self.stage == ClientStage::Open {
            return Error::new(format!("{broker} sent {what}: it does not speak MQTT 3.1.1"));
        }
        Error::new(format!("{broker} sent {what}: is it an MQTT broker? (the usual port is 1883)"))
    }

    /// The error of a connection that ended.
    fn closed(&self, error: Option<std::io::Error>) -> Error {
        let (broker, id) = (&self.setup.broker, &self.id);
        let text = if self.stage == ClientStage::Open {
            format!(
                "{broker} closed the connection. With `on_error = \"restart\"` it is called again. If that repeats: does \
                 another client have the identifier `{id}`, or did this one not take messages for 1.5 × `keep_alive`?"
            )
        } else {
            format!(
                "{broker} closed the connection before it answered CONNECT: is it an MQTT broker for MQTT 3.1.1, with a \
                 port without TLS?"
            )
        };
        match error {
            Some(error) => Error::with_source(text, error),
            None => Error::new(text),
        }
    }
}
