//! The setting of how a worker waits for work.

use crate::base::units::Seconds;

/// How a worker waits for work. The default is [`Park`](Idle::Park).
///
/// As text: `park`, `spin`, `spin:` with a time, or `early:` with a time.
///
/// ```
/// use onbeat_runtime::Idle;
/// assert_eq!("spin:20us".parse(), Ok(Idle::SpinFor(20_000)));
/// assert_eq!("early:150us".parse(), Ok(Idle::Early(150_000)));
/// assert_eq!(Idle::Park.to_string(), "park");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Idle {
    /// Gives the core away until it is woken. Waking takes 10 to 50 µs on most machines.
    #[default]
    Park,
    /// Polls all the time. This reacts fastest, and the core does nothing else.
    Spin,
    /// Polls for this time in nanoseconds, then parks.
    SpinFor(u64),
    /// Parks, but wakes this time in nanoseconds before the next source is due, and polls from then on. The
    /// kernel's wake-up latency does not show if it is shorter than this time. A message that comes meanwhile
    /// wakes the worker as under [`Park`](Idle::Park).
    Early(u64),
}

/// Longest time for which a spinning worker polls before it counts itself out as idle, in nanoseconds.
const MAX_POLL_NS: u64 = 20_000;

impl Idle {
    /// Time in nanoseconds for which an idle worker polls before it counts itself out of
    /// [quiescence](crate::base::quiescence). Counting it in again costs some hundred nanoseconds. A deadlock
    /// or the end of the run is found only when all workers are out.
    pub(crate) fn polls_ns(self) -> u64 {
        match self {
            Idle::Park | Idle::Early(_) => 0,
            Idle::Spin => MAX_POLL_NS,
            // The worker polls for the rest of the time while it is counted out.
            Idle::SpinFor(spin_ns) => spin_ns.min(MAX_POLL_NS),
        }
    }

    /// Returns the setting that is left after the worker has polled for `spent_ns` nanoseconds.
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
                .ok_or_else(|| format!("`{word}` is not a time to spin for: write `spin:20us`")),
            Some(("early", word)) => time(word)
                .map(Idle::Early)
                .ok_or_else(|| format!("`{word}` is not a time to be early by: write `early:150us`")),
            _ => Err(format!(
                "`{text}` is not an idle setting: write `park`, `spin`, `spin:20us` or `early:150us`"
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
