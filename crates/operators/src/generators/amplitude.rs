//! Amplitudes as numbers or in decibels.

use onbeat_runtime::{Decibels, Error};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::borrow::Cow;

/// An amplitude: a plain number in the unit of the samples, or a level in dB of full scale.
///
/// 0 dB is an amplitude of 1, and −20 dB one of 0.1: `20 log10(amplitude)`. In text, `dB` and `dBFS` mean the
/// same: `0.5`, `"-6 dB"` or `"-6 dBFS"`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
pub struct Amplitude(pub f64);

impl Amplitude {
    /// Largest amplitude: its square is a finite `f32`.
    const MOST: f64 = 1e19;

    /// Accepts an amplitude whose samples are finite.
    pub(crate) fn check(self, name: &str) -> Result<(), Error> {
        if self.0.abs() <= Self::MOST {
            return Ok(());
        }
        let (value, most) = (self.0, Self::MOST);
        Err(Error::new(format!("`{name}` is {value}: it must be from -{most:e} to {most:e}")))
    }
}

impl<'de> Deserialize<'de> for Amplitude {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Amplitude;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "an amplitude such as 0.5 or \"-6 dB\"")
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Amplitude, E> {
                Ok(Amplitude(value))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Amplitude, E> {
                Ok(Amplitude(value as f64))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Amplitude, E> {
                Ok(Amplitude(value as f64))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amplitude, E> {
                let text = text.trim();
                match (text.parse(), text.strip_suffix("FS").unwrap_or(text).parse::<Decibels>()) {
                    (Ok(number), _) => Ok(Amplitude(number)),
                    (_, Ok(Decibels(level))) => Ok(Amplitude(10f64.powf(level / 20.0))),
                    (_, Err(error)) => Err(E::custom(error)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Amplitude {
    fn schema_name() -> Cow<'static, str> {
        "Amplitude".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": ["number", "string"], "format": "amplitude" })
    }
}
