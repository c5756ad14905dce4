//! Measures whether several lanes are faster than one, while the run goes on.

/// Length of a measurement, and of the time before it in which the queues of the lanes fill or drain.
const MEASURE_NS: u64 = 1_000_000;
const SETTLE_NS: u64 = 300_000;

/// Measurements of each way, in turn.
const ROUNDS: u32 = 2;

/// Times from one comparison to the next: the first, and the longest. It doubles while the outcome stays.
const FIRST_NS: u64 = 50_000_000;
const LONGEST_NS: u64 = 2_000_000_000;

/// What several lanes must gain: less is noise, and costs another core.
const GAIN: f64 = 1.05;

/// Decides between one lane and several.
#[derive(Debug, Default)]
pub(super) struct LaneTrial {
    /// Whether blocks may go to any lane now.
    is_shared: bool,
    /// Whether several lanes were faster last time.
    wins: bool,
    /// Measurements done in this comparison; `None` while the better way is in use.
    measured: Option<u32>,
    /// Samples and nanoseconds that were measured in one lane, and in several.
    sums: [(u64, u64); 2],
    /// Time from which on samples count, and the number before it; `None` until the queues have settled.
    begin: Option<(u64, u64)>,
    /// End of the present phase; 0 before the first.
    until_ns: u64,
    pause_ns: u64,
}

impl LaneTrial {
    /// Whether the next block may go to any lane. `sample` is the number of its first sample.
    pub fn is_shared(&mut self, now_ns: u64, sample: u64) -> bool {
        if self.until_ns == 0 {
            self.compare(now_ns);
        }
        if now_ns >= self.until_ns {
            self.end_phase(now_ns, sample);
        } else if self.begin.is_none() && now_ns + MEASURE_NS >= self.until_ns {
            self.begin = Some((now_ns, sample));
        }
        self.is_shared
    }

    fn end_phase(&mut self, now_ns: u64, sample: u64) {
        let Some(measured) = self.measured else { return self.compare(now_ns) };
        if let Some((begin_ns, before)) = self.begin {
            let (samples, time_ns) = &mut self.sums[usize::from(self.is_shared)];
            *samples += sample - before;
            *time_ns += now_ns - begin_ns;
        }
        if measured + 1 < 2 * ROUNDS {
            self.measure(!self.is_shared, measured + 1, now_ns);
        } else {
            self.decide(now_ns);
        }
    }

    /// Begins a comparison.
    fn compare(&mut self, now_ns: u64) {
        self.sums = [(0, 0); 2];
        self.measure(false, 0, now_ns);
    }

    fn measure(&mut self, is_shared: bool, measured: u32, now_ns: u64) {
        (self.is_shared, self.measured, self.begin) = (is_shared, Some(measured), None);
        self.until_ns = now_ns + SETTLE_NS + MEASURE_NS;
    }

    fn decide(&mut self, now_ns: u64) {
        let rate = |(samples, time_ns): (u64, u64)| samples as f64 / time_ns.max(1) as f64;
        let [one, several] = self.sums;
        let wins = rate(several) > GAIN * rate(one);
        let is_same = std::mem::replace(&mut self.wins, wins) == wins && self.pause_ns > 0;
        self.pause_ns = if is_same { (2 * self.pause_ns).min(LONGEST_NS) } else { FIRST_NS };
        (self.is_shared, self.measured) = (wins, None);
        self.until_ns = now_ns + self.pause_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs for some milliseconds at these rates, in samples per microsecond. Returns the share of blocks
    /// that went to all lanes in the second half.
    fn shared(one: u64, several: u64, ms: u64) -> f64 {
        let mut trial = LaneTrial::default();
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
        let mut trial = LaneTrial::default();
        assert!((0..1_000).all(|sample| !trial.is_shared(7, 100 * sample)));
    }
}
