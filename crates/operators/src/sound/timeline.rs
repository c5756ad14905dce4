//! When the samples of a loudspeaker are heard.

/// What has to be done before the next frames of a loudspeaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FramePlacement {
    /// Frames to drop: they are too late.
    pub dropped: u64,
    /// Frames of silence before the rest.
    pub silence: u64,
}

/// Keeps the delay from the time at which frames were due to the time at which they are heard. All times are
/// nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone)]
pub(super) struct Timeline {
    rate_hz: f64,
    /// Silence before the first frame.
    ahead_ns: u64,
    /// Frames that come this much too early are put right at once: others are missing before them.
    jump_ns: u64,
    /// Mean errors beyond this are put right.
    drift_ns: u64,
    /// Delay to keep, from the due time of a chunk to the end of its last frame.
    target_ns: Option<i64>,
    pub statistics: DelayStatistics,
}

impl Timeline {
    pub fn new(rate_hz: f64, ahead_ns: u64, jump_ns: u64, drift_ns: u64) -> Self {
        let statistics = DelayStatistics::default();
        Timeline { rate_hz, ahead_ns, jump_ns, drift_ns, target_ns: None, statistics }
    }

    fn ns(&self, frames: u64) -> i64 {
        (frames as f64 * 1e9 / self.rate_hz).round() as i64
    }

    fn frames(&self, ns: i64) -> u64 {
        (ns.max(0) as f64 * self.rate_hz / 1e9).round() as u64
    }

    /// Places frames that were due at `due_ns` when nothing is playing at `now_ns`.
    pub fn begin(&self, count: u64, due_ns: Option<u64>, now_ns: u64) -> FramePlacement {
        let Some(due_ns) = due_ns else { return FramePlacement::default() };
        let Some(target_ns) = self.target_ns else {
            return FramePlacement { dropped: 0, silence: self.frames(self.ahead_ns as i64) };
        };
        let until_first_ns = due_ns as i64 + target_ns - self.ns(count) - now_ns as i64;
        // Less would run dry at once.
        let least_ns = self.ahead_ns as i64 / 2;
        if until_first_ns >= least_ns {
            return FramePlacement { dropped: 0, silence: self.frames(until_first_ns) };
        }
        let dropped = self.frames(least_ns - until_first_ns).min(count);
        FramePlacement { dropped, silence: self.frames(until_first_ns + self.ns(dropped)) }
    }

    /// The delay to keep is that of frames due at `due_ns` whose last one ends at `end_ns`, unless there is
    /// one already.
    pub fn set(&mut self, due_ns: u64, end_ns: u64) {
        self.target_ns.get_or_insert(end_ns as i64 - due_ns as i64);
    }

    /// There is no delay to keep any more.
    pub fn forget(&mut self) {
        self.target_ns = None;
        self.statistics = DelayStatistics::default();
    }

    /// Error of the delay of frames due at `due_ns` whose last one ends at `end_ns`: positive if they are
    /// heard too late. `None` before a delay was set.
    pub fn error_ns(&self, due_ns: u64, end_ns: u64) -> Option<i64> {
        Some(end_ns as i64 - due_ns as i64 - self.target_ns?)
    }

    /// Places frames that follow others, with this error of their delay.
    pub fn follow(&mut self, count: u64, error_ns: i64) -> FramePlacement {
        let target_ns = self.target_ns.unwrap_or(0);
        let mut error_ns = error_ns;
        if error_ns >= -(self.jump_ns as i64) {
            self.statistics.take(error_ns + target_ns, self.ns(count));
            error_ns = self.statistics.mean_ns as i64 - target_ns;
            if error_ns.unsigned_abs() <= self.drift_ns {
                return FramePlacement::default();
            }
            self.statistics.mean_ns -= error_ns as f64;
        }
        FramePlacement { dropped: self.frames(error_ns).min(count), silence: self.frames(-error_ns) }
    }
}

/// Delays of frames, the first ones left out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DelayStatistics {
    /// Length of the stream so far, in nanoseconds.
    stream_ns: i64,
    count: u64,
    sum_ns: f64,
    /// A mean over a second or so, and its least and largest value.
    mean_ns: f64,
    least_ns: f64,
    largest_ns: f64,
}

impl DelayStatistics {
    /// Stream until delays count: the time in which clocks get into step.
    const FIRST_NS: i64 = 30_000_000_000;
    /// Time constant of the mean.
    const MEAN_NS: f64 = 1e9;

    fn take(&mut self, delay_ns: i64, span_ns: i64) {
        let delay_ns = delay_ns as f64;
        if self.stream_ns == 0 {
            self.mean_ns = delay_ns;
        }
        self.stream_ns += span_ns;
        let share = (span_ns as f64 / Self::MEAN_NS).min(1.0);
        self.mean_ns += share * (delay_ns - self.mean_ns);
        if self.stream_ns < Self::FIRST_NS {
            return;
        }
        if self.count == 0 {
            (self.least_ns, self.largest_ns) = (self.mean_ns, self.mean_ns);
        }
        self.count += 1;
        self.sum_ns += delay_ns;
        self.least_ns = self.least_ns.min(self.mean_ns);
        self.largest_ns = self.largest_ns.max(self.mean_ns);
    }

    /// Mean, least and largest delay in milliseconds, over all but the first 30 s; of a shorter stream the
    /// mean of its last second. The least and the largest are those of means over a second.
    pub fn delays_ms(&self) -> Option<[f64; 3]> {
        if self.stream_ns == 0 {
            return None;
        }
        let ns = match self.count {
            0 => [self.mean_ns; 3],
            count => [self.sum_ns / count as f64, self.least_ns, self.largest_ns],
        };
        Some(ns.map(|ns| ns / 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn timeline() -> Timeline {
        Timeline::new(48e3, 10 * MS, 20 * MS, 5 * MS)
    }

    fn placed(dropped: u64, silence: u64) -> FramePlacement {
        FramePlacement { dropped, silence }
    }

    #[test]
    fn late_frames_are_dropped_and_later_ones_are_in_time() {
        let mut timeline = timeline();
        assert_eq!(timeline.begin(240, Some(1000 * MS), 1001 * MS), placed(0, 480));
        // 1 ms on the way, 10 ms of silence, 5 ms of frames.
        timeline.set(1000 * MS, 1016 * MS);
        assert_eq!(timeline.begin(240, Some(2000 * MS), 2001 * MS), placed(0, 480));
        assert_eq!(timeline.begin(240, Some(2000 * MS), 2006 * MS), placed(0, 240));
        assert_eq!(timeline.begin(240, Some(2000 * MS), 2007 * MS), placed(48, 240));
        assert_eq!(timeline.begin(240, Some(2000 * MS), 2100 * MS), placed(240, 0));
        // Frames without a due time are never late.
        assert_eq!(timeline.begin(240, None, 2100 * MS), placed(0, 0));
    }

    #[test]
    fn small_errors_are_for_the_resampler_and_large_ones_are_put_right() {
        let mut timeline = timeline();
        assert_eq!(timeline.error_ns(0, 5), None);
        timeline.set(0, 16 * MS);
        assert_eq!(timeline.error_ns(1000 * MS, 1017 * MS), Some(MS as i64));
        assert_eq!(timeline.follow(240, MS as i64), placed(0, 0));
        assert_eq!(timeline.follow(240, -21 * MS as i64), placed(0, 1008));
        assert_eq!(timeline.follow(240, MS as i64), placed(0, 0));
        let [mean, least, largest] = timeline.statistics.delays_ms().unwrap();
        assert_eq!((mean, least, largest), (17.0, 17.0, 17.0));
        // A drift: the mean over a second follows.
        let placements: Vec<FramePlacement> =
            (0..1000).map(|_| timeline.follow(240, 6 * MS as i64)).collect();
        let at = placements.iter().position(|one| *one != placed(0, 0)).unwrap();
        assert!((100..1000).contains(&at), "{at}");
        assert_eq!(placements[at], placed(240, 0));
    }

    #[test]
    fn a_stream_that_the_card_paces_has_no_delay_to_keep() {
        let mut timeline = timeline();
        timeline.set(0, 16 * MS);
        timeline.forget();
        assert_eq!(timeline.error_ns(0, 5), None);
        assert_eq!(timeline.begin(240, Some(1000 * MS), 1001 * MS), placed(0, 480));
        assert_eq!(timeline.statistics.delays_ms(), None);
    }
}
