//! Reader for one table of the file, key by key.

use super::error::Fault;
use crate::base::units::{Bytes, Period, Seconds};
use crate::base::wording::{list, near, plain, quoted};
use onbeat_trace::record::InFlightLimit;
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// A table with its name in messages: "an edge", "operator `iq`".
pub(super) struct Section<'a, 'i> {
    pub what: String,
    pub table: &'a DeTable<'i>,
    /// Place of the table's head, for errors about missing keys.
    pub span: Range<usize>,
}

impl<'a, 'i> Section<'a, 'i> {
    /// Opens the table in `value`. All of its keys must be `known`.
    pub fn new(
        what: impl Into<String>,
        value: &'a Spanned<DeValue<'i>>,
        known: &[&str],
    ) -> Result<Self, Fault> {
        let what = what.into();
        let DeValue::Table(table) = value.get_ref() else {
            let found = type_words(value.get_ref());
            return Err(Fault::at(value.span(), format!("{what}: expected a table, found {found}")));
        };
        let section = Section { what, table, span: value.span() };
        section.check_keys(known)?;
        Ok(section)
    }

    pub fn check_keys(&self, known: &[&str]) -> Result<(), Fault> {
        let unknown = self.table.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        match unknown.min_by_key(|key| key.span().start) {
            Some(key) => Err(unknown_key(key, &self.what, known)),
            None => Ok(()),
        }
    }

    pub fn raw(&self, key: &str) -> Option<&'a Spanned<DeValue<'i>>> {
        self.table.get(key)
    }

    /// Reads the value of `key`, if the table has it.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<Spanned<T>>, Fault> {
        let Some(value) = self.raw(key) else { return Ok(None) };
        match T::deserialize(ValueDeserializer::from(value.clone())) {
            Ok(found) => Ok(Some(Spanned::new(value.span(), found))),
            Err(error) => {
                let (message, help) = plain(error.message());
                let span = error.span().unwrap_or(value.span());
                Err(Fault { message: format!("`{key}` of {}: {message}", self.what), span: Some(span), help })
            }
        }
    }

    /// Reads the value of `key`, which must be present.
    pub fn need<T: DeserializeOwned>(&self, key: &str) -> Result<Spanned<T>, Fault> {
        self.get(key)?.ok_or_else(|| Fault::at(self.span.clone(), format!("{} lacks `{key}`", self.what)))
    }

    /// Reads a time above 0, in nanoseconds.
    pub fn time_ns(&self, key: &str) -> Result<Option<u64>, Fault> {
        let time = self.get::<Seconds>(key)?;
        time.map(|time| self.in_range(key, *time.get_ref(), time.span())).transpose()
    }

    /// Reads a number of messages or a time.
    pub fn in_flight(&self, key: &str) -> Result<Option<InFlightLimit>, Fault> {
        #[derive(serde::Deserialize)]
        #[serde(untagged, expecting = "expected a number of messages, or a time such as \"20ms\"")]
        enum Written {
            Messages(i64),
            Fraction(f64),
            Time(Seconds),
        }
        let Some(written) = self.get::<Written>(key)? else { return Ok(None) };
        match *written.get_ref() {
            Written::Messages(messages @ 1..) => Ok(Some(InFlightLimit::Messages(messages.unsigned_abs()))),
            Written::Messages(other) => {
                let message = format!("`{key}` of {}: {other} messages must be 1 or more", self.what);
                Err(Fault::at(written.span(), message).help("a time is written with its unit: \"20ms\""))
            }
            // Other keys take a fraction as seconds. Here half of the readers would take it for messages.
            Written::Fraction(other) => {
                let message = format!("`{key}` of {}: {other} is not a whole number of messages", self.what);
                Err(Fault::at(written.span(), message).help("a time is written with its unit: \"20ms\""))
            }
            Written::Time(time) => {
                self.in_range(key, time, written.span()).map(|ns| Some(InFlightLimit::Time(ns)))
            }
        }
    }

    /// Makes an error for a key that has no meaning without another one.
    pub fn needs(&self, key: &str, other: &str) -> Fault {
        let at = self.raw(key).map_or(self.span.clone(), Spanned::span);
        Fault::at(
            at,
            format!("`{key}` of {} says what happens when `{other}` was missed, and it has none", self.what),
        )
        .help(format!("write {other} = \"10ms\" next to it"))
    }

    /// Reads a time above 0 in nanoseconds, which may also be written as a frequency.
    pub fn period_ns(&self, key: &str) -> Result<Option<u64>, Fault> {
        let time = self.get::<Period>(key)?;
        time.map(|time| self.in_range(key, time.get_ref().0, time.span())).transpose()
    }

    fn in_range(&self, key: &str, time: Seconds, span: Range<usize>) -> Result<u64, Fault> {
        match time.as_ns() {
            Some(ns) if ns > 0 => Ok(ns),
            _ => Err(Fault::at(
                span,
                format!("`{key}` of {}: {time} must be above 0 and below 584 years", self.what),
            )),
        }
    }

    /// Reads a number of bytes above 0.
    pub fn bytes(&self, key: &str) -> Result<Option<usize>, Fault> {
        let Some(size) = self.get::<Bytes>(key)? else { return Ok(None) };
        match size.get_ref().as_usize() {
            Some(bytes) if bytes > 0 => Ok(Some(bytes)),
            _ => Err(Fault::at(
                size.span(),
                format!(
                    "`{key}` of {}: {} must be a whole number of bytes above 0",
                    self.what,
                    size.get_ref()
                ),
            )),
        }
    }

    /// Reads the capacity of an edge, in messages.
    pub fn capacity(&self) -> Result<Option<usize>, Fault> {
        const LIMIT: i64 = 1 << 24;
        let Some(capacity) = self.get::<i64>("capacity")? else { return Ok(None) };
        match *capacity.get_ref() {
            messages @ 1..=LIMIT => Ok(Some(messages as usize)),
            messages => Err(Fault::at(
                capacity.span(),
                format!("`capacity` of {}: {messages} must be 1 to {LIMIT} messages", self.what),
            )),
        }
    }

    /// Reads the tables of `[[key]]`; empty if there are none.
    pub fn tables(&self, key: &str) -> Result<&'a [Spanned<DeValue<'i>>], Fault> {
        match self.raw(key).map(|value| (value, value.get_ref())) {
            None => Ok(&[]),
            Some((_, DeValue::Array(array))) => Ok(array.as_ref()),
            Some((value, found)) => Err(Fault::at(
                value.span(),
                format!("`{key}` of {}: expected tables, found {}", self.what, type_words(found)),
            )
            .help(format!("write [[{key}]] in two brackets: there may be more than one"))),
        }
    }
}

/// Makes an error for an unknown key.
pub(super) fn unknown_key(key: &Spanned<std::borrow::Cow<'_, str>>, what: &str, known: &[&str]) -> Fault {
    let hint = near(key.get_ref(), known.iter().copied());
    let fault = Fault::at(key.span(), format!("unknown key {} in {what}{hint}", quoted(key.get_ref())));
    if known.is_empty() { fault } else { fault.help(format!("its keys are {}", list(known))) }
}

pub(super) fn type_words(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
