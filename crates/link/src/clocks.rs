//! The other end's clock: by how much it is ahead, and how far from the truth that may be.
//!
//! A probe leaves at `t1`, comes at `t2` on the other clock, is answered at `t3`, and the answer is here at
//! `t4`. Nothing arrives before it has left. So the other clock is ahead by at most `t2 - t1` and at least
//! `t3 - t4`, however long the ways took and however much they differ. Each exchange gives such an interval.
//!
//! Clocks drift, but steadily over some seconds. Of all lines (an offset, and a drift of at most
//! [`DRIFT_LIMIT`]) that go through all intervals of the window, the estimate is the middle of what they say
//! of the present, and the uncertainty is half of the range. The true offset is never outside of it unless a
//! clock was set or changed its rate within the window; then no line is left, and the older half is
//! forgotten.

use std::collections::VecDeque;

/// Exchanges that are kept.
const WINDOW: usize = 64;

/// Largest difference of the rates of two clocks: the kernel corrects its own by 500 ppm at most.
pub const DRIFT_LIMIT: f64 = 1e-3;

/// Steps of a search: each leaves less than two thirds of the range.
const STEPS: usize = 40;

/// One exchange of four times, in nanoseconds: two on the own clock, two on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When the probe left, on the own clock.
    pub asked_ns: u64,
    /// When it came, on the other clock.
    pub came_ns: u64,
    /// When the answer left, on the other clock.
    pub answered_ns: u64,
    /// When it was here, on the own clock.
    pub heard_ns: u64,
}

impl Exchange {
    /// Time on the way, there and back.
    pub fn round_trip_ns(&self) -> u64 {
        let all_ns = self.heard_ns.saturating_sub(self.asked_ns);
        all_ns.saturating_sub(self.answered_ns.saturating_sub(self.came_ns))
    }

    /// Least and most that the other clock can be ahead.
    fn bounds(&self) -> (i64, i64) {
        let ahead = |other: u64, own: u64| other.wrapping_sub(own).cast_signed();
        (ahead(self.answered_ns, self.heard_ns), ahead(self.came_ns, self.asked_ns))
    }
}

/// Estimate of the other clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offset {
    /// Own time of the estimate.
    pub at_ns: u64,
    /// By how much the other clock is ahead at that time.
    pub ahead_ns: i64,
    /// How far from the truth that can be.
    pub uncertainty_ns: u64,
    /// By how much the other clock runs faster: 1e-6 is 1 ppm.
    pub drift: f64,
}

impl Offset {
    /// Converts a time of the other clock to the own one. It must be near the time of the estimate.
    pub fn to_own_ns(self, other_ns: u64) -> u64 {
        let own_ns = other_ns.wrapping_sub(self.ahead_ns.cast_unsigned());
        let since_ns = own_ns.wrapping_sub(self.at_ns).cast_signed() as f64;
        own_ns.wrapping_sub((since_ns * self.drift).round() as i64 as u64)
    }
}

/// Latest exchanges with one other end.
#[derive(Debug, Default)]
pub struct Exchanges {
    latest: VecDeque<Exchange>,
    /// How often a clock was set, or changed its rate.
    steps: u64,
}

impl Exchanges {
    /// Adds an exchange, and returns the new estimate.
    pub fn add(&mut self, exchange: Exchange) -> Offset {
        if self.latest.len() == WINDOW {
            self.latest.pop_front();
        }
        self.latest.push_back(exchange);
        loop {
            let lines = OffsetLines::new(&self.latest);
            if let Some(offset) = lines.present() {
                return offset;
            }
            self.steps += 1;
            self.latest.drain(..self.latest.len().div_ceil(2));
            if self.latest.is_empty() {
                self.latest.push_back(exchange);
            }
        }
    }

    /// How often a clock was set, or changed its rate.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

/// The lines through all intervals, by their drift. Times and offsets are relative to the last exchange.
struct OffsetLines {
    now_ns: u64,
    base: i64,
    /// Time, least and most.
    intervals: Vec<(f64, f64, f64)>,
}

impl OffsetLines {
    fn new(latest: &VecDeque<Exchange>) -> Self {
        let last = latest.back().expect("one was just added");
        let (now_ns, base) = (last.heard_ns, last.bounds().0);
        let interval = |exchange: &Exchange| {
            let (least, most) = exchange.bounds();
            // The bounds hold at the time at which each message was sent or came; the drift between these
            // times is added below.
            let time = exchange.heard_ns.wrapping_sub(now_ns).cast_signed() as f64;
            let slack = DRIFT_LIMIT * exchange.heard_ns.saturating_sub(exchange.asked_ns) as f64;
            (time, least.wrapping_sub(base) as f64 - slack, most.wrapping_sub(base) as f64 + slack)
        };
        OffsetLines { now_ns, base, intervals: latest.iter().map(interval).collect() }
    }

    /// Least and most at present, of the lines with this drift; there are none if the least is above the
    /// most.
    fn range(&self, drift: f64) -> (f64, f64) {
        self.intervals.iter().fold((f64::NEG_INFINITY, f64::INFINITY), |(least, most), (time, low, high)| {
            (least.max(low - drift * time), most.min(high - drift * time))
        })
    }

    /// The estimate; `None` if no line goes through all intervals.
    fn present(&self) -> Option<Offset> {
        let width = |drift: f64| {
            let (least, most) = self.range(drift);
            most - least
        };
        // The width is concave, the most is concave, the least is convex in the drift.
        let widest = highest(width, -DRIFT_LIMIT, DRIFT_LIMIT);
        if width(widest) < 0.0 {
            return None;
        }
        let first = edge(width, widest, -DRIFT_LIMIT);
        let last = edge(width, widest, DRIFT_LIMIT);
        let most = self.range(highest(|drift| self.range(drift).1, first, last)).1;
        let least = self.range(highest(|drift| -self.range(drift).0, first, last)).0;
        let middle = f64::midpoint(least, most);
        Some(Offset {
            at_ns: self.now_ns,
            ahead_ns: self.base.wrapping_add(middle.round() as i64),
            // The search stops short of the true ends by less than that.
            uncertainty_ns: ((most - least) / 2.0).max(0.0).ceil() as u64 + 1,
            drift: f64::midpoint(first, last),
        })
    }
}

/// Where a concave function is highest.
fn highest(of: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..STEPS {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if of(left) < of(right) { low = left } else { high = right }
    }
    f64::midpoint(low, high)
}

/// The last place from `inside` towards `end` where a concave function is not negative.
fn edge(of: impl Fn(f64) -> f64, inside: f64, end: f64) -> f64 {
    if of(end) >= 0.0 {
        return end;
    }
    let (mut good, mut bad) = (inside, end);
    for _ in 0..STEPS {
        let middle = f64::midpoint(good, bad);
        if of(middle) >= 0.0 { good = middle } else { bad = middle }
    }
    // Outside by less than a step, so that no line is lost.
    bad
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The other clock at an own time.
    fn other(own_ns: u64, ahead_ns: i64, drift: f64) -> u64 {
        own_ns.wrapping_add(ahead_ns.cast_unsigned()).wrapping_add((own_ns as f64 * drift) as i64 as u64)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// The truth is within the uncertainty, for any offset, drift and delays, also uneven ones.
        #[test]
        fn the_truth_is_within_the_uncertainty(
            ahead_ns in -2_000_000_000_i64..2_000_000_000,
            ppm in -50.0..50.0_f64,
            delays in prop::collection::vec((1_000..400_000_u64, 1_000..200_000_u64), 2..100),
        ) {
            let drift = ppm * 1e-6;
            let mut exchanges = Exchanges::default();
            for (number, (there, back)) in delays.into_iter().enumerate() {
                let asked_ns = 10_000_000_000 + number as u64 * 100_000_000;
                let heard_ns = asked_ns + there + 5_000 + back;
                let offset = exchanges.add(Exchange {
                    asked_ns,
                    came_ns: other(asked_ns + there, ahead_ns, drift),
                    answered_ns: other(asked_ns + there + 5_000, ahead_ns, drift),
                    heard_ns,
                });
                let truth = other(heard_ns, ahead_ns, drift).wrapping_sub(heard_ns).cast_signed();
                let wrong = truth.abs_diff(offset.ahead_ns);
                prop_assert!(wrong <= offset.uncertainty_ns, "{wrong} of {}", offset.uncertainty_ns);
                let back_ns = offset.to_own_ns(other(heard_ns, ahead_ns, drift));
                prop_assert!(back_ns.abs_diff(heard_ns) <= offset.uncertainty_ns + 1);
            }
            prop_assert_eq!(exchanges.steps(), 0);
        }
    }

    #[test]
    fn the_fastest_exchange_decides() {
        let mut exchanges = Exchanges::default();
        let mut last = None;
        for number in 0..20_u64 {
            let asked_ns = number * 1_000_000;
            let way_ns = if number == 10 { 2_000 } else { 300_000 };
            let came_ns = asked_ns + way_ns + 5_000_000_000;
            last = Some(exchanges.add(Exchange {
                asked_ns,
                came_ns,
                answered_ns: came_ns,
                heard_ns: asked_ns + 2 * way_ns,
            }));
        }
        assert!(last.unwrap().uncertainty_ns < 20_000, "{last:?}");
    }

    #[test]
    fn a_clock_that_is_set_is_noticed() {
        let mut exchanges = Exchanges::default();
        let exchange = |number: u64, ahead: u64| Exchange {
            asked_ns: number * 100_000_000,
            came_ns: number * 100_000_000 + 50_000 + ahead,
            answered_ns: number * 100_000_000 + 50_000 + ahead,
            heard_ns: number * 100_000_000 + 100_000,
        };
        for number in 0..30 {
            exchanges.add(exchange(number, 0));
        }
        assert_eq!(exchanges.steps(), 0);
        let mut found = exchanges.add(exchange(30, 37_000_000_000));
        for number in 31..60 {
            found = exchanges.add(exchange(number, 37_000_000_000));
        }
        assert!(exchanges.steps() > 0);
        assert!(found.ahead_ns.abs_diff(37_000_000_000) <= found.uncertainty_ns, "{found:?}");
    }
}
