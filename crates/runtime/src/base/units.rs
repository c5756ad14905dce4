//! Quantities with units as in files: `"40 kHz"`, `"50ms"`, `"16KiB"`, or a plain number in the base unit.

use crate::base::wording::quoted;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $noun:literal, $base:literal, [$(($unit:literal, $factor:expr)),* $(,)?]) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
        pub struct $name(pub f64);

        impl $name {
            const UNITS: &'static [(&'static str, f64)] = &[$(($unit, $factor)),*];
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                parse(text, $noun, $base, Self::UNITS).map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                show(self.0, $base, Self::UNITS, f)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct QuantityVisitor;
                impl de::Visitor<'_> for QuantityVisitor {
                    type Value = f64;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "{} such as {}", $noun, example(Self::Value::default(), $name::UNITS))
                    }
                    fn visit_f64<E: de::Error>(self, value: f64) -> Result<f64, E> {
                        finite(value, $noun).map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, value: i64) -> Result<f64, E> {
                        Ok(value as f64)
                    }
                    fn visit_u64<E: de::Error>(self, value: u64) -> Result<f64, E> {
                        Ok(value as f64)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<f64, E> {
                        parse(text, $noun, $base, $name::UNITS).map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(QuantityVisitor).map($name)
            }
        }

        /// A plain number in the base unit.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_f64(self.0)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": ["number", "string"], "format": $noun, "x-unit": $base })
            }
        }
    };
}

quantity!(
    /// A frequency or rate, in hertz (samples per second). In text: `"40 kHz"`, `"2.4 MS/s"` or `40e3`.
    Hertz, "frequency", "Hz",
    [("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9), ("S/s", 1.0), ("kS/s", 1e3), ("MS/s", 1e6)]
);
quantity!(
    /// A length of time, in seconds. In text: `"50 ms"`, `"20us"`, `"2 min"` or `0.05`.
    Seconds, "time", "s",
    [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9), ("min", 60.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)]
);
quantity!(
    /// An amount of memory, in bytes. In text: `"16 KiB"`, `"1 MB"` or `16384`.
    Bytes, "size", "B",
    [("B", 1.0), ("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)]
);
quantity!(
    /// A ratio of powers, in decibels. In text: `"-6 dB"` or `-6`.
    Decibels, "level", "dB",
    [("dB", 1.0)]
);

/// The period of something that repeats, in seconds. In text: a time such as `"20 ms"`, or a rate such as
/// `"50 Hz"`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize)]
pub struct Period(pub Seconds);

impl std::str::FromStr for Period {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        let Some(number) = lower.strip_suffix("hz") else { return text.parse().map(Period) };
        let (number, factor) = match number.as_bytes().last() {
            Some(b'k') => (&number[..number.len() - 1], 1e3),
            Some(b'm') => (&number[..number.len() - 1], 1e6),
            _ => (number, 1.0),
        };
        let rate = parse(number, "frequency", "Hz", Hertz::UNITS)? * factor;
        if rate > 0.0 {
            Ok(Period(Seconds(1.0 / rate)))
        } else {
            Err(format!("{} is not a rate: it must be above 0", quoted(text)))
        }
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a time such as \"20 ms\", or a rate such as \"50 Hz\"")]
        enum Either {
            Text(String),
            Number(f64),
        }
        match Either::deserialize(deserializer)? {
            Either::Text(text) => text.parse().map_err(de::Error::custom),
            Either::Number(seconds) => {
                finite(seconds, "time").map(|it| Period(Seconds(it))).map_err(de::Error::custom)
            }
        }
    }
}

impl JsonSchema for Period {
    fn schema_name() -> Cow<'static, str> {
        Seconds::schema_name()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Seconds::json_schema(generator)
    }
}

impl Seconds {
    /// Returns the time in whole nanoseconds, or `None` if it is negative or above 584 years.
    pub fn as_ns(self) -> Option<u64> {
        let ns = (self.0 * 1e9).round();
        (0.0..u64::MAX as f64).contains(&ns).then_some(ns as u64)
    }
}

impl Bytes {
    /// Returns the number of bytes, or `None` if it is negative, not a whole number or too large.
    pub fn as_usize(self) -> Option<usize> {
        (self.0.fract() == 0.0 && (0.0..9e15).contains(&self.0)).then_some(self.0 as usize)
    }
}

fn parse(text: &str, noun: &str, base: &str, units: &[(&str, f64)]) -> Result<f64, String> {
    let text = text.trim();
    if let Some(at) = second_number(text).filter(|_| noun == "time") {
        // 5h30m
        let (first, rest) = text.split_at(at);
        return Ok(parse(first, noun, base, units)? + parse(rest, noun, base, units)?);
    }
    let end = text.find(|c: char| c.is_alphabetic() && !matches!(c, 'e' | 'E')).unwrap_or(text.len());
    let (number, unit) = (text[..end].trim(), text[end..].trim());
    let known = || units.iter().map(|(unit, _)| *unit).collect::<Vec<_>>().join(", ");
    let value: f64 = number.replace('_', "").parse().map_err(|_| {
        format!(
            "{} is not a {noun}: write a number and a unit, such as `{}`",
            quoted(text),
            example(0.0, units)
        )
    })?;
    let factor = match unit {
        "" => 1.0,
        unit => {
            units
                .iter()
                .find(|(known, _)| *known == unit)
                .ok_or_else(|| {
                    let (unit, text) = (quoted(unit), quoted(text));
                    format!(
                        "{unit} in {text} is not a unit of {noun}: use {} (without a unit: {base})",
                        known()
                    )
                })?
                .1
        }
    };
    // A division if that is exact: 50 * 1e-3 is not 0.05.
    finite(if factor < 1.0 { value / (1.0 / factor).round() } else { value * factor }, noun)
}

/// Where a second number begins, after the unit of the first one.
fn second_number(text: &str) -> Option<usize> {
    let unit = text.find(|c: char| c.is_alphabetic() && !matches!(c, 'e' | 'E'))?;
    text[unit..].find(|c: char| c.is_ascii_digit()).map(|at| unit + at)
}

fn finite(value: f64, noun: &str) -> Result<f64, String> {
    if value.is_finite() { Ok(value) } else { Err(format!("{value} is not a {noun}: it must be finite")) }
}

fn example(_: f64, units: &[(&str, f64)]) -> String {
    format!("\"20 {}\"", units.get(1).or(units.first()).map_or("", |(unit, _)| unit))
}

/// Writes the value with the largest unit that leaves at least 1 before the point and adds no digits.
fn show(value: f64, base: &str, units: &[(&str, f64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let fits = |factor: f64| value.abs() >= factor && (value / factor * 1e6).fract() == 0.0;
    // Of equal units the first: `kHz` before `kS/s`.
    let best = units.iter().rev().filter(|(_, factor)| fits(*factor)).max_by(|a, b| a.1.total_cmp(&b.1));
    match best {
        Some((unit, factor)) => write!(f, "{} {unit}", value / factor),
        None => write!(f, "{value} {base}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_and_without_units() {
        for (text, hz) in
            [("40 kHz", 40e3), ("-40kHz", -40e3), ("256 kS/s", 256e3), ("1e3", 1e3), ("2.5e2 Hz", 250.0)]
        {
            assert_eq!(text.parse(), Ok(Hertz(hz)), "{text}");
        }
        for (text, s) in [
            ("50ms", 0.05),
            ("50 us", 50e-6),
            ("50µs", 50e-6),
            ("2 min", 120.0),
            ("30s", 30.0),
            ("5h30m", 19800.0),
            ("1 min 2.5 s", 62.5),
        ] {
            assert_eq!(text.parse(), Ok(Seconds(s)), "{text}");
        }
        assert_eq!("16KiB".parse(), Ok(Bytes(16384.0)));
        assert_eq!(Seconds(0.05).as_ns(), Some(50_000_000));
    }

    #[test]
    fn periods_may_be_rates() {
        for (text, ns) in [
            ("20 ms", 20_000_000),
            ("50 Hz", 20_000_000),
            ("60hz", 16_666_667),
            ("2.5 kHz", 400_000),
            ("1e6 Hz", 1000),
        ] {
            assert_eq!(text.parse::<Period>().unwrap().0.as_ns(), Some(ns), "{text}");
        }
        for text in ["0 Hz", "-1 Hz", "Hz", "kHz", "1 MHzz", "20 mss", "nan Hz"] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }

    #[test]
    fn wrong_quantities_are_named() {
        let error = "40 kHZ".parse::<Hertz>().unwrap_err();
        assert!(error.contains("`kHZ`") && error.contains("kHz"), "{error}");
        assert!("5h30x".parse::<Seconds>().unwrap_err().contains("`x`"));
        assert!("5kHz3Hz".parse::<Hertz>().is_err());
        assert!("".parse::<Seconds>().unwrap_err().contains("number and a unit"));
        assert!("1e999 Hz".parse::<Hertz>().unwrap_err().contains("finite"));
        assert!("nan".parse::<Hertz>().is_err());
        assert_eq!(Seconds(-1.0).as_ns(), None);
        assert_eq!(Bytes(0.5).as_usize(), None);
    }

    #[test]
    fn quantities_are_shown_with_a_fitting_unit() {
        assert_eq!(Hertz(40e3).to_string(), "40 kHz");
        assert_eq!(Seconds(0.0).to_string(), "0 s");
        assert_eq!(Bytes(16384.0).to_string(), "16 KiB");
    }
}
