//! How long a worker looks for something to do before it sleeps.

use super::NEVER;
use crate::units::Seconds;
use onbeat_os::{Parker, Unparked};

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

/// Looks at what others tell between two at the clock: that costs more.
pub(crate) const LOOKS: u32 = 8;

/// Longest that one who looks does so before it tells the others that it has nothing to do.
const LISTENS_NS: u64 = 20_000;

impl Idle {
    /// How long a worker with nothing to do listens before it lies down, in nanoseconds: to bring one back that lies costs some hundred
    /// nanoseconds, and it is found out where everything stands still only when all lie.
    pub(crate) fn listens_ns(self) -> u64 {
        match self {
            Idle::Park | Idle::Early(_) => 0,
            Idle::Spin => LISTENS_NS,
            // The rest of it is spent while it lies.
            Idle::SpinFor(spin_ns) => spin_ns.min(LISTENS_NS),
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

    /// Waits on a thread of its own until `up`, or until the run's clock comes to `alarm_ns` (`u64::MAX` for never).
    pub fn wait(self, parker: &Parker, alarm_ns: u64, up: impl Fn() -> bool, now_ns: impl Fn() -> u64) {
        self.spin(alarm_ns, &up, &now_ns);
        while !up() {
            if alarm_ns == NEVER {
                parker.park();
            } else if self.park_until(parker, alarm_ns, &up, &now_ns) == Unparked::TimedOut {
                return;
            }
        }
    }

    /// The part of the wait that leaves the core to others, until an alarm, and what this way of waiting does shortly before that.
    pub fn park_until(
        self,
        parker: &Parker,
        alarm_ns: u64,
        up: impl Fn() -> bool,
        now_ns: impl Fn() -> u64,
    ) -> Unparked {
        let early_ns = if let Idle::Early(early_ns) = self { early_ns } else { 0 };
        let until_ns = alarm_ns.saturating_sub(early_ns);
        let unparked = if now_ns() >= until_ns { Unparked::TimedOut } else { parker.park_until(until_ns) };
        if unparked == Unparked::TimedOut && early_ns > 0 {
            look(alarm_ns, 1, 1, up, now_ns);
        }
        unparked
    }

    /// The part of the wait that keeps the core busy. Says whether `up` came true in it, or the time is over.
    pub fn spin(self, alarm_ns: u64, up: impl Fn() -> bool, now_ns: impl Fn() -> u64) -> bool {
        let spin_ns = match self {
            Idle::Park | Idle::Early(_) => return up(),
            Idle::SpinFor(spin_ns) => spin_ns,
            Idle::Spin => NEVER,
        };
        let end_ns = now_ns().saturating_add(spin_ns).min(alarm_ns);
        look(end_ns, LOOKS, 1, up, now_ns) || end_ns == alarm_ns
    }
}

/// Looks until `up` or until the time comes, so many pauses of the processor after each other, and at the clock at every so many
/// looks. Says whether `up` came true.
pub(crate) fn look(
    end_ns: u64,
    every: u32,
    pauses: u32,
    mut up: impl FnMut() -> bool,
    now_ns: impl Fn() -> u64,
) -> bool {
    let mut turns = 0u32;
    while !up() {
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(every) && now_ns() >= end_ns {
            return false;
        }
        (0..pauses).for_each(|_| std::hint::spin_loop());
    }
    true
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
