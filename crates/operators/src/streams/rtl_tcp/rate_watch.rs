//! Whether as many samples arrive as the sample rate promises.

/// Time after the begin that is not judged: the radio still has its former rate.
const SETTLE_NS: u64 = 500_000_000;
/// Length of a window. Servers send up to half a second at once.
const WINDOW_NS: u64 = 1_000_000_000;
/// Share of the samples by which a radio's crystal can be slow without a fault.
const CRYSTAL: f64 = 1e-3;
/// Changes of the delay on the way, in seconds, that do not count as a loss.
const DELAY_S: f64 = 0.25;

/// Compares the samples that arrived with the time that passed.
///
/// Samples on the way are missing as well, so the number of missing samples goes up and down. Its lowest
/// value in a window grows only if samples were lost, or if the delay grew for good.
#[derive(Debug, Default)]
pub(crate) struct RateWatch {
    rate_hz: f64,
    /// Time from which on arrivals count, and whether one has counted.
    from_ns: u64,
    has_begun: bool,
    received: u64,
    window_end_ns: u64,
    /// Lowest number of missing samples in the current window, in the first one, and in the last one.
    low: f64,
    first: Option<f64>,
    last: Option<f64>,
    last_end_ns: u64,
}

/// Samples that are missing over a time.
#[derive(Debug, PartialEq)]
pub(crate) struct Shortage {
    pub samples: u64,
    /// Time over which they are missing, in seconds.
    pub over_s: f64,
    /// Their share of the samples that the rate promises, in percent.
    pub percent: f64,
}

impl RateWatch {
    /// Begins at this time, with a rate in hertz.
    pub fn new(rate_hz: f64, now_ns: u64) -> Self {
        RateWatch { rate_hz, from_ns: now_ns.saturating_add(SETTLE_NS), ..RateWatch::default() }
    }

    /// Takes the arrival of samples.
    pub fn arrive(&mut self, now_ns: u64, count: usize) {
        if now_ns < self.from_ns {
            return;
        }
        if !self.has_begun {
            // Samples of this arrival are older than the time from which on they count.
            (self.has_begun, self.from_ns) = (true, now_ns);
            self.window_end_ns = now_ns + WINDOW_NS;
            return;
        }
        self.received += count as u64;
        let missing = (now_ns - self.from_ns) as f64 * 1e-9 * self.rate_hz - self.received as f64;
        if now_ns >= self.window_end_ns {
            self.last = Some(self.low);
            self.first.get_or_insert(self.low);
            self.last_end_ns = self.window_end_ns;
            (self.low, self.window_end_ns) = (missing, now_ns + WINDOW_NS);
        }
        self.low = self.low.min(missing);
    }

    /// Returns the samples that are missing, if they are more than the crystal and the delay can explain.
    pub fn shortage(&self) -> Option<Shortage> {
        let missing = self.last? - self.first?;
        let over_s = self.last_end_ns.saturating_sub(self.from_ns) as f64 * 1e-9;
        let promised = over_s * self.rate_hz;
        let is_much = missing > promised * CRYSTAL + DELAY_S * self.rate_hz;
        is_much.then(|| Shortage { samples: missing as u64, over_s, percent: 100.0 * missing / promised })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the shortage after this time if blocks of samples arrive at these times.
    fn shortage(seconds: f64, block: usize, time_s: impl Fn(u64) -> f64) -> Option<Shortage> {
        let mut watch = RateWatch::new(1e6, 5_000_000_000);
        for n in 0.. {
            let now_s = time_s(n);
            if now_s > seconds {
                break;
            }
            watch.arrive(5_000_000_000 + (now_s * 1e9) as u64, block);
        }
        watch.shortage()
    }

    #[test]
    fn jitter_and_a_slow_crystal_are_not_a_loss() {
        let jitter = |n: u64| 0.2 * ((n * 7919 % 100) as f64 / 100.0);
        assert_eq!(shortage(60.0, 10_000, |n| n as f64 * 0.01), None);
        assert_eq!(shortage(600.0, 10_000, |n| n as f64 * 0.01 * 1.0002), None);
        assert_eq!(shortage(60.0, 500_000, |n| n as f64 * 0.5), None);
        let mut late = 0.0;
        let mut watch = RateWatch::new(1e6, 0);
        for n in 0..6000 {
            late = f64::max(late, n as f64 * 0.01 + jitter(n));
            watch.arrive((late * 1e9) as u64, 10_000);
        }
        assert_eq!(watch.shortage(), None);
        assert_eq!(shortage(0.9, 10_000, |n| n as f64 * 0.02), None, "too short to judge");
    }

    #[test]
    fn a_loss_is_estimated() {
        // One block of fifty is missing.
        let found = shortage(60.0, 10_000, |n| (n + n / 49) as f64 * 0.01).unwrap();
        assert!((found.percent - 2.0).abs() < 0.1 && found.over_s > 57.0, "{found:?}");
        // Two seconds are missing once.
        let found = shortage(20.0, 10_000, |n| n as f64 * 0.01 + if n > 900 { 2.0 } else { 0.0 }).unwrap();
        assert!(found.samples.abs_diff(2_000_000) < 20_000, "{found:?}");
    }
}
