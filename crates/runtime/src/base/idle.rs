//! How a worker waits for something to do: the setting.

use crate::base::units::Seconds;

/// How a worker waits for something to do.
///
/// In text it is `park`, `spin`, `spin:` and a time, or `early:` and a time:
///
/// ```
/// use onbeat_runtime::Idle;
/// assert_eq!("spin:20us".parse(), Ok(Idle::SpinFor(20_000)));
/// assert_eq!("early:150us".parse(), Ok(Idle::Early(150_000)));
/// assert_eq!(Idle::Park.to_string(), "park");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Idle {
    /// It gives its core away until it is woken: 10 to 50 µs later on most machines.
    #[default]
    Park,
    /// It looks all the time: nothing is faster, and its core does nothing else.
    Spin,
    /// It looks for so many nanoseconds, then parks.
    SpinFor(u64),
    /// It parks, and is up so many nanoseconds before the time at which the next source is due, to look from then on: how late the
    /// kernel wakes it does not show, as long as it is not later than that. A message that comes meanwhile wakes it as one that parks.
    Early(u64),
}

/// Longest that one who looks does so before it tells the others that it has nothing to do.
const MAX_POLL_NS: u64 = 20_000;

impl Idle {
    /// How long a worker with nothing to do listens before it lies down, in nanoseconds: to bring one back that lies costs some hundred
    /// nanoseconds, and it is found out where everything stands still only when all lie.
    pub(crate) fn polls_ns(self) -> u64 {
        match self {
            Idle::Park | Idle::Early(_) => 0,
            Idle::Spin => MAX_POLL_NS,
            // The rest of it is spent while it lies.
            Idle::SpinFor(spin_ns) => spin_ns.min(MAX_POLL_NS),
        }
    }

    /// What is left of it after so many nanoseconds of looking.
    #[must_use]
    pub(crate) fn after(self, spent_ns: u64) -> Self {
        match self {
            Idle::SpinFor(spin_ns) if spin_ns > spent_ns => Idle::SpinFor(spin_ns - spent_ns),
            Idle::SpinFor(_) => Idle::Park,
            other => other,
        }
    }
}

impl std::str::FromStr for Idle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = |time: &str| time.parse::<Seconds>().ok().and_then(Seconds::as_ns).filter(|ns| *ns > 0);
        match text.split_once(':') {
            None if text == "park" => Ok(Idle::Park),
            None if text == "spin" => Ok(Idle::Spin),
            Some(("spin", word)) => time(word)
                .map(Idle::SpinFor)
                .ok_or_else(|| format!("`{word}` is no time to spin for: write `spin:20us`")),
            Some(("early", word)) => time(word)
                .map(Idle::Early)
                .ok_or_else(|| format!("`{word}` is no time to be early by: write `early:150us`")),
            _ => Err(format!(
                "`{text}` is no way to idle: it is `park`, `spin`, `spin:20us`, or `early:150us`"
            )),
        }
    }
}

impl serde::Serialize for Idle {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Idle {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl std::fmt::Display for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Idle::Park => f.write_str("park"),
            Idle::Spin => f.write_str("spin"),
            Idle::SpinFor(ns) => write!(f, "spin:{}", time(*ns)),
            Idle::Early(ns) => write!(f, "early:{}", time(*ns)),
        }
    }
}

fn time(ns: u64) -> String {
    if ns.is_multiple_of(1000) { format!("{}us", ns / 1000) } else { format!("{ns}ns") }
}
