//! Measures whether several lanes are faster than one, while the run goes on.

/// Length of a measurement, and of the time before it in which the queues of the lanes fill or drain.
const MEASURE_NS: u64 = 1_500_000;
const SETTLE_NS: u64 = 500_000;

/// Times between two measurements of the slower way: the first one, and the longest. It doubles while the
/// outcome stays the same.
const FIRST_NS: u64 = 50_000_000;
const LONGEST_NS: u64 = 2_000_000_000;

/// What several lanes must gain: less is noise, and costs another core.
const GAIN: f64 = 1.05;

/// Which way is measured or in use.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    One,
    Several,
}

/// Decides between one lane and several.
#[derive(Debug)]
pub(super) struct LaneTrial {
    way: Way,
    /// Samples per nanosecond in one lane, when it was measured last.
    one: Option<f64>,
    /// Time from which on samples count, and the number before it; `None` until the queues have settled.
    begin: Option<(u64, u64)>,
    /// End of the present phase; 0 before the first.
    until_ns: u64,
    /// Whether a phase is a measurement. Otherwise the better way is in use.
    measures: bool,
    pause_ns: u64,
}

impl LaneTrial {
    pub fn new() -> Self {
        LaneTrial { way: Way::One, one: None, begin: None, until_ns: 0, measures: true, pause_ns: FIRST_NS }
    }

    /// Whether the next block may go to any lane. `sample` is the number of its first sample.
    pub fn is_shared(&mut self, now_ns: u64, sample: u64) -> bool {
        if self.until_ns == 0 {
            self.phase(Way::One, true, now_ns);
        }
        if self.measures && self.begin.is_none() && now_ns + MEASURE_NS >= self.until_ns {
            self.begin = Some((now_ns, sample));
        }
        if now_ns >= self.until_ns {
            self.end_phase(now_ns, sample);
        }
        self.way == Way::Several
    }

    fn end_phase(&mut self, now_ns: u64, sample: u64) {
        if !self.measures {
            // One lane is always measured first: what comes before and after the lanes may have changed.
            return self.phase(Way::One, true, now_ns);
        }
        let rate = self.begin.map_or(0.0, |(begin_ns, before)| {
            (sample - before) as f64 / now_ns.saturating_sub(begin_ns).max(1) as f64
        });
        match self.way {
            Way::One => {
                self.one = Some(rate);
                self.phase(Way::Several, true, now_ns);
            }
            Way::Several => {
                let wins = self.one.is_some_and(|one| rate > GAIN * one);
                self.phase(if wins { Way::Several } else { Way::One }, false, now_ns);
            }
        }
    }

    fn phase(&mut self, way: Way, measures: bool, now_ns: u64) {
        let length_ns = if measures { SETTLE_NS + MEASURE_NS } else { self.pause_ns };
        if !measures {
            self.pause_ns = (2 * self.pause_ns).min(LONGEST_NS);
        }
        (self.way, self.measures, self.begin) = (way, measures, None);
        self.until_ns = now_ns + length_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs for some milliseconds at these rates, in samples per microsecond. Returns the share of blocks that
    /// went to all lanes in the second half.
    fn shared(one: u64, several: u64, ms: u64) -> f64 {
        let mut trial = LaneTrial::new();
        let (mut sample, mut blocks, mut spread) = (0, 0.0, 0.0);
        for us in (0..ms * 1_000).step_by(10) {
            let is_shared = trial.is_shared(us * 1_000 + 1, sample);
            sample += 10 * if is_shared { several } else { one };
            if us > ms * 500 {
                blocks += 1.0;
                spread += f64::from(u8::from(is_shared));
            }
        }
        spread / blocks
    }

    #[test]
    fn uses_what_is_faster() {
        assert!(shared(100, 190, 2_000) > 0.98);
        assert!(shared(100, 90, 2_000) < 0.02);
        assert!(shared(100, 101, 2_000) < 0.02);
    }

    /// In time that stands still, nothing is measured.
    #[test]
    fn stays_in_one_lane_without_a_clock() {
        let mut trial = LaneTrial::new();
        assert!((0..1_000).all(|sample| !trial.is_shared(7, 100 * sample)));
    }
}
