//! Messages as payloads, and the other way round.

use crate::check::shown;
use onbeat_runtime::{Error, Message};
use serde_json::Value;
use std::io::Write;

/// How messages are made of payloads.
pub trait ReadPayload: Send + 'static {
    /// The messages.
    type Made: Message;

    /// Makes a message.
    ///
    /// # Errors
    /// Why it cannot be one.
    fn read(&self, topic: &str, payload: &[u8]) -> Result<Self::Made, &'static str>;
}

/// How payloads are made of messages.
pub trait WritePayload: Send + 'static {
    /// The messages.
    type Taken: Message;

    /// Appends a payload.
    ///
    /// # Errors
    /// Why there is none.
    fn write(&self, message: &Self::Taken, to: &mut Vec<u8>) -> Result<(), &'static str>;
}

/// Payloads as text, as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinePayload {
    /// Whether the topic and a space come before the payload.
    pub has_topic: bool,
}

impl ReadPayload for LinePayload {
    type Made = String;

    fn read(&self, topic: &str, payload: &[u8]) -> Result<String, &'static str> {
        let text = std::str::from_utf8(payload).map_err(|_| "the payload is not UTF-8")?;
        Ok(if self.has_topic { format!("{topic} {text}") } else { text.to_string() })
    }
}

impl WritePayload for LinePayload {
    type Taken = String;

    fn write(&self, message: &String, to: &mut Vec<u8>) -> Result<(), &'static str> {
        to.extend_from_slice(message.as_bytes());
        Ok(())
    }
}

/// Payloads as numbers: decimal, or in a field of JSON.
#[derive(Debug, Clone, Default)]
pub struct NumberPayload {
    /// Names of the field and of the objects around it, the outermost first. Empty for a payload that is the
    /// number itself.
    path: Vec<String>,
    /// JSON before and after the number.
    before: String,
    after: String,
}

impl NumberPayload {
    /// The number in a field, such as `wind.speed`; without one, the payload is the number.
    ///
    /// # Errors
    /// If a name in it is empty, or it is too long.
    pub fn new(field: Option<&str>) -> Result<Self, Error> {
        /// Most bytes, so that objects within each other stay readable.
        const MOST: usize = 200;
        let Some(field) = field else { return Ok(NumberPayload::default()) };
        let path: Vec<String> = field.split('.').map(str::to_string).collect();
        if field.len() > MOST || path.iter().any(String::is_empty) {
            return Err(Error::new(format!(
                "`field` is `{}`: it must be the name of a field, or names with dots between them, such as \
                 `wind.speed`, of at most {MOST} bytes",
                shown(field)
            )));
        }
        let key = |name: &String| format!("{{{}:", Value::from(name.as_str()));
        let (before, after) = (path.iter().map(key).collect(), "}".repeat(path.len()));
        Ok(NumberPayload { path, before, after })
    }
}

impl ReadPayload for NumberPayload {
    type Made = f64;

    fn read(&self, _: &str, payload: &[u8]) -> Result<f64, &'static str> {
        const NO_NUMBER: &str = "the payload is not a finite number";
        let number = |text: &str| text.trim().parse().ok().filter(|value: &f64| value.is_finite());
        if self.path.is_empty() {
            return std::str::from_utf8(payload).ok().and_then(number).ok_or(NO_NUMBER);
        }
        let all: Value = serde_json::from_slice(payload).map_err(|_| "the payload is not JSON")?;
        let inner = self.path.iter().try_fold(&all, |value, name| match value {
            Value::Object(fields) => fields.get(name),
            Value::Array(items) => name.parse().ok().and_then(|index: usize| items.get(index)),
            _ => None,
        });
        let found = match inner {
            Some(Value::String(text)) => number(text),
            Some(value) => value.as_f64().filter(|value| value.is_finite()),
            None => None,
        };
        found.ok_or("the payload has no finite number at `field`")
    }
}

impl WritePayload for NumberPayload {
    type Taken = f64;

    fn write(&self, message: &f64, to: &mut Vec<u8>) -> Result<(), &'static str> {
        if !message.is_finite() {
            return Err("not finite: neither JSON nor most receivers have such numbers");
        }
        // A vector takes all.
        let _infallible = write!(to, "{}{message}{}", self.before, self.after);
        Ok(())
    }
}
