//! Bytes of a broker, in pieces of any length, as packets.

use super::packet::{LONGEST_HEAD, Malformed, frame, is_publish};
use std::ops::Range;

/// Bytes per read.
const BLOCK: usize = 16 << 10;

/// Bytes that were received. It holds no more than one packet and one block, whatever lengths the other end
/// claims.
#[derive(Debug, Default)]
pub(super) struct PacketBuffer {
    bytes: Vec<u8>,
    /// The bytes that were not used up.
    used: Range<usize>,
    /// Most bytes of a packet after its head.
    longest: usize,
    /// Bytes still to come of a packet that is too long.
    to_skip: usize,
}

/// A packet in the buffer, until the next bytes are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundPacket {
    pub first: u8,
    rest: Range<usize>,
    /// Whether the end of its payload was left out, because it is too long.
    pub is_cut: bool,
}

impl PacketBuffer {
    /// Makes a buffer for messages of at most this many bytes of payload.
    pub fn new(longest_payload: usize) -> Self {
        PacketBuffer { longest: longest_payload + LONGEST_HEAD, ..PacketBuffer::default() }
    }

    /// Returns the next packet.
    pub fn next(&mut self) -> Result<Option<FoundPacket>, Malformed> {
        let skipped = self.to_skip.min(self.used.len());
        self.used.start += skipped;
        self.to_skip -= skipped;
        let bytes = &self.bytes[self.used.clone()];
        let Some((head, rest)) = frame(bytes)? else { return Ok(None) };
        let (first, at) = (bytes[0], self.used.start);
        if head + rest <= bytes.len() {
            self.used.start += head + rest;
            return Ok(Some(FoundPacket { first, rest: at + head..at + head + rest, is_cut: false }));
        }
        if !is_publish(first) && rest > LONGEST_HEAD {
            return Err("an answer that is longer than any can be");
        }
        if rest <= self.longest || bytes.len() < LONGEST_HEAD {
            return Ok(None);
        }
        self.to_skip = head + rest - bytes.len();
        let found = FoundPacket { first, rest: at + head..self.used.end, is_cut: true };
        self.used.start = self.used.end;
        Ok(Some(found))
    }

    /// The first bytes that were not used up, if there are any.
    pub fn begin(&self) -> Option<&[u8]> {
        const SHOWN: usize = 12;
        let bytes = &self.bytes[self.used.clone()];
        (!bytes.is_empty()).then(|| &bytes[..bytes.len().min(SHOWN)])
    }

    /// The bytes of a packet after its head.
    pub fn rest(&self, packet: &FoundPacket) -> &[u8] {
        &self.bytes[packet.rest.clone()]
    }

    /// Reads more bytes by `read`, which returns how many it has put into its argument.
    pub fn fill<E>(&mut self, read: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<usize, E> {
        self.bytes.copy_within(self.used.clone(), 0);
        self.used = 0..self.used.len();
        let end = self.used.end;
        if self.bytes.len() < end + BLOCK {
            self.bytes.resize(end + BLOCK, 0);
        }
        let count = read(&mut self.bytes[end..])?;
        self.used.end += count;
        Ok(count)
    }

    /// Forgets all bytes, for another connection.
    pub fn clear(&mut self) {
        (self.used, self.to_skip) = (0..0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::{BrokerPacket, read, write_publish};
    use super::*;
    use proptest::prelude::*;

    /// Topics and lengths of payloads of these bytes, cut into pieces; `None` for a payload that is too long.
    fn messages(bytes: &[u8], cuts: &[usize], longest: usize) -> Vec<(String, Option<usize>)> {
        let (mut buffer, mut rest, mut at, mut found) = (PacketBuffer::new(longest), bytes, 0, Vec::new());
        while !rest.is_empty() {
            let put = |into: &mut [u8]| {
                let count = cuts[at % cuts.len()].min(rest.len()).min(into.len());
                into[..count].copy_from_slice(&rest[..count]);
                (rest, at) = (&rest[count..], at + 1);
                Ok::<_, ()>(count)
            };
            buffer.fill(put).unwrap();
            while let Some(packet) = buffer.next().unwrap() {
                let Ok(BrokerPacket::Publish(message)) = read(packet.first, buffer.rest(&packet)) else {
                    panic!("{packet:?}")
                };
                found.push((message.topic.to_string(), (!packet.is_cut).then_some(message.payload.len())));
            }
            assert!(buffer.bytes.len() <= longest + LONGEST_HEAD + 2 * BLOCK, "{}", buffer.bytes.len());
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn packets_do_not_depend_on_the_pieces(
            lengths in proptest::collection::vec(prop_oneof![0..300usize, 60_000..300_000usize], 1..5),
            cuts in proptest::collection::vec(1..20_000usize, 1..5),
        ) {
            let mut bytes = Vec::new();
            for (index, length) in lengths.iter().enumerate() {
                write_publish(&format!("t/{index}"), Some(7), false, &vec![0xa5; *length], &mut bytes).unwrap();
            }
            // What fits the buffer by chance is whole.
            let most = 100_000 + LONGEST_HEAD;
            for (index, (topic, length)) in messages(&bytes, &cuts, 100_000).into_iter().enumerate() {
                prop_assert_eq!(topic, format!("t/{index}"));
                prop_assert!(length == Some(lengths[index]) || length.is_none() && lengths[index] + 7 > most);
            }
            prop_assert_eq!(messages(&bytes, &cuts, 100_000).len(), lengths.len());
        }
    }
}
