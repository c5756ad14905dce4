//! The gain of a tuner as a parameter.

use onbeat_runtime::{Decibels, Error};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Gain of a tuner: `"auto"`, or decibels such as `"30 dB"` or `30`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum TunerGain {
    /// The tuner chooses its gain.
    #[default]
    Auto,
    /// This gain, in decibels.
    Fixed(f64),
}

impl TunerGain {
    /// Returns a fixed gain in tenths of a decibel.
    pub(super) fn tenths(self) -> Option<i32> {
        match self {
            TunerGain::Auto => None,
            TunerGain::Fixed(decibels) => Some((decibels * 10.0).round() as i32),
        }
    }

    pub(super) fn check(self) -> Result<(), Error> {
        match self {
            TunerGain::Auto => Ok(()),
            TunerGain::Fixed(decibels) => {
                crate::check::within("gain", decibels, -100.0, 100.0, "\"auto\" lets the tuner choose")
            }
        }
    }
}

impl FromStr for TunerGain {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "auto" {
            return Ok(TunerGain::Auto);
        }
        text.parse().map(|Decibels(gain)| TunerGain::Fixed(gain))
    }
}

impl<'de> Deserialize<'de> for TunerGain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct GainVisitor;
        impl de::Visitor<'_> for GainVisitor {
            type Value = TunerGain;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"auto\", or a gain such as \"30 dB\"")
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<TunerGain, E> {
                Ok(TunerGain::Fixed(value))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<TunerGain, E> {
                Ok(TunerGain::Fixed(value as f64))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<TunerGain, E> {
                Ok(TunerGain::Fixed(value as f64))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<TunerGain, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(GainVisitor)
    }
}

impl Serialize for TunerGain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            TunerGain::Auto => serializer.serialize_str("auto"),
            TunerGain::Fixed(gain) => serializer.serialize_f64(*gain),
        }
    }
}

impl JsonSchema for TunerGain {
    fn schema_name() -> Cow<'static, str> {
        "TunerGain".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": ["number", "string"], "format": "gain", "x-unit": "dB" })
    }
}
