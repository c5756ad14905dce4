//! How long a worker looks for something to do before it sleeps.

use super::NEVER;
use crate::units::Seconds;
use onbeat_os::{Parker, Unparked};

/// How a worker waits for something to do.
///
/// In text it is `park`, `spin`, or `spin:` and a time:
///
/// ```
/// use onbeat_runtime::Idle;
/// assert_eq!("spin:20us".parse(), Ok(Idle::SpinFor(20_000)));
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
}

impl Idle {
    /// Waits on a thread of its own until `up`, or until the run's clock comes to `alarm_ns` (`u64::MAX` for never).
    pub fn wait(self, parker: &Parker, alarm_ns: u64, up: impl Fn() -> bool, now_ns: impl Fn() -> u64) {
        self.spin(alarm_ns, &up, &now_ns);
        while !up() {
            if alarm_ns == NEVER {
                parker.park();
            } else if now_ns() >= alarm_ns || parker.park_until(alarm_ns) == Unparked::TimedOut {
                return;
            }
        }
    }

    /// The part of the wait that keeps the core busy. Says whether `up` came true in it, or the time is over.
    pub fn spin(self, alarm_ns: u64, up: impl Fn() -> bool, now_ns: impl Fn() -> u64) -> bool {
        let spin_ns = match self {
            Idle::Park => return up(),
            Idle::SpinFor(spin_ns) => spin_ns,
            Idle::Spin => NEVER,
        };
        let end_ns = now_ns().saturating_add(spin_ns).min(alarm_ns);
        let mut turns = 0u32;
        while !up() {
            turns = turns.wrapping_add(1);
            // A look at the clock costs more than a look at the inbox.
            if turns.is_multiple_of(8) && now_ns() >= end_ns {
                return end_ns == alarm_ns;
            }
            std::hint::spin_loop();
        }
        true
    }
}

impl std::str::FromStr for Idle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "park" => Ok(Idle::Park),
            None if text == "spin" => Ok(Idle::Spin),
            Some(("spin", time)) => match time.parse::<Seconds>().ok().and_then(Seconds::as_ns) {
                Some(ns) if ns > 0 => Ok(Idle::SpinFor(ns)),
                _ => Err(format!("`{time}` is no time to spin for: write `spin:20us`")),
            },
            _ => Err(format!("`{text}` is no way to idle: it is `park`, `spin`, or `spin:20us`")),
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
            Idle::SpinFor(ns) if ns.is_multiple_of(1000) => write!(f, "spin:{}us", ns / 1000),
            Idle::SpinFor(ns) => write!(f, "spin:{ns}ns"),
        }
    }
}
