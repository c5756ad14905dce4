//! Times in rtla's syntax: a whole number, and a unit unless it is the default one.

use clap::builder::TypedValueParser;
use std::ffi::OsStr;

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Longest time, half a century. The kernel's own 64-bit times end at 292 years.
const MOST_NS: u64 = 50 * 365 * 86_400_000_000_000;

/// Parser of a time into nanoseconds; a number without a unit is in units of `usual`.
#[derive(Debug, Clone, Copy)]
pub struct TimeParser {
    usual: &'static str,
    least_ns: u64,
}

impl TimeParser {
    /// Reads a number without a unit as microseconds.
    pub const fn micros() -> Self {
        TimeParser { usual: "us", least_ns: 1 }
    }

    /// Reads a number without a unit as seconds.
    pub const fn seconds() -> Self {
        TimeParser { usual: "s", least_ns: 1 }
    }

    /// Allows 0, too.
    pub const fn or_none(self) -> Self {
        TimeParser { least_ns: 0, ..self }
    }

    fn read(self, text: &str) -> Result<u64, String> {
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = match text[digits.len()..].trim() {
            "" => self.usual,
            unit => unit,
        };
        let number =
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
        let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let ns = number.zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
        match ns.filter(|ns| (self.least_ns..=MOST_NS).contains(ns)) {
            Some(ns) => Ok(ns),
            None => Err(format!(
                "write a whole number above 0, at most 50 years, with a unit (ns, us, ms, s, m, h, d) unless it is {}",
                self.usual
            )),
        }
    }
}

impl TypedValueParser for TimeParser {
    type Value = u64;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<u64, clap::Error> {
        let time = *self;
        let parse = move |text: &str| time.read(text);
        TypedValueParser::parse_ref(&parse, command, argument, value)
    }
}

#[cfg(test)]
mod tests {
    use super::TimeParser;

    #[test]
    fn times_have_units() {
        for (text, ns) in [("20", 20_000), ("500ns", 500), ("3 ms", 3_000_000), ("2m", 120_000_000_000)] {
            assert_eq!(TimeParser::micros().read(text), Ok(ns), "{text}");
        }
        assert_eq!(TimeParser::seconds().read("1h"), Ok(3_600_000_000_000));
        assert_eq!(TimeParser::micros().or_none().read("0"), Ok(0));
        for text in ["", "0", "-5", "1.5", "five", "9x", "99999999999999999999", "99999999d", "+3", "5 0"] {
            assert!(TimeParser::micros().read(text).is_err(), "{text}");
        }
    }
}
