//! Times in the syntax of rtla, and of pipelines: a number, and a unit unless it is the default one.

use clap::builder::TypedValueParser;
use onbeat::Seconds;
use std::ffi::OsStr;

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
        // rtla takes capital units of durations, too.
        let lower = text.to_ascii_lowercase();
        let is_long = self.usual == "s" && text.ends_with(['S', 'M', 'H', 'D']);
        let text = if is_long { lower.as_str() } else { text };
        let is_bare = text.parse::<f64>().is_ok();
        let whole = if is_bare { format!("{text} {}", self.usual) } else { text.to_string() };
        let is_signed = text.starts_with(['+', '-']);
        let time = whole.parse::<Seconds>().ok().and_then(Seconds::as_ns).filter(|_| !is_signed);
        match time.filter(|ns| (self.least_ns..=MOST_NS).contains(ns)) {
            Some(ns) => Ok(ns),
            None => Err(format!(
                "write a time above 0, at most 50 years, such as 20us, 1.5s, 5m or 2h30m; a number without a unit is in {}",
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
        for (text, ns) in
            [("20", 20_000), ("500ns", 500), ("3 ms", 3_000_000), ("2m", 120_000_000_000), ("1e3", 1_000_000)]
        {
            assert_eq!(TimeParser::micros().read(text), Ok(ns), "{text}");
        }
        assert_eq!(TimeParser::seconds().read("1h"), Ok(3_600_000_000_000));
        assert_eq!(TimeParser::micros().or_none().read("0"), Ok(0));
        for (text, ns) in [("1.5s", 1_500_000_000), ("2 min", 120_000_000_000), ("1h30m", 5_400_000_000_000)]
        {
            assert_eq!(TimeParser::seconds().read(text), Ok(ns), "{text}");
        }
        for text in
            ["", "0", "-5", "five", "9x", "99999999999999999999", "99999999d", "+3", "5 0", ".", "1 2s"]
        {
            assert!(TimeParser::micros().read(text).is_err(), "{text}");
        }
    }
}
