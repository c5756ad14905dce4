//! Messages to a broker.

use super::client::{ClientOpening, MqttArrival, MqttClient};
use super::in_flight::InFlight;
use super::packet::{frame, is_publish, write_publish};
use super::payload::WritePayload;
use super::setup::{MqttSetup, check_topic};
use crate::streams::{connect_at_once, is_over, over_at_ns};
use onbeat_runtime::{Context, Ending, Error, Input, Merge, Operator, Ports, Step};

// Units and reasons of losses.
const MESSAGES: &str = "messages";
const NOT_SENT: &str = "not sent when the broker went away";
const NOT_CONFIRMED: &str = "the broker did not acknowledge them within `patience` of the end";
const FAILED: &str = "the broker had not acknowledged them when the operator failed";
const NO_BROKER: &str = "there was no connection with the broker at the end";

/// Bytes that may wait for the broker before no more messages are taken.
const WAITING: usize = 16 << 10;
/// Longest packet of a broker that a sink expects, in bytes of payload.
const ANSWER: usize = 1 << 10;

/// How a sink publishes.
#[derive(Debug, Clone)]
pub struct MqttPublishing {
    /// The topic.
    pub topic: String,
    /// Quality, 0 or 1.
    pub qos: u8,
    /// Whether the broker keeps the last message for new subscribers.
    pub retain: bool,
}

#[doc = include_str!("../about/mqtt_sink.md")]
pub struct MqttSink<W: WritePayload> {
    /// A payload for each message. Messages of several edges are merged by source time.
    pub input: Input<W::Taken>,
    client: MqttClient,
    publishing: MqttPublishing,
    writer: W,
    payload: Vec<u8>,
    /// Messages with QoS 1 that the broker has not acknowledged.
    in_flight: InFlight,
    /// Messages with QoS 0 since the last sign of life, and those of them before the last question for one.
    unconfirmed: u64,
    before_ping: u64,
    has_given_up: bool,
}

impl<W: WritePayload> MqttSink<W> {
    /// Publishes at a broker.
    ///
    /// # Errors
    /// If the topic or a setting cannot be.
    pub fn new(setup: MqttSetup, publishing: MqttPublishing, writer: W) -> Result<Self, Error> {
        check_topic("topic", &publishing.topic)?;
        Ok(MqttSink {
            input: Input::default(),
            client: MqttClient::new(setup, ANSWER)?,
            publishing,
            writer,
            payload: Vec::new(),
            in_flight: InFlight::default(),
            unconfirmed: 0,
            before_ping: 0,
            has_given_up: false,
        })
    }

    fn has_room(&self) -> bool {
        self.client.outgoing.len() < WAITING && self.in_flight.has_room()
    }

    /// Makes a packet of a message.
    fn publish(&mut self, message: &W::Taken, cx: &mut Context) {
        self.payload.clear();
        let MqttPublishing { topic, qos, retain } = &self.publishing;
        let begin = self.client.outgoing.len();
        let id = (*qos > 0).then(|| self.in_flight.next_id());
        let written = self
            .writer
            .write(message, &mut self.payload)
            .and_then(|()| write_publish(topic, id, *retain, &self.payload, &mut self.client.outgoing));
        match (written, id) {
            (Err(reason), _) => cx.lose(1, MESSAGES, reason),
            (Ok(()), None) => self.unconfirmed += 1,
            (Ok(()), Some(id)) => {
                self.in_flight.add(id, &self.client.outgoing[begin..]);
                self.client.ask();
            }
        }
    }

    /// Goes on with a new connection.
    fn go_on(&mut self, cx: &mut Context) {
        let again = self.in_flight.repeat(&mut self.client.outgoing);
        (0..again).for_each(|_| self.client.ask());
        if let Some(away_s) = self.client.was_away_s.take() {
            let broker = &self.client.setup.broker;
            let again = if again == 0 {
                String::new()
            } else {
                format!("; {again} messages without an acknowledgement are sent again, and may arrive twice")
            };
            cx.note(format!("{broker} was away for {away_s:.2} s{again}"));
        }
    }

    /// Handles answers. Returns whether a message was acknowledged.
    fn take_answers(&mut self) -> Result<bool, Error> {
        let mut has_news = false;
        loop {
            match self.client.next()? {
                None => return Ok(has_news),
                Some(MqttArrival::Alive) => {
                    self.unconfirmed -= self.before_ping.min(self.unconfirmed);
                    self.before_ping = 0;
                }
                // One that is not known is of a former connection.
                Some(MqttArrival::Acknowledged(id)) => {
                    if self.in_flight.acknowledge(id) {
                        self.client.answered();
                        has_news = true;
                    }
                }
                Some(MqttArrival::Message(..)) => {
                    return Err(self.client.odd("a message to a client without subscriptions"));
                }
                Some(MqttArrival::Granted(..)) => {
                    return Err(self.client.odd("an answer to a SUBSCRIBE that was never sent"));
                }
            }
        }
    }

    /// Waits until the broker has all.
    fn finish(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.in_flight.is_empty() && self.unconfirmed == 0 {
            self.client.leave();
            return Ok(Step::Done);
        }
        if is_over(cx, self.client.setup.patience_ns) {
            return Ok(self.give_up(NOT_CONFIRMED, cx));
        }
        if self.unconfirmed > 0 && !self.client.is_pinging {
            self.before_ping = self.unconfirmed;
            self.client.ping();
            self.client.flush()?;
        }
        self.wait(cx)
    }

    fn wait(&mut self, cx: &mut Context) -> Result<Step, Error> {
        let was_pinging = self.client.is_pinging;
        let step = self.client.wait(over_at_ns(cx, self.client.setup.patience_ns), cx);
        if self.client.is_pinging && !was_pinging {
            self.before_ping = self.unconfirmed;
        }
        step
    }

    /// Counts the rest as lost, also what is still to come.
    fn give_up(&mut self, reason: &'static str, cx: &mut Context) -> Step {
        self.has_given_up = true;
        self.lose_rest(reason, cx);
        self.client.leave();
        self.discard(cx)
    }

    fn lose_rest(&mut self, reason: &'static str, cx: &mut Context) {
        cx.lose(self.in_flight.clear() as u64 + std::mem::take(&mut self.unconfirmed), MESSAGES, reason);
    }

    fn discard(&mut self, cx: &mut Context) -> Step {
        while self.input.pop(cx).is_some() {
            cx.lose(1, MESSAGES, NO_BROKER);
        }
        if self.input.is_ended(cx) { Step::Done } else { Step::Wait }
    }

    /// Counts messages with QoS 0 that a broken connection has cost. Those with QoS 1 are sent again.
    fn count_cut(&mut self, cx: &mut Context) {
        if self.publishing.qos > 0 {
            return;
        }
        let unsent = unsent(&self.client.outgoing, self.client.written).min(self.unconfirmed);
        cx.lose(unsent, MESSAGES, NOT_SENT);
        let unknown = std::mem::take(&mut self.unconfirmed) - unsent;
        if unknown > 0 {
            let broker = &self.client.setup.broker;
            cx.note(format!(
                "{broker} went away: whether the last {unknown} messages arrived is unknown, because QoS 0 has no \
                 acknowledgements"
            ));
        }
        self.before_ping = 0;
    }
}

/// Number of messages in `outgoing` of which not all bytes were written.
fn unsent(outgoing: &[u8], written: usize) -> u64 {
    let (mut at, mut count) = (0, 0);
    while let Some(Ok(Some((head, rest)))) = outgoing.get(at..).map(frame) {
        let end = at + head + rest;
        count += u64::from(end > written && is_publish(outgoing[at]));
        at = end;
    }
    count
}

impl<W: WritePayload> Operator for MqttSink<W> {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input).many(Merge::Ordered);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.client.start(cx)?;
        connect_at_once(cx);
        Ok(())
    }

    fn restart(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.count_cut(cx);
        self.client.restart()?;
        connect_at_once(cx);
        Ok(())
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if self.has_given_up {
            return Ok(self.discard(cx));
        }
        match self.client.open(cx)? {
            ClientOpening::Wait(_) if is_over(cx, self.client.setup.patience_ns) => {
                return Ok(self.give_up(NO_BROKER, cx));
            }
            ClientOpening::Wait(step) => return Ok(step),
            ClientOpening::GivenUp => return Ok(self.give_up(NO_BROKER, cx)),
            ClientOpening::New => self.go_on(cx),
            ClientOpening::Open => {}
        }
        // Of several edges, one may have messages that have to wait for another one.
        let mut is_dry = false;
        while !is_dry && self.has_room() {
            match self.input.pop(cx) {
                Some(message) => self.publish(&message, cx),
                None => is_dry = true,
            }
        }
        let is_sent = self.client.flush()?;
        let has_news = self.take_answers()?;
        if !is_dry && (is_sent || has_news) && self.has_room() && !self.input.is_empty(cx) {
            return Ok(Step::Again);
        }
        if self.client.fill()? {
            return Ok(Step::Again);
        }
        if self.input.is_ended(cx) {
            return self.finish(cx);
        }
        self.wait(cx)
    }

    fn stop(&mut self, cx: &mut Context, ending: Ending) -> Result<(), Error> {
        if ending == Ending::Failed {
            self.count_cut(cx);
            self.lose_rest(FAILED, cx);
            self.client.hang_up();
        } else {
            self.lose_rest(NO_BROKER, cx);
            self.client.leave();
        }
        Ok(())
    }
}
