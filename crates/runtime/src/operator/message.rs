//! Messages, and the stamps and user keys that are stored next to them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A type whose values can be sent over an edge.
///
/// Numbers, text, tuples, `Vec`, `Option`, `Arc` and [`Chunk`](crate::Chunk) are messages. Any other type
/// needs an empty implementation:
///
/// ```
/// use onbeat_runtime::Message;
/// #[derive(Clone)]
/// struct Detection { frequency_hz: f64, level_db: f32 }
/// impl Message for Detection {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel on an edge",
    note = "a message is `Clone + Send + 'static` and says so: `impl onbeat::Message for {Self} {{}}`"
)]
pub trait Message: Clone + Send + 'static {
    /// Bytes of one sample; `None` if the message is not a chunk. Chunks come from the chunk store of their
    /// edge and obey its quantum.
    #[doc(hidden)]
    const SAMPLE_BYTES: Option<usize> = None;

    /// Returns the bytes of samples in this chunk; 0 for other messages.
    #[doc(hidden)]
    #[inline(always)]
    fn chunk_bytes(&self) -> usize {
        0
    }

    /// Returns the place of a chunk in its stream; `None` for other messages.
    #[doc(hidden)]
    #[inline]
    fn span(&self) -> Option<(u64, usize, f64)> {
        None
    }

    /// Returns the chunk as one of bytes; `None` for other messages.
    #[doc(hidden)]
    fn into_bytes(self) -> Option<crate::Chunk<u8>> {
        None
    }

    /// Returns the chunk that [`into_bytes`](Message::into_bytes) made one of bytes.
    #[doc(hidden)]
    fn from_bytes(chunk: crate::Chunk<u8>) -> Option<Self> {
        let _ = chunk;
        None
    }

    /// Prefetches the data behind a message that another worker has just sent: the chunk's head, and at most
    /// `bytes` of its samples. A hint.
    #[doc(hidden)]
    #[inline(always)]
    fn fetch(&self, bytes: usize) {
        let _ = bytes;
    }

    /// Whether [`from_value`](Message::from_value) can make a message of this value, provided that chunks are
    /// left.
    #[doc(hidden)]
    fn takes_value(value: &Value) -> bool {
        let _ = value;
        false
    }

    /// Makes the message for `initial = value` in a file. For chunks, the value is a number of samples of 0,
    /// at most `quantum` bytes.
    #[doc(hidden)]
    fn from_value(value: &Value, cx: &mut crate::Context, quantum: u32) -> Option<Self> {
        let _ = (value, cx, quantum);
        None
    }
}

macro_rules! plain_messages {
    ($($type:ty),*) => { $(impl Message for $type {})* };
}
plain_messages!((), char, u128, i128, &'static str, num_complex::Complex<f32>, num_complex::Complex<f64>);

/// Messages that a value in a file can stand for.
macro_rules! value_messages {
    ($($type:ty: $($pattern:pat => $made:expr),+;)*) => { $(impl Message for $type {
        fn takes_value(value: &Value) -> bool {
            Self::from_constant(value).is_some()
        }
        fn from_value(value: &Value, _: &mut crate::Context, _: u32) -> Option<Self> {
            Self::from_constant(value)
        }
    }
    impl FromValue for $type {
        fn from_constant(value: &Value) -> Option<Self> {
            match value { $($pattern => $made,)+ _ => None }
        }
    })* };
}

trait FromValue: Sized {
    fn from_constant(value: &Value) -> Option<Self>;
}

value_messages! {
    bool: Value::Bool(value) => Some(*value);
    u8: Value::Int(value) => (*value).try_into().ok();
    i8: Value::Int(value) => (*value).try_into().ok();
    u16: Value::Int(value) => (*value).try_into().ok();
    i16: Value::Int(value) => (*value).try_into().ok();
    u32: Value::Int(value) => (*value).try_into().ok();
    i32: Value::Int(value) => (*value).try_into().ok();
    u64: Value::Int(value) => (*value).try_into().ok();
    i64: Value::Int(value) => Some(*value);
    usize: Value::Int(value) => (*value).try_into().ok();
    isize: Value::Int(value) => (*value).try_into().ok();
    f32: Value::Float(value) => Some(*value as f32), Value::Int(value) => Some(*value as f32);
    f64: Value::Float(value) => Some(*value), Value::Int(value) => Some(*value as f64);
    String: Value::Text(value) => Some(value.to_string());
}
impl<A: Message, B: Message> Message for (A, B) {}
impl<A: Message, B: Message, C: Message> Message for (A, B, C) {}
impl<A: Message, B: Message, C: Message, D: Message> Message for (A, B, C, D) {}
impl<T: Message> Message for Vec<T> {}
impl<T: Message> Message for Box<T> {}
impl<T: Message> Message for Option<T> {}
impl<T: Clone + Send + 'static, const N: usize> Message for [T; N] {}
impl<T: Send + Sync + 'static> Message for Arc<T> {}

/// Returns the name of a type without the paths of its modules.
pub(crate) fn type_label<T: ?Sized>() -> String {
    let full = std::any::type_name::<T>();
    let mut label = String::with_capacity(full.len());
    for part in full.split_inclusive(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        label.push_str(part.rsplit("::").next().unwrap_or(part));
    }
    label
}

/// Origin and times of a message. The source sets it and the engine passes it on: a message that an operator
/// pushes gets the stamp of the message that the operator popped last. If the step popped from several ports,
/// the oldest stamp counts. If the operator is stepped because its inputs have ended, it has no due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Source time: nanoseconds since the source's first sample. Ordered fan-in sorts by it. 0 for sources
    /// without a rate.
    pub time_ns: u64,
    /// See [`Stamp::due_ns`]; [`NO_DUE`] if the message is not measured.
    pub(crate) due_ns: u64,
    /// From the top: 1 bit for user keys ([`KEYED`]), 1 bit for a message joined from several sources
    /// ([`JOINED`]), 14 bits for the source, 1 bit for the last message of a turn ([`LAST`]), 47 bits for the
    /// message count.
    pub(crate) origin: u64,
}

/// In [`Stamp::due_ns`]: the message is not measured.
pub(crate) const NO_DUE: u64 = u64::MAX;

impl Default for Stamp {
    fn default() -> Self {
        Stamp { time_ns: 0, due_ns: NO_DUE, origin: 0 }
    }
}

impl Stamp {
    /// Returns the time at which the source should have sent the message, in nanoseconds on the run's clock.
    /// `None` if it is not measured: of a free-running source only samples of the messages are.
    pub fn due_ns(&self) -> Option<u64> {
        (self.due_ns != NO_DUE).then_some(self.due_ns)
    }

    /// Returns the stamp without its due time.
    ///
    /// An operator that sends something of its own after the end of its input, such as the tail of a filter,
    /// answers no message with it. Its latency would be the time for which the input was silent before it
    /// ended.
    #[must_use]
    pub fn without_due(self) -> Stamp {
        Stamp { due_ns: NO_DUE, ..self }
    }

    /// Returns the stamp for a message made of two: the earlier source time with its origin, and the earlier
    /// of the known due times.
    #[must_use]
    pub fn older(self, other: Stamp) -> Stamp {
        let key = |stamp: &Stamp| (stamp.time_ns, stamp.sequence());
        let older = if key(&other) < key(&self) { other } else { self };
        let joined =
            if self.source() == other.source() { (self.origin | other.origin) & JOINED } else { JOINED };
        Stamp { due_ns: self.due_ns.min(other.due_ns), origin: older.origin | joined, ..older }
    }

    /// Returns the number of messages that the source had sent before this one.
    pub fn sequence(&self) -> u64 {
        self.origin & SEQUENCE_MASK
    }

    pub(crate) fn source(self) -> usize {
        ((self.origin & !(KEYED | JOINED)) >> 48) as usize
    }

    /// Whether the message was made of messages from several sources.
    pub(crate) fn is_joined(self) -> bool {
        self.origin & JOINED != 0
    }
}

/// In [`Stamp::origin`] within a queue: the edge stores user keys for the message.
pub(crate) const KEYED: u64 = 1 << 63;

/// In [`Stamp::origin`]: the message was made of messages from several sources. This is the oldest of their
/// stamps.
pub(crate) const JOINED: u64 = 1 << 62;

/// In [`Stamp::origin`]: the last message of a worker's turn at a migrating source. After it, the sink takes
/// messages of the next worker.
pub(crate) const LAST: u64 = 1 << 47;

pub(crate) const SEQUENCE_MASK: u64 = (1 << 47) - 1;

/// A value in a tag or among the user keys of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Text(Arc<str>),
}

impl Value {
    /// Reads the value like a parameter of a file: a number, a word, or a quantity with a unit. `name` is for
    /// the error text.
    ///
    /// ```
    /// use onbeat_runtime::{Hertz, Value};
    /// let Hertz(shift_hz) = Value::from("-40 kHz").read("shift")?;
    /// assert_eq!(shift_hz, -40e3);
    /// let error = Value::from("much").read::<f64>("gain").unwrap_err();
    /// assert_eq!(error.to_string(), "`gain`: expected a number, found string \"much\"");
    /// # Ok::<(), onbeat_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value has another type, or is not a quantity of this kind.
    pub fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, crate::Error> {
        use serde::de::IntoDeserializer;
        use serde::de::value::Error;
        let found = match self {
            Value::Bool(value) => T::deserialize(IntoDeserializer::<Error>::into_deserializer(*value)),
            Value::Int(value) => T::deserialize(IntoDeserializer::<Error>::into_deserializer(*value)),
            Value::Float(value) => T::deserialize(IntoDeserializer::<Error>::into_deserializer(*value)),
            Value::Text(value) => T::deserialize(IntoDeserializer::<Error>::into_deserializer(&**value)),
        };
        found.map_err(|error| {
            crate::Error::new(format!("`{name}`: {}", crate::base::wording::plain(&error.to_string()).0))
        })
    }
}

impl serde::Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Text(value) => serializer.serialize_str(value),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Text(value) => f.write_str(value),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        impl serde::de::Visitor<'_> for ValueVisitor {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a boolean or a string")
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Int(value))
            }
            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
                let too_large = || E::custom(format!("the number {value} is too large"));
                i64::try_from(value).map(Value::Int).map_err(|_| too_large())
            }
            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(Value::Float(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(Value::Text(value.into()))
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}

macro_rules! value_from {
    ($($variant:ident: $($type:ty),*);*) => { $($(impl From<$type> for Value {
        fn from(value: $type) -> Self { Value::$variant(value.into()) }
    })*)* };
}
value_from!(Bool: bool; Int: i64, i32, u32; Float: f64, f32; Text: &str, String, Arc<str>);

/// User keys of a message: a small map that is passed on like the stamp.
pub type Keys = BTreeMap<Arc<str>, Value>;

#[cfg(test)]
mod tests {
    #[test]
    fn labels_are_short() {
        assert_eq!(super::type_label::<u64>(), "u64");
        assert_eq!(super::type_label::<Option<std::sync::Arc<Vec<f32>>>>(), "Option<Arc<Vec<f32>>>");
        assert_eq!(super::type_label::<(u8, num_complex::Complex<f32>)>(), "(u8, Complex<f32>)");
    }
}
