//! Packets of MQTT 3.1.1, as far as a client sends and receives them.
//!
//! A packet is a byte with its type and flags, the length of the rest in 1 to 4 bytes (7 bits each, the low
//! ones first, the high bit says that one more follows), and the rest. Numbers have the high byte first;
//! texts have their length in 2 bytes before them.

use super::setup::MqttWill;

/// Bytes of a packet that may come before a payload: type, length, topic, identifier.
pub(super) const LONGEST_HEAD: usize = 5 + 2 + LONGEST_TEXT + 2;
/// Longest text in bytes.
pub(super) const LONGEST_TEXT: usize = 65_535;
/// Largest length that a packet can say.
const LONGEST_REST: usize = 268_435_455;

// Types of packets, in the high half of their first byte.
const CONNECT: u8 = 1;
const CONNACK: u8 = 2;
const PUBLISH: u8 = 3;
const PUBACK: u8 = 4;
const SUBSCRIBE: u8 = 8;
const SUBACK: u8 = 9;
const PINGREQ: u8 = 12;
const PINGRESP: u8 = 13;
const DISCONNECT: u8 = 14;

/// First byte of an answer to CONNECT.
pub(super) const CONNACK_BYTE: u8 = CONNACK << 4;
/// The bit of a PUBLISH that says that it may have come before.
pub(super) const DUPLICATE: u8 = 0b1000;
const RETAIN: u8 = 0b0001;

/// A packet of a broker.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BrokerPacket<'a> {
    /// Answer to CONNECT: whether the broker has kept a session, and 0, or why it refuses.
    ConnAck { has_session: bool, code: u8 },
    /// A message.
    Publish(Publication<'a>),
    /// A message of ours has arrived.
    PubAck(u16),
    /// Answer to SUBSCRIBE: its identifier, and a quality for each topic, or 128.
    SubAck(u16, &'a [u8]),
    /// Answer to PINGREQ.
    PingResp,
}

/// A message of a broker.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Publication<'a> {
    pub topic: &'a str,
    /// Identifier, of a message that has to be acknowledged.
    pub id: Option<u16>,
    /// Whether it was kept for new subscribers.
    pub is_retained: bool,
    /// Whether it may have come before.
    pub is_duplicate: bool,
    pub payload: &'a [u8],
}

/// Why bytes are not a packet, for "the broker sent ...".
pub(super) type Malformed = &'static str;

/// Reads the type and length of a packet: the bytes before the rest, and the bytes of the rest. `None` if
/// more bytes are needed.
pub(super) fn frame(bytes: &[u8]) -> Result<Option<(usize, usize)>, Malformed> {
    /// Most bytes of a length.
    const LENGTH: usize = 4;
    let mut rest = 0;
    for (index, byte) in bytes.iter().skip(1).enumerate().take(LENGTH) {
        rest |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((index + 2, rest)));
        }
    }
    if bytes.len() > LENGTH { Err("a length of more than 4 bytes") } else { Ok(None) }
}

/// Whether a packet with this first byte answers a PINGREQ.
pub(super) fn is_sign_of_life(first: u8) -> bool {
    first >> 4 == PINGRESP
}

/// Whether a packet with this first byte answers a SUBSCRIBE.
pub(super) fn is_grant(first: u8) -> bool {
    first >> 4 == SUBACK
}

/// Whether a packet with this first byte is a message.
pub(super) fn is_publish(first: u8) -> bool {
    first >> 4 == PUBLISH
}

/// Reads a packet by its first byte and its rest.
pub(super) fn read(first: u8, rest: &[u8]) -> Result<BrokerPacket<'_>, Malformed> {
    if !is_publish(first) && first & 0x0f != 0 {
        return Err("a packet whose reserved bits are not 0");
    }
    match (first >> 4, rest) {
        (CONNACK, &[flags @ 0..=1, code]) => Ok(BrokerPacket::ConnAck { has_session: flags == 1, code }),
        (PUBLISH, _) => read_publish(first, rest).map(BrokerPacket::Publish),
        (PUBACK, &[high, low]) => Ok(BrokerPacket::PubAck(u16::from_be_bytes([high, low]))),
        (SUBACK, [high, low, codes @ ..]) if !codes.is_empty() => {
            Ok(BrokerPacket::SubAck(u16::from_be_bytes([*high, *low]), codes))
        }
        (PINGRESP, []) => Ok(BrokerPacket::PingResp),
        (CONNACK | PUBACK | SUBACK | PINGRESP, _) => Err("an answer of the wrong length"),
        _ => Err("a packet of a type that brokers do not send to such a client"),
    }
}

fn read_publish(first: u8, rest: &[u8]) -> Result<Publication<'_>, Malformed> {
    const CUT: Malformed = "a message that ends within its topic or identifier";
    let (length, rest) = rest.split_first_chunk().ok_or(CUT)?;
    let (topic, mut rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length))).ok_or(CUT)?;
    let topic = std::str::from_utf8(topic).map_err(|_| "a topic that is not UTF-8")?;
    if topic.is_empty() || topic.contains(['\0', '+', '#']) {
        return Err("a topic that is empty or has a zero, `+` or `#`");
    }
    let id = match (first >> 1) & 0b11 {
        0 => None,
        1 => {
            let (id, payload) = rest.split_first_chunk::<2>().ok_or(CUT)?;
            rest = payload;
            if *id == [0, 0] {
                return Err("a message with QoS 1 and the identifier 0");
            }
            Some(u16::from_be_bytes(*id))
        }
        2 => return Err("a message with QoS 2, which no subscription here asks for"),
        _ => return Err("a message with QoS 3, which MQTT does not have"),
    };
    let (is_retained, is_duplicate) = (first & RETAIN != 0, first & DUPLICATE != 0);
    Ok(Publication { topic, id, is_retained, is_duplicate, payload: rest })
}

/// What a client says first.
pub(super) struct Greeting<'a> {
    pub client_id: &'a str,
    pub clean_session: bool,
    pub keep_alive_s: u16,
    pub user: Option<&'a str>,
    pub password: Option<&'a [u8]>,
    pub will: Option<&'a MqttWill>,
}

impl Greeting<'_> {
    /// Appends a CONNECT. The texts have at most [`LONGEST_TEXT`] bytes.
    pub fn write(&self, to: &mut Vec<u8>) {
        let Self { client_id, will, user, password, .. } = self;
        let will_bytes = will.map_or(0, |will| 4 + will.topic.len() + will.payload.len());
        let more = user.map_or(0, |user| 2 + user.len()) + password.map_or(0, |password| 2 + password.len());
        begin(CONNECT << 4, 10 + 2 + client_id.len() + will_bytes + more, to);
        let will_flags = will.map_or(0, |will| 4 | will.qos << 3 | u8::from(will.is_retained) << 5);
        let flags = u8::from(self.clean_session) << 1
            | will_flags
            | u8::from(password.is_some()) << 6
            | u8::from(user.is_some()) << 7;
        put(b"MQTT", to);
        // Protocol level 4 is MQTT 3.1.1.
        to.extend_from_slice(&[4, flags]);
        to.extend_from_slice(&self.keep_alive_s.to_be_bytes());
        put(client_id.as_bytes(), to);
        if let Some(will) = will {
            put(will.topic.as_bytes(), to);
            put(will.payload.as_bytes(), to);
        }
        user.iter().for_each(|user| put(user.as_bytes(), to));
        password.iter().for_each(|password| put(password, to));
    }
}

/// Appends type and length of a packet.
fn begin(first: u8, rest: usize, to: &mut Vec<u8>) {
    to.push(first);
    let mut left = rest;
    loop {
        let more = if left > 0x7f { 0x80 } else { 0 };
        to.push((left & 0x7f) as u8 | more);
        left >>= 7;
        if left == 0 {
            return;
        }
    }
}

/// Appends a text of at most [`LONGEST_TEXT`] bytes, and its length.
fn put(text: &[u8], to: &mut Vec<u8>) {
    to.extend_from_slice(&(text.len() as u16).to_be_bytes());
    to.extend_from_slice(text);
}

/// Appends a SUBSCRIBE for topics, all with one quality.
pub(super) fn write_subscribe(id: u16, topics: &[String], qos: u8, to: &mut Vec<u8>) {
    let bytes: usize = topics.iter().map(|topic| 2 + topic.len() + 1).sum();
    begin(SUBSCRIBE << 4 | 0b0010, 2 + bytes, to);
    to.extend_from_slice(&id.to_be_bytes());
    for topic in topics {
        put(topic.as_bytes(), to);
        to.push(qos);
    }
}

/// Appends a PUBLISH, with an identifier for QoS 1.
///
/// # Errors
/// If no packet can be that long.
pub(super) fn write_publish(
    topic: &str,
    id: Option<u16>,
    retain: bool,
    payload: &[u8],
    to: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let rest = 2 + topic.len() + id.map_or(0, |_| 2) + payload.len();
    if rest > LONGEST_REST {
        return Err("longer than 256 MiB, the most that MQTT can transmit");
    }
    begin(PUBLISH << 4 | u8::from(id.is_some()) << 1 | u8::from(retain), rest, to);
    put(topic.as_bytes(), to);
    id.iter().for_each(|id| to.extend_from_slice(&id.to_be_bytes()));
    to.extend_from_slice(payload);
    Ok(())
}

/// Appends a PUBACK.
pub(super) fn write_puback(id: u16, to: &mut Vec<u8>) {
    to.extend_from_slice(&[PUBACK << 4, 2]);
    to.extend_from_slice(&id.to_be_bytes());
}

/// Appends a PINGREQ.
pub(super) fn write_ping(to: &mut Vec<u8>) {
    to.extend_from_slice(&[PINGREQ << 4, 0]);
}

/// Appends a DISCONNECT.
pub(super) fn write_disconnect(to: &mut Vec<u8>) {
    to.extend_from_slice(&[DISCONNECT << 4, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_those_of_the_specification() {
        // Table 2.4 of MQTT 3.1.1.
        for (rest, bytes) in [
            (0, &[0][..]),
            (127, &[0x7f]),
            (128, &[0x80, 0x01]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x80, 0x80, 0x01]),
            (2_097_151, &[0xff, 0xff, 0x7f]),
            (2_097_152, &[0x80, 0x80, 0x80, 0x01]),
            (LONGEST_REST, &[0xff, 0xff, 0xff, 0x7f]),
        ] {
            let mut packet = Vec::new();
            begin(0x30, rest, &mut packet);
            assert_eq!(packet[1..], *bytes);
            assert_eq!(frame(&packet), Ok(Some((packet.len(), rest))));
            assert_eq!(frame(&packet[..packet.len() - 1]), Ok(None));
        }
        assert!(frame(&[0x30, 0xff, 0xff, 0xff, 0xff]).is_err());
    }

    #[test]
    fn a_greeting_is_that_of_the_specification() {
        let mut packet = Vec::new();
        let will = MqttWill { topic: "w".into(), payload: "gone".into(), qos: 1, is_retained: true };
        let (user, password) = (Some("ann"), Some(&b"pw"[..]));
        let all = Greeting {
            client_id: "id",
            clean_session: true,
            keep_alive_s: 10,
            user,
            password,
            will: Some(&will),
        };
        all.write(&mut packet);
        // Figure 3.6 of MQTT 3.1.1: user, password, will retain, will QoS 1, will, clean session.
        assert_eq!(packet, b"\x10\x20\0\x04MQTT\x04\xee\0\x0a\0\x02id\0\x01w\0\x04gone\0\x03ann\0\x02pw");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(first: u8, rest in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = read(first, &rest);
        }

        #[test]
        fn a_message_is_read_as_it_was_written(
            topic in "[a-zé/]{1,20}",
            id in proptest::option::of(1..=u16::MAX),
            is_retained: bool,
            payload in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut packet = Vec::new();
            write_publish(&topic, id, is_retained, &payload, &mut packet).unwrap();
            let (head, rest) = frame(&packet).unwrap().unwrap();
            prop_assert_eq!(head + rest, packet.len());
            let expected = Publication { topic: &topic, id, is_retained, is_duplicate: false, payload: &payload };
            prop_assert_eq!(read(packet[0], &packet[head..]), Ok(BrokerPacket::Publish(expected)));
        }
    }
}
