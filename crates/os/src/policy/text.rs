//! Policies as text: parsing, formatting, and errors.

use std::fmt;
use std::str::FromStr;

use super::Policy;

/// Minimum run time that the kernel accepts.
const RUNTIME_LEAST_NS: u64 = 1024;

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Policy::Other(nice) => write!(f, "o:{nice}"),
            Policy::Fifo(priority) => write!(f, "f:{priority}"),
            Policy::RoundRobin(priority) => write!(f, "r:{priority}"),
            Policy::Deadline { runtime_ns, deadline_ns, period_ns } => {
                write!(f, "d:{}", Time(runtime_ns))?;
                if deadline_ns != period_ns {
                    write!(f, ":{}", Time(deadline_ns))?;
                }
                write!(f, ":{}", Time(period_ns))
            }
        }
    }
}

/// Formats a time in the largest unit in which it is a whole number.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")];
        let (ns, unit) = units.into_iter().find(|(ns, _)| self.0.is_multiple_of(*ns)).unwrap_or((1, "ns"));
        write!(f, "{}{unit}", self.0 / ns)
    }
}

/// Why a text is not a policy, and the correct form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError(String);

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PolicyError {}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let wrong = |why: String| PolicyError(format!("policy `{}`: {why}", text.escape_debug()));
        let (letter, rest) = text.split_once(':').ok_or_else(|| {
            wrong("write it as `o:0`, `f:80`, `r:50` or `d:RUNTIME[:DEADLINE]:PERIOD`".to_owned())
        })?;
        let priority = || match whole(rest).and_then(|number| u8::try_from(number).ok()) {
            Some(priority @ 1..=99) => Ok(priority),
            _ => Err(wrong(format!(
                "`{}` is not a priority: write a whole number from 1 to 98",
                rest.escape_debug()
            ))),
        };
        match letter.to_ascii_lowercase().as_str() {
            "o" => {
                let (number, sign) = rest.strip_prefix('-').map_or((rest, 1), |rest| (rest, -1));
                match whole(number).and_then(|number| i64::try_from(number).ok()) {
                    Some(nice) if (-20..=19).contains(&(sign * nice)) => {
                        Ok(Policy::Other((sign * nice) as i8))
                    }
                    _ => Err(wrong(format!(
                        "`{}` is not a niceness: write a whole number from -20 to 19",
                        rest.escape_debug()
                    ))),
                }
            }
            "f" => priority().map(Policy::Fifo),
            "r" => priority().map(Policy::RoundRobin),
            "d" => deadline(rest).map_err(wrong),
            _ => Err(wrong(
                "the letter must be `o` (other), `f` (FIFO), `r` (round robin) or `d` (DEADLINE)".to_owned(),
            )),
        }
    }
}

fn deadline(text: &str) -> Result<Policy, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (runtime, deadline, period) = match parts[..] {
        [runtime, period] => (runtime, period, period),
        [runtime, deadline, period] => (runtime, deadline, period),
        _ => {
            return Err(
                "write `d:RUNTIME:PERIOD` or `d:RUNTIME:DEADLINE:PERIOD`, as in d:2ms:16ms".to_owned()
            );
        }
    };
    let (runtime_ns, deadline_ns, period_ns) = (time_ns(runtime)?, time_ns(deadline)?, time_ns(period)?);
    if runtime_ns > deadline_ns || deadline_ns > period_ns {
        let mut sorted = [runtime_ns, deadline_ns, period_ns];
        sorted.sort_unstable();
        let [runtime_ns, deadline_ns, period_ns] = sorted;
        let right = Policy::Deadline { runtime_ns, deadline_ns, period_ns };
        return Err(format!(
            "the run time must be at most the deadline, and the deadline at most the period; in this order: {right}"
        ));
    }
    if runtime_ns < RUNTIME_LEAST_NS {
        return Err(format!(
            "a run time of {runtime_ns} ns is below the kernel's minimum of {RUNTIME_LEAST_NS} ns: raise it"
        ));
    }
    Ok(Policy::Deadline { runtime_ns, deadline_ns, period_ns })
}

fn whole(text: &str) -> Option<u64> {
    // `parse` alone would also accept a plus sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn time_ns(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let ns = match &text[digits.len()..] {
        "ns" | "" => 1,
        "us" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => 0,
    };
    // The kernel's numbers have 63 bits.
    match whole(digits).and_then(|number| number.checked_mul(ns)) {
        Some(time @ 1..=0x7fff_ffff_ffff_ffff) => Ok(time),
        _ => Err(format!(
            "`{}` is not a time: write a whole number and a unit, as in 1666us; units are ns, us, ms, s",
            text.escape_debug()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn policies_are_read_and_written() {
        for (text, canonical) in [
            ("o:0", "o:0"),
            ("o:-20", "o:-20"),
            ("o:19", "o:19"),
            ("f:80", "f:80"),
            ("r:1", "r:1"),
            ("d:1666us:15833us:16666us", "d:1666us:15833us:16666us"),
            ("d:2000us:16ms:16ms", "d:2ms:16ms"),
            ("d:2000000:1s", "d:2ms:1s"),
        ] {
            assert_eq!(text.parse::<Policy>().map(|policy| policy.to_string()), Ok(canonical.to_owned()));
        }
    }

    #[test]
    fn what_is_no_policy_says_how_to_write_it() {
        for (text, message) in [
            ("", "policy ``: write it as `o:0`, `f:80`"),
            ("fifo", "policy `fifo`: write it as"),
            ("x:80", "the letter must be `o` (other), `f` (FIFO)"),
            ("f:0", "`0` is not a priority: write a whole number from 1 to 98"),
            ("f:100", "`100` is not a priority"),
            ("r:+5", "`+5` is not a priority"),
            ("o:20", "`20` is not a niceness: write a whole number from -20 to 19"),
            ("o:--1", "`--1` is not a niceness"),
            ("d:5ms", "write `d:RUNTIME:PERIOD`"),
            ("d:5 ms:6ms", "`5 ms` is not a time: write a whole number and a unit"),
            ("d:5ms:6min", "`6min` is not a time"),
            ("d:0:1ms", "`0` is not a time"),
            ("d:99999999999s:99999999999s", "is not a time"),
            ("d:500ns:1ms", "a run time of 500 ns is below the kernel's minimum of 1024 ns: raise it"),
            (
                "d:16ms:2ms:1ms",
                "at most the deadline, and the deadline at most the period; in this order: d:1ms:2ms:16ms",
            ),
        ] {
            let error = text.parse::<Policy>().unwrap_err().to_string();
            assert!(error.contains(message), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_reads_as_the_same(runtime in 1024_u64..1 << 40, more in 0_u64..1 << 40, rest in 0_u64..1 << 40) {
            let (deadline_ns, period_ns) = (runtime + more, runtime + more + rest);
            let policy = Policy::Deadline { runtime_ns: runtime, deadline_ns, period_ns };
            prop_assert_eq!(policy.to_string().parse::<Policy>(), Ok(policy));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[ofrd]?[:0-9a-z\\- ]{0,20}") {
            if let Ok(policy) = text.parse::<Policy>() {
                prop_assert_eq!(policy.to_string().parse::<Policy>(), Ok(policy));
            }
        }
    }
}
