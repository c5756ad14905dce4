//! What travels on an edge, and what travels beside it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A value that can travel on an edge.
///
/// Numbers, text, tuples, `Vec`, `Option`, `Arc` and [`Chunk`](crate::Chunk) are messages. A type of one's
/// own becomes one by an empty implementation:
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
    /// For chunks: bytes of one sample. Chunks come from the chunk store of their edge and obey its quantum.
    #[doc(hidden)]
    const SAMPLE_BYTES: Option<usize> = None;

    /// Bytes of samples that this message brings along in a chunk.
    #[doc(hidden)]
    #[inline(always)]
    fn chunk_bytes(&self) -> usize {
        0
    }

    /// Another worker sent it just now: asks for what is read of it first and lies elsewhere, of samples no
    /// more than `bytes`. A hint.
    #[doc(hidden)]
    #[inline(always)]
    fn fetch(&self, bytes: usize) {
        let _ = bytes;
    }

    /// Whether [`from_value`](Message::from_value) makes a message of it, if chunks are left.
    #[doc(hidden)]
    fn takes_value(value: &Value) -> bool {
        let _ = value;
        false
    }

    /// The message that a file means by `initial = value`. For chunks: so many samples of 0, at most
    /// `quantum` bytes.
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

/// Messages that a value of a file can stand for.
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

/// The name of a message type as people write it: without the paths of its modules.
pub(crate) fn type_label<T: ?Sized>() -> String {
    let full = std::any::type_name::<T>();
    let mut label = String::with_capacity(full.len());
    for part in full.split_inclusive(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        label.push_str(part.rsplit("::").next().unwrap_or(part));
    }
    label
}

/// When and where a message began. It is set by the source and handed on by the engine: what an operator
/// pushes carries the stamp of the message that it popped last; where it popped from several ports in the
/// same step, the oldest of those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Source time in nanoseconds since the source's first sample. Ordered fan-in goes by it. 0 for sources
    /// without a rate.
    pub time_ns: u64,
    /// See [`Stamp::due_ns`]; [`NO_DUE`] where nobody looked.
    pub(crate) due_ns: u64,
    /// From the top: 1 bit that says that user keys go with it ([`KEYED`]), 1 that says that messages of
    /// several sources went into it ([`JOINED`]), 14 bits of source, 1 that says that the turn of another
    /// worker follows ([`LAST`]), 47 of message count.
    pub(crate) origin: u64,
}

/// In [`Stamp::due_ns`]: nobody looked.
pub(crate) const NO_DUE: u64 = u64::MAX;

impl Default for Stamp {
    fn default() -> Self {
        Stamp { time_ns: 0, due_ns: NO_DUE, origin: 0 }
    }
}

impl Stamp {
    /// When the source was to send it, on the run's clock. `None` where nothing sets a time: of a
    /// free-running source only samples are followed.
    pub fn due_ns(&self) -> Option<u64> {
        (self.due_ns != NO_DUE).then_some(self.due_ns)
    }

    /// The stamp of something that is made of two messages: the earlier source time with its origin, and the
    /// earlier due time of those that are known.
    #[must_use]
    pub fn older(self, other: Stamp) -> Stamp {
        let key = |stamp: &Stamp| (stamp.time_ns, stamp.sequence());
        let older = if key(&other) < key(&self) { other } else { self };
        let joined =
            if self.source() == other.source() { (self.origin | other.origin) & JOINED } else { JOINED };
        Stamp { due_ns: self.due_ns.min(other.due_ns), origin: older.origin | joined, ..older }
    }

    /// Messages that this source had sent before.
    pub fn sequence(&self) -> u64 {
        self.origin & SEQUENCE_MASK
    }

    pub(crate) fn source(self) -> usize {
        ((self.origin & !(KEYED | JOINED)) >> 48) as usize
    }

    /// Whether messages of several sources went into it.
    pub(crate) fn is_joined(self) -> bool {
        self.origin & JOINED != 0
    }
}

/// In [`Stamp::origin`] within a queue: the message's user keys lie with the edge.
pub(crate) const KEYED: u64 = 1 << 63;

/// In [`Stamp::origin`]: messages of several sources went into it, and this is the oldest of their stamps.
pub(crate) const JOINED: u64 = 1 << 62;

/// In [`Stamp::origin`]: the last one of a worker's turn at a source that goes from worker to worker. Behind
/// it the sink has the next one's.
pub(crate) const LAST: u64 = 1 << 47;

pub(crate) const SEQUENCE_MASK: u64 = (1 << 47) - 1;

/// A value in a tag or among the user keys of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Text(Arc<str>),
}

impl Value {
    /// Reads it as a parameter of a file is read: a number, a word, or a quantity with a unit. `name` is for
    /// the error.
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
    /// When it is of another type, or no such quantity.
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

/// The user keys of a message: a small dictionary that travels with it and is inherited like its stamp.
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
