//! A clock on the kernel's time line that is cheaper to read than the kernel's.
//!
//! If the kernel derives `CLOCK_MONOTONIC` from the processor's time stamp counter (TSC), [`Clock`] reads
//! that counter directly and converts it to nanoseconds with one multiplication; otherwise it asks the
//! kernel. Its times are comparable with those of [`clock`](crate::clock) and of every other [`Clock`],
//! within the bound below.
//!
//! # When the counter is used
//!
//! On x86-64, when `/sys/devices/system/clocksource/clocksource0/current_clocksource` says `tsc`. This check
//! suffices: the kernel has then found the counters of all cores synchronised, watches them, and derives
//! `CLOCK_MONOTONIC` from them. The flags of `cpuid` say less, and a hypervisor may hide them. The check is
//! made once per process, at the first [`Clock::new`], which takes 4 ms longer to measure the counter's rate.
//!
//! # How it follows the kernel
//!
//! NTP lets the kernel's time run up to 500 ppm (parts per million) faster or slower, so no rate is right for
//! long. An *anchor* is a time known on both clocks. A read that finds its anchor older than 4 ms takes a new
//! one, and derives the rate from the two. An anchor is the narrowest of three *sandwiches*: the counter, the
//! kernel's time, the counter. If the narrowest is wider than 0.5 µs (an interrupt hit each of them, or the
//! hypervisor took the core away), it is dropped and the next read tries again. A read that re-anchors
//! returns the kernel's own time. So a thread may sleep or be preempted for any length of time between two
//! reads, or within one; a read is right at some time between its call and its return.
//!
//! # The bound
//!
//! A read is within [`BOUND_NS`] = 5 µs of `CLOCK_MONOTONIC`. By source of error:
//!
//! | error | maximum |
//! |---|---|
//! | anchor: the kernel's time is taken as that of the sandwich's middle: half of 0.5 µs | 0.25 µs |
//! | rate: both its anchors are off by that much, over 4 ms or more, and it is used for 4 ms | 0.5 µs |
//! | NTP changes the kernel's rate after the anchor: from -500 to +500 ppm is 1000 ppm × 4 ms | 4 µs |
//! | holding while an earlier reading is ahead (below) | 0 |
//! | sum | 4.75 µs |
//!
//! Usually a sandwich is 0.1 µs wide and the rate steady, which gives an error below 0.1 µs. The bound
//! assumes the range of NTP. Another `tick` (`adjtimex(2)`; chrony with a large `maxslewrate` sets one)
//! changes the rate by up to 10 %, and the clock is off by up to 0.4 ms until the next anchor. Moving a
//! virtual machine to a host with another counter rate has the same effect. If the rate is off by more than a
//! quarter, the counter is unusable: the clock then uses the kernel's call from there on, and
//! [`Clock::source`] says so.
//!
//! # Order
//!
//! A clock never goes backwards: if a new anchor shows that it was ahead, it holds its last reading until the
//! time has come. Holding costs no accuracy, because the held reading was ahead by at most the bound when it
//! was made, and time has passed since.
//!
//! Two clocks may differ by twice the bound, so a time that one thread reads and passes to another may be
//! ahead of the other's clock: subtract with `saturating_sub`. The counter is also read without a fence: the
//! processor may read it some tens of nanoseconds early or late with respect to the instructions around it,
//! or more if those wait for memory.

mod anchor;
mod counter;
mod line;

use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;

use crate::clock::{monotonic_ns, sleep_until};
use anchor::Anchor;
use line::{Steadiness, TimeLine};

/// Maximum distance of a [`Clock`] from `CLOCK_MONOTONIC`, in nanoseconds, ahead or behind.
///
/// The [module](self) gives the reasons.
pub const BOUND_NS: u64 = 5_000;

/// Time for which an anchor is used, in nanoseconds.
const INTERVAL_NS: u64 = 4_000_000;

/// Widest sandwich that makes an anchor, in nanoseconds.
const WIDEST_NS: u64 = 500;

/// A clock on the time line of `CLOCK_MONOTONIC`; one per thread.
///
/// Reading changes the clock (it remembers its anchor), so threads do not share one:
///
/// ```compile_fail,E0277
/// fn shared(_: impl Sync) {}
/// shared(onbeat_os::tsc::Clock::new());
/// ```
///
/// # Example
///
/// ```
/// use onbeat_os::{clock::monotonic_ns, tsc::{BOUND_NS, Clock}};
///
/// let clock = Clock::new();
/// let before_ns = monotonic_ns();
/// let now_ns = clock.now_ns();
/// assert!(now_ns + BOUND_NS >= before_ns);
/// assert!(clock.now_ns() >= now_ns);
/// ```
#[derive(Debug)]
pub struct Clock {
    source: Cell<ClockSource>,
    line: Cell<TimeLine>,
    /// Last reading, so that no later one is before it.
    last_ns: Cell<u64>,
    steadiness: Steadiness,
}

/// Time source that a [`Clock`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockSource {
    /// The processor's time stamp counter.
    Tsc,
    /// The kernel, by `clock_gettime(2)`.
    Kernel,
}

/// Name in the record: `tsc` or `clock_gettime`.
impl fmt::Display for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tsc => "tsc",
            Self::Kernel => "clock_gettime",
        })
    }
}

impl Clock {
    /// Makes a clock with the best source of this machine.
    ///
    /// If the source is the counter, the first call in a process takes 4 ms, asleep. Call it before work that
    /// must not wait.
    #[must_use]
    pub fn new() -> Self {
        static MEASURED: OnceLock<Option<Steadiness>> = OnceLock::new();
        match MEASURED.get_or_init(measure) {
            // The line has expired: the first read takes an anchor.
            Some(steadiness) => Self {
                source: Cell::new(ClockSource::Tsc),
                line: Cell::new(TimeLine::expired(counter::read(), steadiness.rate())),
                last_ns: Cell::new(0),
                steadiness: *steadiness,
            },
            None => Self::kernel(),
        }
    }

    /// Makes a clock that asks the kernel at every read, on every machine.
    #[must_use]
    pub fn kernel() -> Self {
        Self {
            source: Cell::new(ClockSource::Kernel),
            line: Cell::default(),
            last_ns: Cell::new(0),
            steadiness: Steadiness::default(),
        }
    }

    /// Time in nanoseconds, within [`BOUND_NS`] of `CLOCK_MONOTONIC`, never before an earlier reading of this
    /// clock.
    ///
    /// It costs a few nanoseconds more than reading the counter; every 4 ms some hundred more, for an anchor.
    #[must_use]
    #[inline]
    pub fn now_ns(&self) -> u64 {
        let now_ns = match self.source.get() {
            ClockSource::Tsc => {
                let line = self.line.get();
                let ticks = line.ticks_to(counter::read());
                if self.steadiness.holds(ticks) { line.ns_after(ticks) } else { self.renew() }
            }
            ClockSource::Kernel => monotonic_ns(),
        };
        let now_ns = now_ns.max(self.last_ns.get());
        self.last_ns.set(now_ns);
        now_ns
    }

    /// Current source of this clock. [`ClockSource::Tsc`] becomes [`ClockSource::Kernel`] if the counter
    /// turns out to be unsteady, never the other way.
    #[must_use]
    pub fn source(&self) -> ClockSource {
        self.source.get()
    }

    /// Takes a new anchor and returns the kernel's time.
    #[cold]
    #[inline(never)]
    fn renew(&self) -> u64 {
        let (anchor, now_ns) = Anchor::take();
        if self.steadiness.is_narrow(anchor) {
            match self.steadiness.next_line(self.line.get(), anchor) {
                Some(line) => self.line.set(line),
                None => self.source.set(ClockSource::Kernel),
            }
        }
        now_ns
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Measures the counter's rate; `None` if the kernel's time is not derived from it, or measuring fails.
fn measure() -> Option<Steadiness> {
    if !counter::makes_the_kernels_time() {
        return None;
    }
    // Several tries: a busy machine may widen a sandwich.
    (0..10).find_map(|_| {
        let (first, now_ns) = Anchor::take();
        sleep_until(now_ns + INTERVAL_NS);
        let (second, _) = Anchor::take();
        Steadiness::between(first, second)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a clock whose anchor is now and says `ns`; `None` if there is no counter.
    fn clock_at(ns: u64) -> Option<Clock> {
        let clock = Clock::new();
        let anchor = Anchor { ticks: counter::read(), ns, width_ticks: 0 };
        clock.line.set(clock.steadiness.next_line(clock.line.get(), anchor)?);
        (clock.source() == ClockSource::Tsc).then_some(clock)
    }

    /// Lets the anchor expire and reads until there is a new one.
    fn renewed(clock: &Clock) {
        let old = clock.line.get();
        sleep_until(monotonic_ns() + INTERVAL_NS);
        while clock.line.get() == old && clock.source() == ClockSource::Tsc {
            let _ = clock.now_ns();
        }
    }

    #[test]
    fn a_clock_that_was_ahead_holds_until_the_time_has_come() {
        const AHEAD_NS: u64 = 100_000_000;
        let Some(clock) = clock_at(monotonic_ns() + AHEAD_NS) else { return };
        let ahead_ns = clock.now_ns();
        renewed(&clock);
        let held_ns = clock.now_ns();
        // The clock's new anchor is far behind its last reading.
        assert!(held_ns >= ahead_ns);
        let again_ns = clock.now_ns();
        if monotonic_ns() < held_ns {
            assert_eq!(again_ns, held_ns);
        }
        sleep_until(held_ns + BOUND_NS + 1);
        assert!(clock.now_ns() > held_ns);
    }

    #[test]
    fn a_counter_that_turns_out_unsteady_is_left_for_the_kernel() {
        // Anchored half a second too early: the rate to the next anchor is far off.
        let Some(clock) = clock_at(monotonic_ns() - 500_000_000) else { return };
        renewed(&clock);
        assert_eq!(clock.source(), ClockSource::Kernel);
        let (before_ns, now_ns) = (monotonic_ns(), clock.now_ns());
        assert!((before_ns..=monotonic_ns()).contains(&now_ns));
    }
}
