//! The time that a run goes by.

use crate::base::options::Options;
use onbeat_trace::record::ClockKind;

/// The run's clock.
pub(crate) enum RunClock {
    /// CLOCK_MONOTONIC.
    Real(onbeat_os::tsc::Clock),
    /// Runs faster or slower from a common point on.
    Scaled { clock: onbeat_os::tsc::Clock, origin_ns: u64, scale: f64 },
    /// Moves only when nothing can be done before the next alarm.
    Manual(u64),
}

impl RunClock {
    /// The run's: `origin_ns`, on the real clock, is the same for all of its parts.
    pub fn new(options: &Options, origin_ns: u64) -> Self {
        match options.clock {
            ClockKind::Manual => RunClock::Manual(0),
            ClockKind::Real if options.scale == 1.0 => RunClock::Real(onbeat_os::tsc::Clock::new()),
            ClockKind::Real => {
                RunClock::Scaled { clock: onbeat_os::tsc::Clock::new(), origin_ns, scale: options.scale }
            }
        }
    }

    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        match self {
            RunClock::Real(clock) => clock.now_ns(),
            _ => self.other_ns(),
        }
    }

    #[inline(never)]
    fn other_ns(&self) -> u64 {
        match self {
            RunClock::Real(clock) => clock.now_ns(),
            RunClock::Manual(now_ns) => *now_ns,
            RunClock::Scaled { clock, origin_ns, scale } => {
                origin_ns + (clock.now_ns().saturating_sub(*origin_ns) as f64 * scale) as u64
            }
        }
    }

    /// The time on this clock that is a real time ago; now where time is virtual.
    pub fn ago(&self, real_ns: u64) -> u64 {
        match self {
            RunClock::Real(clock) => clock.now_ns().saturating_sub(real_ns),
            RunClock::Scaled { scale, .. } => self.now_ns().saturating_sub((real_ns as f64 * scale) as u64),
            RunClock::Manual(now_ns) => *now_ns,
        }
    }

    #[inline]
    pub fn is_real(&self) -> bool {
        !matches!(self, RunClock::Manual(_))
    }

    /// When the real clock, by which threads wait, comes to a time on this one; that time itself where it is
    /// virtual.
    pub fn to_real(&self, time_ns: u64) -> u64 {
        match self {
            RunClock::Scaled { origin_ns, scale, .. } => {
                // Rounded up: who wakes before the time would only look and sleep again.
                let real_ns = (time_ns.saturating_sub(*origin_ns) as f64 / scale).ceil();
                origin_ns.saturating_add(real_ns as u64)
            }
            RunClock::Real(_) | RunClock::Manual(_) => time_ns,
        }
    }

    /// The real time at a present time on this clock.
    #[inline]
    pub fn real_at(&self, now_ns: u64) -> u64 {
        match self {
            RunClock::Real(_) => now_ns,
            RunClock::Scaled { .. } => self.to_real(now_ns),
            RunClock::Manual(_) => self.real_ns(),
        }
    }

    /// When this clock comes to a real time; `None` where time is virtual.
    pub fn of_real(&self, real_ns: u64) -> Option<u64> {
        match self {
            RunClock::Real(_) => Some(real_ns),
            RunClock::Scaled { origin_ns, scale, .. } => {
                let since_ns = (real_ns.saturating_sub(*origin_ns) as f64 * scale) as u64;
                Some(origin_ns.saturating_add(since_ns))
            }
            RunClock::Manual(_) => None,
        }
    }

    /// The real time, whatever the run goes by.
    pub fn real_ns(&self) -> u64 {
        match self {
            RunClock::Real(clock) | RunClock::Scaled { clock, .. } => clock.now_ns(),
            RunClock::Manual(_) => onbeat_os::clock::monotonic_ns(),
        }
    }

    /// What a real one is read from.
    pub fn source(&self) -> Option<String> {
        match self {
            RunClock::Real(clock) | RunClock::Scaled { clock, .. } => Some(clock.source().to_string()),
            RunClock::Manual(_) => None,
        }
    }
}
