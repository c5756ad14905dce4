//! Frames: what the two ends of a link send each other.
//!
//! ```text
//! | head length, 4 bytes | body length, 4 bytes | head | body |
//! ```
//!
//! Lengths have the low byte first. The head is a [`Head`] in postcard's format. Only messages have a body:
//! samples as they are in memory, or a value in postcard's format.

use onbeat_runtime::Value;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};

/// Version of the protocol. Both ends of a link must have the same.
pub const PROTOCOL: u16 = 3;

/// Bytes of the two lengths.
pub const PREFIX: usize = 8;

/// Most bytes of a head: tags and user keys are in it.
pub const HEAD_LIMIT: usize = 64 << 10;

/// What a frame is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Head {
    /// First frame of a connection, from either end.
    Hello(LinkHello),
    /// Answer to a [`LinkHello`] that does not fit.
    Refused(LinkRefusal),
    /// A message, with its body.
    Message(MessageHead),
    /// The consumer has taken all messages below this number; with `true`, the end as well.
    Taken(u64, bool),
    /// A store of the producer, whose file comes along: its messages can be lent from now on.
    Store {
        /// Number of the store in the producer's process.
        store: u64,
        /// Number of its chunks.
        chunks: u32,
        /// Bytes of each chunk.
        chunk_bytes: u32,
    },
    /// The producer believes that the consumer has these chunks: said after a cut.
    Lent(Vec<LentPlace>),
    /// The consumer needs these chunks no more.
    Back(Vec<LentPlace>),
    /// The producer has ended; the number of its messages.
    End(u64),
    /// This end gives up.
    Closed(Outcome),
    /// A question for the other end's time.
    Probe {
        /// When it was sent.
        asked_ns: u64,
    },
    /// The answer to a [`Head::Probe`].
    Answer {
        /// From the probe.
        asked_ns: u64,
        /// When the probe came.
        came_ns: u64,
        /// When the answer was sent.
        answered_ns: u64,
    },
}

/// What an end of a link says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkHello {
    /// [`PROTOCOL`].
    pub protocol: u16,
    /// Version of onbeat.
    pub version: String,
    /// Name of the link.
    pub link: String,
    /// Host name and process.
    pub node: String,
    /// Which end it is.
    pub role: LinkRole,
    /// Whether the connection carries messages. Otherwise it carries signs of life and times.
    pub is_data: bool,
    /// Number of this run of the operator.
    pub instance: u64,
    /// Number that the two connections of a session share.
    pub session: u64,
    /// Type of the messages.
    pub message: String,
    /// Where the end stands.
    pub place: Place,
}

/// The two ends of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkRole {
    /// `link.sink`, which sends.
    Producer,
    /// `link.source`, which receives.
    Consumer,
}

impl LinkRole {
    /// The operator's kind.
    pub fn kind(self) -> &'static str {
        match self {
            LinkRole::Producer => "link.sink",
            LinkRole::Consumer => "link.source",
        }
    }
}

/// Where an end stands when a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Place {
    /// The producer's first message that may be sent again; the consumer's next one.
    pub next: u64,
    /// Of a consumer: the instance of the producer whose messages it counts, if it has heard of one.
    pub of: Option<u64>,
    /// Most messages that the end lets be in flight. The smaller number of both ends holds.
    pub window: u32,
}

/// Why a connection was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRefusal {
    /// The reason.
    pub why: String,
    /// Whether another try may succeed.
    pub may_retry: bool,
}

/// How an end of a link ended before the stream did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It needs no more.
    Done,
    /// Its run was stopped.
    Stopped,
    /// Its run failed.
    Failed,
}

/// Head of a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageHead {
    /// Number of the message on the link.
    pub sequence: u64,
    /// Number of the message among those of its source, in the producer's run.
    pub origin: u64,
    /// When it was sent, on the producer's `CLOCK_MONOTONIC`.
    pub sent_ns: u64,
    /// Source time.
    pub time_ns: u64,
    /// When the message was due at its source, on the producer's `CLOCK_MONOTONIC`.
    pub due_ns: Option<u64>,
    /// User keys.
    pub keys: Vec<(String, Constant)>,
    /// Head of a chunk.
    pub chunk: Option<ChunkHead>,
    /// Where the samples are, and their bytes, if they are not in the body.
    pub lent: Option<(LentPlace, u32)>,
}

/// A chunk in a store of the producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LentPlace {
    /// Number of the store.
    pub store: u64,
    /// Number of the chunk.
    pub chunk: u32,
}

/// Head of a chunk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChunkHead {
    /// Index of the first sample.
    pub start: u64,
    /// Samples per second.
    pub rate_hz: f64,
    /// Rows, columns and planes.
    pub shape: [u32; 3],
    /// Marks on samples: index, key, value.
    pub tags: Vec<(u64, String, Constant)>,
}

/// A [`Value`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Constant {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Text(String),
}

impl From<&Value> for Constant {
    fn from(value: &Value) -> Self {
        match value {
            Value::Bool(value) => Constant::Bool(*value),
            Value::Int(value) => Constant::Int(*value),
            Value::Float(value) => Constant::Float(*value),
            Value::Text(value) => Constant::Text(value.to_string()),
        }
    }
}

impl From<Constant> for Value {
    fn from(value: Constant) -> Self {
        match value {
            Constant::Bool(value) => Value::Bool(value),
            Constant::Int(value) => Value::Int(value),
            Constant::Float(value) => Value::Float(value),
            Constant::Text(value) => Value::Text(value.into()),
        }
    }
}

/// Appends the lengths and the head of a frame. The body has `body` bytes and comes after it.
pub fn write_head(bytes: &mut Vec<u8>, head: &Head, body: usize) -> Result<(), FrameError> {
    let begin = bytes.len();
    bytes.extend_from_slice(&[0; PREFIX]);
    let taken = std::mem::take(bytes);
    *bytes = postcard::to_extend(head, taken).map_err(|_| FrameError::Malformed)?;
    let length = bytes.len() - begin - PREFIX;
    if length > HEAD_LIMIT {
        bytes.truncate(begin);
        return Err(FrameError::Head(length as u64));
    }
    let body = u32::try_from(body).map_err(|_| FrameError::Body(body as u64, u64::from(u32::MAX)))?;
    bytes[begin..begin + 4].copy_from_slice(&(length as u32).to_le_bytes());
    bytes[begin + 4..begin + 8].copy_from_slice(&body.to_le_bytes());
    Ok(())
}

/// Reason why a frame is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The head is longer than [`HEAD_LIMIT`].
    Head(u64),
    /// The body is longer than the limit.
    Body(u64, u64),
    /// The head cannot be read: the other end does not speak this protocol.
    Malformed,
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FrameError::Head(length) => {
                write!(
                    f,
                    "the head of a frame has {length} bytes, the limit is {HEAD_LIMIT}: send fewer tags or keys"
                )
            }
            FrameError::Body(length, limit) => {
                write!(f, "the body of a frame has {length} bytes, the limit is {limit}")
            }
            FrameError::Malformed => f.write_str("what came is not a frame of a link"),
        }
    }
}

impl From<FrameError> for io::Error {
    fn from(error: FrameError) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error.to_string())
    }
}

/// Cuts a stream of bytes into frames.
#[derive(Debug)]
pub struct FrameReader {
    bytes: Box<[u8]>,
    begin: usize,
    end: usize,
}

impl FrameReader {
    /// Makes a reader with room for `extra` bytes beyond one head.
    pub fn new(extra: usize) -> Self {
        FrameReader { bytes: vec![0; PREFIX + HEAD_LIMIT + extra].into(), begin: 0, end: 0 }
    }

    /// Reads what has come, once. Returns the number of bytes; 0 at the end of the stream.
    pub fn fill(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        } else if self.end == self.bytes.len() {
            self.bytes.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
        let count = stream.read(&mut self.bytes[self.end..])?;
        self.end += count;
        Ok(count)
    }

    /// Takes the next head, and the length of the body after it, which is at most `limit`. `None` if it has
    /// not come whole.
    pub fn head(&mut self, limit: usize) -> Result<Option<(Head, usize)>, FrameError> {
        let have = &self.bytes[self.begin..self.end];
        let Some((prefix, rest)) = have.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let [a, b, c, d, body @ ..] = *prefix;
        let (length, body) = (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes(body) as usize);
        if length > HEAD_LIMIT {
            return Err(FrameError::Head(length as u64));
        }
        if body > limit {
            return Err(FrameError::Body(body as u64, limit as u64));
        }
        let Some(bytes) = rest.get(..length) else { return Ok(None) };
        let head: Head = postcard::from_bytes(bytes).map_err(|_| FrameError::Malformed)?;
        if body > 0 && !matches!(head, Head::Message(_)) {
            return Err(FrameError::Body(body as u64, 0));
        }
        self.begin += PREFIX + length;
        Ok(Some((head, body)))
    }

    /// Drops what has come.
    pub fn clear(&mut self) {
        (self.begin, self.end) = (0, 0);
    }

    /// Takes bytes of a body. Returns their number.
    pub fn take(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.end - self.begin);
        into[..count].copy_from_slice(&self.bytes[self.begin..self.begin + count]);
        self.begin += count;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_survive_any_cut(numbers in prop::collection::vec(any::<u64>(), 1..20), cut in 1..40usize) {
            let mut bytes = Vec::new();
            for number in &numbers {
                let message = MessageHead { sequence: *number, ..MessageHead::default() };
                write_head(&mut bytes, &Head::Message(message), 3).unwrap();
                bytes.extend_from_slice(b"abc");
            }
            let (mut reader, mut found, mut body) = (FrameReader::new(0), Vec::new(), None);
            for mut part in bytes.chunks(cut) {
                while !part.is_empty() {
                    reader.fill(&mut part).unwrap();
                }
                loop {
                    if body.is_none() {
                        body = reader.head(3).unwrap();
                    }
                    let Some((Head::Message(head), length)) = &body else { break };
                    if reader.end - reader.begin < *length { break }
                    let mut into = [0; 3];
                    prop_assert_eq!(reader.take(&mut into), 3);
                    prop_assert_eq!(&into, b"abc");
                    found.push(head.sequence);
                    body = None;
                }
            }
            prop_assert_eq!(found, numbers);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = FrameReader::new(0);
            reader.fill(&mut &*bytes).unwrap();
            while let Ok(Some(_)) = reader.head(64) {}
        }
    }

    #[test]
    fn lengths_have_limits() {
        let mut reader = FrameReader::new(0);
        reader.fill(&mut &[0xff_u8; 8][..]).unwrap();
        assert_eq!(reader.head(10), Err(FrameError::Head(u64::from(u32::MAX))));
        let mut reader = FrameReader::new(0);
        reader.fill(&mut &[1, 0, 0, 0, 11, 0, 0, 0][..]).unwrap();
        assert_eq!(reader.head(10), Err(FrameError::Body(11, 10)));
    }
}
