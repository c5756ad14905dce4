//! Conversion of counter ticks to nanoseconds: the arithmetic, without a clock.

use super::anchor::Anchor;
use super::{INTERVAL_NS, WIDEST_NS};

/// A rate is nanoseconds per tick times 2 to this power. Over one interval the rounding error is then below
/// 0.01 ns.
const FRACTION_BITS: u32 = 32;

/// Anchors further apart than this many intervals (1 s) give no rate: the machine may have been suspended
/// between them, which the kernel's time leaves out and the counter may not.
const MEMORY_INTERVALS: u64 = 256;

/// Straight line through an anchor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TimeLine {
    ticks: u64,
    ns: u64,
    rate: u64,
}

impl TimeLine {
    /// Makes a line so far in the past of counter reading `now` that it is neither used nor gives a rate.
    pub(super) fn expired(now: u64, rate: u64) -> Self {
        Self { ticks: now.wrapping_sub(u64::MAX / 2), ns: 0, rate }
    }

    /// Ticks from the anchor to the counter reading `now`. A reading before the anchor is very far away.
    #[inline]
    pub(super) fn ticks_to(self, now: u64) -> u64 {
        now.wrapping_sub(self.ticks)
    }

    /// Time `ticks` after the anchor, if the line [holds](Steadiness::holds) for them.
    #[inline]
    pub(super) fn ns_after(self, ticks: u64) -> u64 {
        // Does not overflow: an interval is 2^22 ns, a rate is off by a quarter at most, so the product is
        // below 2^55.
        self.ns + ((ticks * self.rate) >> FRACTION_BITS)
    }
}

/// The known rate of the counter, and what follows from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Steadiness {
    rate: u64,
    interval_ticks: u64,
    widest_ticks: u64,
}

impl Steadiness {
    /// Takes the first two anchors of the process; `None` if they are too wide or the counter stands still.
    pub(super) fn between(first: Anchor, second: Anchor) -> Option<Self> {
        let rate = rate(first.ns, second.ns, second.ticks.wrapping_sub(first.ticks))?;
        let ticks_of = |ns: u64| (ns << FRACTION_BITS) / rate;
        let steadiness =
            Self { rate, interval_ticks: ticks_of(INTERVAL_NS), widest_ticks: ticks_of(WIDEST_NS) };
        (steadiness.is_narrow(first) && steadiness.is_narrow(second)).then_some(steadiness)
    }

    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    /// Whether a line is valid `ticks` after its anchor.
    #[inline]
    pub(super) fn holds(&self, ticks: u64) -> bool {
        ticks < self.interval_ticks
    }

    pub(super) fn is_narrow(&self, anchor: Anchor) -> bool {
        anchor.width_ticks <= self.widest_ticks
    }

    /// Returns the line through `anchor` that follows `old`; `None` if the counter is unusable.
    pub(super) fn next_line(&self, old: TimeLine, anchor: Anchor) -> Option<TimeLine> {
        let Anchor { ticks, ns, .. } = anchor;
        let apart = old.ticks_to(ticks);
        let far_enough = self.interval_ticks..=MEMORY_INTERVALS * self.interval_ticks;
        if !far_enough.contains(&apart) {
            return Some(TimeLine { ticks, ns, ..old });
        }
        let rate = rate(old.ns, ns, apart)?;
        (rate.abs_diff(self.rate) <= self.rate / 4).then_some(TimeLine { ticks, ns, rate })
    }
}

/// Rate between two times that are `ticks` apart; `None` if there is no such number.
fn rate(from_ns: u64, to_ns: u64, ticks: u64) -> Option<u64> {
    let ns = u128::from(to_ns.checked_sub(from_ns)?);
    let rate = (ns << FRACTION_BITS).checked_div(ticks.into())?;
    // A counter slower than one tick in 256 ns is not a time stamp counter, and its rate would not fit.
    let rate = u64::try_from(rate).ok()?;
    (1..1 << (FRACTION_BITS + 8)).contains(&rate).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tsc::BOUND_NS;
    use proptest::prelude::*;

    /// 2.5 GHz.
    const TICKS_PER_INTERVAL: u64 = 10_000_000;

    fn anchor(ticks: u64, ns: u64) -> Anchor {
        Anchor { ticks, ns, width_ticks: 100 }
    }

    fn steadiness() -> Steadiness {
        Steadiness::between(anchor(1_000, 50), anchor(1_000 + TICKS_PER_INTERVAL, 50 + INTERVAL_NS)).unwrap()
    }

    /// The line that begins at tick 0 and time `ns`.
    fn line(ns: u64) -> TimeLine {
        steadiness().next_line(TimeLine::expired(0, steadiness().rate()), anchor(0, ns)).unwrap()
    }

    #[test]
    fn a_line_turns_ticks_into_nanoseconds() {
        let line = line(7_000);
        for (ticks, ns) in [(0, 7_000), (25, 7_010), (2_500, 8_000), (9_999_975, 7_000 + INTERVAL_NS - 10)] {
            assert!(steadiness().holds(ticks));
            assert!(line.ns_after(ticks).abs_diff(ns) <= 1, "{ticks}: {}", line.ns_after(ticks));
        }
        assert!(!steadiness().holds(TICKS_PER_INTERVAL + 1));
    }

    #[test]
    fn before_the_anchor_a_line_does_not_hold() {
        assert!(!steadiness().holds(line(0).ticks_to(1_u64.wrapping_neg())));
    }

    #[test]
    fn an_expired_line_neither_holds_nor_gives_a_rate() {
        for now in [0, 1, u64::MAX / 2, u64::MAX] {
            let expired = TimeLine::expired(now, steadiness().rate());
            assert!(!steadiness().holds(expired.ticks_to(now)));
            let next = steadiness().next_line(expired, anchor(now, 9)).unwrap();
            assert_eq!(next.rate, steadiness().rate());
        }
    }

    #[test]
    fn the_rate_follows_the_last_two_anchors() {
        // 500 ppm faster.
        let next = steadiness().next_line(line(0), anchor(TICKS_PER_INTERVAL, 4_002_000)).unwrap();
        assert_eq!(next.ns_after(5_000_000), 4_002_000 + 2_001_000 - 1);
    }

    #[test]
    fn after_a_long_sleep_the_rate_stays() {
        // As after a suspend: the kernel's time went on by 4 ms only.
        let next = steadiness().next_line(line(0), anchor(3_000 * TICKS_PER_INTERVAL, INTERVAL_NS)).unwrap();
        assert_eq!(next.rate, steadiness().rate());
        assert_eq!(next.ns_after(0), INTERVAL_NS);
    }

    #[test]
    fn an_unsteady_counter_is_given_up() {
        for ns in [INTERVAL_NS * 5 / 4 + 1_000, INTERVAL_NS * 3 / 4 - 1_000, 0, u64::MAX] {
            assert_eq!(steadiness().next_line(line(0), anchor(TICKS_PER_INTERVAL, ns)), None, "{ns}");
        }
        assert!(steadiness().next_line(line(0), anchor(TICKS_PER_INTERVAL, INTERVAL_NS * 6 / 5)).is_some());
    }

    #[test]
    fn no_rate_comes_from_a_counter_that_stands_or_from_wide_anchors() {
        assert_eq!(Steadiness::between(anchor(5, 0), anchor(5, INTERVAL_NS)), None);
        assert_eq!(Steadiness::between(anchor(5, 0), anchor(6, INTERVAL_NS)), None);
        // 0.6 µs.
        let wide = Anchor { width_ticks: 1_500, ..anchor(TICKS_PER_INTERVAL, INTERVAL_NS) };
        assert_eq!(Steadiness::between(anchor(0, 0), wide), None);
    }

    proptest! {
        /// NTP asks for another rate in every interval, the worst anchors are as wide as allowed, and
        /// re-anchoring comes late: the error stays below the bound.
        #[test]
        fn the_bound_holds(
            intervals in prop::collection::vec((-500_i64..=500, -250_i64..=250, 0_u64..1_000_000), 3..50),
        ) {
            let steadiness = steadiness();
            let mut line = line(1_000_000);
            let (mut ticks, mut true_ns) = (0_u64, 1_000_000_u64);
            // The rate that `steadiness` knows is that of 0 ppm.
            for (ppm, anchor_error_ns, late_ticks) in intervals {
                let true_after = |ticks: u64| {
                    let ns = ticks * 2 / 5;
                    true_ns.checked_add_signed(i64::try_from(ns).unwrap() * ppm / 1_000_000).unwrap() + ns
                };
                for used in [0, TICKS_PER_INTERVAL / 2, TICKS_PER_INTERVAL - 1] {
                    let behind_anchor = line.ticks_to(ticks + used);
                    let error_ns = line.ns_after(behind_anchor).abs_diff(true_after(used));
                    prop_assert!(error_ns <= BOUND_NS, "{error_ns} ns at {ppm} ppm");
                }
                let next = TICKS_PER_INTERVAL + late_ticks;
                true_ns = true_after(next);
                ticks += next;
                let anchor_ns = true_ns.checked_add_signed(anchor_error_ns).unwrap();
                line = steadiness.next_line(line, anchor(ticks, anchor_ns)).unwrap();
            }
        }
    }
}
