//! The controller that keeps two clocks in step.
//!
//! The delay from one device to the other changes by the difference of the two rates and by the correction of
//! the resampler. The controller is proportional and integral: with a gain of 2 w and an integral gain of w²,
//! the loop has two equal poles at -w, so it does not swing. The integral becomes the difference of the
//! clocks. A difference of d that begins at once moves the delay by at most d / (e w). Two low-pass filters
//! with a corner of 10 w keep the jitter of single measurements out of the ratio.

/// Corner of the loop, in radians per second: at first, in the end, and the time constant from one to the
/// other, in seconds.
const FIRST: f64 = 0.5;
const LAST: f64 = 0.1;
const SETTLING_S: f64 = 8.0;
/// Largest correction: crystals are right within 0.01 %, bad ones within 0.1 %.
pub(super) const MOST: f64 = 0.002;

/// Keeps a delay where it is, by the ratio of a resampler.
#[derive(Debug, Clone, Default)]
pub(super) struct ClockServo {
    /// Seconds of stream so far.
    time_s: f64,
    /// The error, filtered once and twice.
    filtered: [f64; 2],
    /// Difference of the clocks, as a share.
    integral: f64,
    correction: f64,
}

impl ClockServo {
    /// Takes the error of the delay (positive: too long), measured after `span_s` of the stream, both in
    /// seconds. Returns the correction: how many more samples the resampler has to make, as a share.
    pub fn take(&mut self, error_s: f64, span_s: f64) -> f64 {
        self.time_s += span_s;
        let corner = LAST + (FIRST - LAST) * (-self.time_s / SETTLING_S).exp();
        let share = 1.0 - (-10.0 * corner * span_s).exp();
        self.filtered[0] += share * (error_s - self.filtered[0]);
        self.filtered[1] += share * (self.filtered[0] - self.filtered[1]);
        let integral = self.integral - corner * corner * self.filtered[1] * span_s;
        let wanted = integral - 2.0 * corner * self.filtered[1];
        self.correction = wanted.clamp(-MOST, MOST);
        // While the correction is at its limit, the integral does not run away.
        if self.correction == wanted {
            self.integral = integral;
        }
        self.correction
    }

    /// The correction in force, as a share.
    pub fn correction(&self) -> f64 {
        self.correction
    }

    /// Forgets the error, not the difference of the clocks: the delay was set again.
    pub fn set_again(&mut self) {
        self.filtered = [0.0; 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Seconds until the loop has settled.
    const SETTLED_S: f64 = 60.0;

    /// Runs the loop for ten minutes with clocks that differ by a share. Returns the largest error of the
    /// delay from the beginning and after it has settled, in seconds, and the correction at the end.
    fn run(difference: f64, chunk_s: f64, mut jitter: impl FnMut() -> f64) -> (f64, f64, f64) {
        let (mut servo, mut delay_s, mut time_s) = (ClockServo::default(), 0.0f64, 0.0);
        let (mut worst, mut settled) = (0.0f64, 0.0f64);
        while time_s < 600.0 {
            let correction = servo.take(delay_s + jitter(), chunk_s);
            delay_s += chunk_s * (correction + difference);
            time_s += chunk_s;
            worst = worst.max(delay_s.abs());
            if time_s > SETTLED_S {
                settled = settled.max(delay_s.abs());
            }
        }
        (worst, settled, servo.correction())
    }

    #[test]
    fn clocks_are_kept_in_step() {
        for ppm in [-500.0, -100.0, 0.0, 100.0, 500.0] {
            let (worst, settled, correction) = run(ppm * 1e-6, 0.005, || 0.0);
            assert!(worst < 1.5e-3, "{ppm} ppm: {worst} s");
            assert!(settled < 0.1e-3, "{ppm} ppm: {settled} s");
            assert!((correction * 1e6 + ppm).abs() < 0.1, "{ppm} ppm: {correction}");
        }
    }

    #[test]
    fn a_difference_beyond_the_limit_is_not_followed_for_ever() {
        let mut servo = ClockServo::default();
        for _ in 0..100_000 {
            servo.take(0.1, 0.005);
        }
        assert_eq!(servo.correction(), -MOST);
        servo.set_again();
        let after = (0..2000).map(|_| servo.take(-0.002, 0.005)).fold(0.0f64, |_, last| last);
        assert!(after > 0.0, "{after}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Times of arrival that jitter by 4 ms, as those of a timer with 250 Hz do.
        #[test]
        fn jitter_is_not_followed(
            ppm in -500.0..500.0f64,
            chunk_s in 0.001..0.03f64,
            seed in any::<u64>(),
        ) {
            let mut state = seed | 1;
            let jitter = move || {
                // Xorshift, from 0 to 4 ms.
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 11) as f64 / (1u64 << 53) as f64 * 0.004
            };
            let (_, settled, correction) = run(ppm * 1e-6, chunk_s, jitter);
            // The mean of the jitter, 2 ms, is taken for a delay.
            prop_assert!((settled - 0.002).abs() < 0.7e-3, "{settled} s");
            prop_assert!((correction * 1e6 + ppm).abs() < 150.0, "{correction}");
        }
    }
}
