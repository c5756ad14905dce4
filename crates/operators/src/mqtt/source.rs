//! Messages from a broker.

use super::client::{ClientOpening, MqttArrival, MqttClient};
use super::packet::{Publication, write_subscribe};
use super::payload::ReadPayload;
use super::refusal::{NOT_SUBSCRIBED, not_subscribed};
use super::setup::{MqttSetup, check_filter};
use crate::check::shown;
use crate::streams::real_ns;
use onbeat_runtime::{Context, Ending, Error, Operator, Output, Ports, Step};

// Units and reasons of losses.
const MESSAGES: &str = "messages";
const TOO_LONG: &str = "the payload is longer than `longest`";
const UNREAD: &str = "had arrived when the run was stopped";

/// The identifier of our only SUBSCRIBE on a connection.
const SUBSCRIPTION: u16 = 1;
/// Topics that are named in notes.
const NAMED: usize = 8;
/// Most bytes that are looked through for messages at the end of a run.
const LOOKED_THROUGH: usize = 1 << 20;

/// Which messages a source asks for.
#[derive(Debug, Clone)]
pub struct MqttSubscription {
    /// Topics, with `+` and `#`.
    pub topics: Vec<String>,
    /// Highest quality, 0 or 1.
    pub qos: u8,
    /// Whether messages that the broker has kept from before are wanted.
    pub retained: bool,
    /// Longest payload in bytes.
    pub longest: usize,
}

#[doc = include_str!("../about/mqtt_source.md")]
pub struct MqttSource<R: ReadPayload> {
    /// A message for each payload.
    pub out: Output<R::Made>,
    client: MqttClient,
    wanted: MqttSubscription,
    reader: R,
    /// Time at which the bytes in the buffer were read, on the run's clock.
    came_ns: u64,
    taken: u64,
    retained: u64,
    duplicates: u64,
    /// Topics whose losses were noted.
    named: Vec<String>,
    /// Real time at which it took its last step, and the messages that had arrived by then.
    end: Option<(u64, u64)>,
}

impl<R: ReadPayload> MqttSource<R> {
    /// Subscribes at a broker.
    ///
    /// # Errors
    /// If a topic or a setting cannot be.
    pub fn new(setup: MqttSetup, wanted: MqttSubscription, reader: R) -> Result<Self, Error> {
        /// Most topics of one SUBSCRIBE.
        const TOPICS: usize = 1000;
        if wanted.topics.is_empty() || wanted.topics.len() > TOPICS {
            let count = wanted.topics.len();
            return Err(Error::new(format!("`topics` has {count} topics: give `topic`, or 1 to {TOPICS}")));
        }
        wanted.topics.iter().try_for_each(|topic| check_filter("topics", topic))?;
        Ok(MqttSource {
            out: Output::default(),
            client: MqttClient::new(setup, wanted.longest)?,
            wanted,
            reader,
            came_ns: 0,
            taken: 0,
            retained: 0,
            duplicates: 0,
            named: Vec::new(),
            end: None,
        })
    }

    /// Subscribes on a new connection.
    fn subscribe(&mut self, cx: &mut Context) {
        let (client, wanted) = (&mut self.client, &self.wanted);
        write_subscribe(SUBSCRIPTION, &wanted.topics, wanted.qos, &mut client.outgoing);
        client.ask();
        let Some(away_s) = client.was_away_s.take() else { return };
        let meanwhile = if client.has_session && wanted.qos > 0 {
            "with QoS 1 comes now, as far as the broker kept it, and some may come twice"
        } else {
            "did not arrive, and its number is unknown"
        };
        let broker = &client.setup.broker;
        cx.note(format!("{broker} was away for {away_s:.2} s: what was published meanwhile {meanwhile}"));
    }

    /// Sends the next message that has arrived. Returns whether there was one.
    fn take_next(&mut self, cx: &mut Context) -> Result<bool, Error> {
        loop {
            let (message, is_cut) = match self.client.next()? {
                None => return Ok(false),
                Some(MqttArrival::Message(message, is_cut)) => (message, is_cut),
                Some(MqttArrival::Granted(id, codes)) => {
                    let codes = codes.to_vec();
                    self.granted(id, &codes, cx)?;
                    continue;
                }
                Some(MqttArrival::Alive) => continue,
                Some(MqttArrival::Acknowledged(_)) => {
                    return Err(self.client.odd("an acknowledgement of what nobody has published"));
                }
            };
            let Publication { topic, id, is_retained, is_duplicate, payload } = message;
            self.duplicates += u64::from(is_duplicate);
            self.retained += u64::from(is_retained);
            let is_wanted = self.wanted.retained || !is_retained;
            if is_wanted {
                let is_long = is_cut || payload.len() > self.wanted.longest;
                let read = if is_long { Err(TOO_LONG) } else { self.reader.read(topic, payload) };
                match read {
                    Ok(made) => {
                        self.taken += 1;
                        cx.set_time(self.came_ns.saturating_sub(cx.start_ns()), Some(self.came_ns));
                        self.out.push(cx, made)?;
                    }
                    Err(reason) => {
                        cx.lose(1, MESSAGES, reason);
                        name_loss(&mut self.named, topic, payload, reason, cx);
                    }
                }
            }
            // Also of what is lost: it would come again, and again be lost.
            id.into_iter().for_each(|id| self.client.acknowledge(id));
            if is_wanted {
                return Ok(true);
            }
        }
    }

    /// Handles the answer to our SUBSCRIBE.
    fn granted(&self, id: u16, codes: &[u8], cx: &mut Context) -> Result<(), Error> {
        let topics = &self.wanted.topics;
        if id != SUBSCRIPTION {
            return Err(self.client.odd("an answer to a SUBSCRIBE that was never sent"));
        }
        if codes.len() != topics.len() {
            return Err(self.client.odd("an answer to SUBSCRIBE with another number of topics"));
        }
        for (topic, code) in topics.iter().zip(codes) {
            match *code {
                NOT_SUBSCRIBED => return Err(not_subscribed(topic, &self.client.setup)),
                code if code > self.wanted.qos => {
                    return Err(self.client.odd("an unknown quality of a subscription"));
                }
                code if code < self.wanted.qos => {
                    let broker = &self.client.setup.broker;
                    cx.note(format!("{broker} grants QoS {code} for `{}`", shown(topic)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Number of messages that have arrived and that nobody takes any more. Those that the broker sends again
    /// to the same session are left out.
    fn count_unread(&mut self) -> u64 {
        let keeps = !self.client.setup.clean_session;
        let (mut unread, mut looked) = (0, 0);
        while looked < LOOKED_THROUGH {
            let is_empty = match self.client.next() {
                Ok(Some(MqttArrival::Message(message, _))) => {
                    let is_wanted = self.wanted.retained || !message.is_retained;
                    unread += u64::from(is_wanted && !(keeps && message.id.is_some()));
                    looked += message.payload.len();
                    false
                }
                Ok(Some(_)) => false,
                Ok(None) => true,
                Err(_) => break,
            };
            looked += 1;
            if is_empty && !self.client.fill().unwrap_or(false) {
                break;
            }
        }
        unread
    }
}

/// Notes the topic of a lost message, of the first topics.
fn name_loss(named: &mut Vec<String>, topic: &str, payload: &[u8], reason: &str, cx: &mut Context) {
    /// Bytes of a payload that are shown.
    const SHOWN: usize = 60;
    if named.len() == NAMED || named.iter().any(|name| name == topic) {
        return;
    }
    let payload = payload[..payload.len().min(SHOWN)].escape_ascii();
    cx.note(format!("`{}`: a message was lost: {reason}; it begins with `{payload}`", shown(topic)));
    named.push(topic.to_string());
}

impl<R: ReadPayload> Operator for MqttSource<R> {
    fn ports(&mut self, p: &mut Ports) {
        p.output("out", &mut self.out);
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.client.start(cx)
    }

    fn restart(&mut self, _: &mut Context) -> Result<(), Error> {
        self.client.restart()
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        match self.client.open(cx)? {
            ClientOpening::Wait(step) => return Ok(step),
            ClientOpening::GivenUp => return Ok(Step::Done),
            ClientOpening::New => self.subscribe(cx),
            ClientOpening::Open => {}
        }
        if self.take_next(cx)? {
            return Ok(Step::Again);
        }
        if self.client.flush()? && self.client.fill()? {
            self.came_ns = cx.now_ns();
            return Ok(Step::Again);
        }
        self.client.wait(u64::MAX, cx)
    }

    fn finished(&mut self) {
        let unread = self.count_unread();
        self.end = Some((real_ns(), unread));
        self.client.leave();
    }

    fn stop(&mut self, cx: &mut Context, _: Ending) -> Result<(), Error> {
        // Without a leave in `finished`, the run has failed.
        self.client.hang_up();
        let now_ns = real_ns();
        let stopped_ns = cx.stopped_for_ns().map(|stopped_for_ns| now_ns.saturating_sub(stopped_for_ns));
        // One that ended earlier was not wanted any more.
        if let (Some((end_ns, unread)), Some(stopped_ns)) = (self.end, stopped_ns)
            && end_ns >= stopped_ns
        {
            cx.lose(unread, MESSAGES, UNREAD);
        }
        let Self { taken, retained, duplicates, .. } = self;
        if *retained > 0 {
            let what = if self.wanted.retained { "were among the" } else { "were left out beside" };
            cx.note(format!(
                "{retained} retained messages, kept by the broker from before, {what} {taken} messages"
            ));
        }
        if *duplicates > 0 {
            cx.note(format!("{duplicates} messages may have come before: the broker sent them again"));
        }
        Ok(())
    }
}
