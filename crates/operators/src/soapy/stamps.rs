//! Time stamps of a device: when samples were due, and which are missing.

/// Time over which the least delay is looked for, in nanoseconds: long enough for one read without a wait,
/// and short enough that two clocks do not come apart in it (20 ppm make 0.2 ms).
const WINDOW_NS: u64 = 10_000_000_000;
/// Missing time, beyond the time that has passed, that is a clock that was set.
const SET_NS: f64 = 10e9;
/// Stamps that go back, until they are not believed any more.
const MOST_BACK: u32 = 3;

/// What a stamp says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StampNews {
    /// The samples follow those before, or there is nothing to compare them with.
    Follows,
    /// This many samples are missing before them.
    Missing(u64),
    /// The stamp goes back, or jumps by more time than has passed: the device's clock was set.
    Set,
    /// Stamps have gone back too often: they are not those of samples, and are not used any more.
    Unsteady,
}

/// Follows the stamps of a stream.
#[derive(Debug, Clone)]
pub(super) struct RadioStamps {
    rate_hz: f64,
    /// The last stamp, and the samples since.
    anchor: Option<(i64, u64)>,
    /// When the last samples came, on CLOCK_MONOTONIC.
    came_ns: u64,
    back: u32,
    floor: DelayFloor,
}

impl RadioStamps {
    pub fn new(rate_hz: f64) -> Self {
        RadioStamps { rate_hz, anchor: None, came_ns: 0, back: 0, floor: DelayFloor::default() }
    }

    /// Whether samples have stamps that are believed.
    pub fn are_used(&self) -> bool {
        self.anchor.is_some()
    }

    /// Takes samples that came at `now_ns` on CLOCK_MONOTONIC.
    pub fn take(&mut self, time_ns: Option<i64>, count: u64, now_ns: u64) -> StampNews {
        let passed_ns = now_ns.saturating_sub(std::mem::replace(&mut self.came_ns, now_ns));
        if self.back >= MOST_BACK {
            return StampNews::Follows;
        }
        let Some(time_ns) = time_ns else {
            if let Some((_, since)) = &mut self.anchor {
                *since += count;
            }
            return StampNews::Follows;
        };
        let news = match self.anchor {
            None => StampNews::Follows,
            Some((anchor_ns, since)) => {
                let missing_ns =
                    (time_ns.saturating_sub(anchor_ns)) as f64 - since as f64 * 1e9 / self.rate_hz;
                let missing = (missing_ns * self.rate_hz / 1e9).round();
                if missing <= -1.0 || missing_ns > passed_ns as f64 + SET_NS {
                    self.floor = DelayFloor::default();
                    self.back += u32::from(missing < 0.0);
                    if self.back >= MOST_BACK { StampNews::Unsteady } else { StampNews::Set }
                } else if missing >= 1.0 {
                    StampNews::Missing(missing as u64)
                } else {
                    StampNews::Follows
                }
            }
        };
        self.anchor = (news != StampNews::Unsteady).then_some((time_ns, count));
        news
    }

    /// When the last sample was at the antenna, on CLOCK_MONOTONIC, if the quickest samples of the last time
    /// had no delay. The device's clock has another origin, so more is not known. `None` without stamps.
    pub fn due_ns(&mut self, now_ns: u64) -> Option<u64> {
        let (anchor_ns, since) = self.anchor?;
        let end_ns = anchor_ns.saturating_add((since as f64 * 1e9 / self.rate_hz) as i64);
        let offset_ns = self.floor.take((now_ns as i64).saturating_sub(end_ns), now_ns);
        u64::try_from(end_ns.saturating_add(offset_ns)).ok()
    }
}

/// The least value of the last 10 to 20 s.
#[derive(Debug, Clone, Copy, Default)]
struct DelayFloor {
    before: Option<i64>,
    now: Option<i64>,
    until_ns: u64,
}

impl DelayFloor {
    fn take(&mut self, delay_ns: i64, now_ns: u64) -> i64 {
        if now_ns >= self.until_ns {
            (self.before, self.now, self.until_ns) = (self.now, None, now_ns.saturating_add(WINDOW_NS));
        }
        let least_ns = self.now.map_or(delay_ns, |now| now.min(delay_ns));
        self.now = Some(least_ns);
        self.before.map_or(least_ns, |before| before.min(least_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: u64 = 1_000_000_000_000;

    #[test]
    fn missing_samples_are_counted_to_the_sample() {
        // A rate at which a sample has no whole number of nanoseconds, and a clock that begins anywhere.
        for origin_ns in [0, -77, i64::MAX / 4] {
            let mut stamps = RadioStamps::new(61.44e6);
            let (mut at, mut missing) = (0u64, 0u64);
            let stamp = |at: u64| origin_ns + (at as f64 * 1e9 / 61.44e6) as i64;
            for block in 0..10_000u64 {
                let gap = if block % 7 == 3 { block % 11 } else { 0 };
                at += gap;
                let news = stamps.take(Some(stamp(at)), 1000, START_NS + block * 16_000);
                match (news, gap) {
                    (StampNews::Follows, 0) => {}
                    (StampNews::Missing(count), _) => {
                        assert_eq!(count, gap, "block {block}");
                        missing += count;
                    }
                    other => panic!("{other:?} at {block}"),
                }
                at += 1000;
            }
            assert_eq!(missing, at - 10_000_000);
        }
    }

    #[test]
    fn only_the_first_part_of_a_block_may_have_a_stamp() {
        let mut stamps = RadioStamps::new(1e6);
        assert!(!stamps.are_used());
        assert_eq!(stamps.take(Some(0), 100, START_NS), StampNews::Follows);
        assert_eq!(stamps.take(None, 100, START_NS), StampNews::Follows);
        assert_eq!(stamps.take(Some(200_000), 100, START_NS), StampNews::Follows);
        assert_eq!(stamps.take(Some(303_000), 100, START_NS + 300_000), StampNews::Missing(3));
    }

    #[test]
    fn clocks_that_are_set_and_stamps_that_are_no_stamps() {
        let mut stamps = RadioStamps::new(1e6);
        stamps.take(Some(0), 100, START_NS);
        let unix_ns = 1_790_000_000_000_000_000;
        assert_eq!(stamps.take(Some(unix_ns), 100, START_NS + 100_000), StampNews::Set);
        assert_eq!(stamps.take(Some(unix_ns + 100_000), 100, START_NS + 200_000), StampNews::Follows);
        assert_eq!(stamps.take(Some(7), 100, START_NS + 300_000), StampNews::Set);
        assert_eq!(stamps.take(Some(3), 100, START_NS + 400_000), StampNews::Set);
        assert_eq!(stamps.take(Some(1), 100, START_NS + 500_000), StampNews::Unsteady);
        assert!(!stamps.are_used());
        assert_eq!(stamps.take(Some(9_000_000), 100, START_NS + 600_000), StampNews::Follows);
        assert_eq!(stamps.due_ns(START_NS), None);
    }

    #[test]
    fn the_quickest_samples_have_no_delay() {
        let mut stamps = RadioStamps::new(1e6);
        let mut due = |at: u64, delay_ns: u64| {
            stamps.take(Some((at * 1000) as i64), 1000, 0);
            let came_ns = START_NS + (at + 1000) * 1000 + delay_ns;
            came_ns - stamps.due_ns(came_ns).unwrap()
        };
        assert_eq!(due(0, 50_000), 0, "nothing is known yet");
        assert_eq!(due(1000, 20_000), 0);
        assert_eq!(due(2000, 90_000), 70_000);
        assert_eq!(due(3000, 20_500), 500);
        // Clocks that come apart: a later least delay counts once the window is over.
        for second in 1..60 {
            due(second * 1_000_000, 20_000 + second * 100_000);
        }
        assert!(due(60_000_000, 20_000 + 6_000_000) < 2_100_000);
    }
}
