//! The 12 MHz counters of receivers.

/// Ticks per second.
const TICKS_HZ: f64 = 12e6;
/// Number of values of a counter: it has 48 bits.
const COUNT: u64 = 1 << 48;
/// Time from the start of the preamble to the end of bit 56, at which receivers read the counter.
const AFTER_S: f64 = 64e-6;
/// Counter of frames whose time and place were computed from several receivers (the text `MLAT`).
const COMPUTED: u64 = 0xff00_4d4c_4154;

/// Returns the counter for the time at which a preamble starts, in seconds.
pub(super) fn ticks(time_s: f64) -> u64 {
    // Saturates at both ends; NaN is 0.
    let ticks = ((time_s + AFTER_S) * TICKS_HZ).round() as i64;
    ticks.rem_euclid(COUNT as i64).cast_unsigned()
}

/// Returns the time in seconds at which the preamble started; `None` for a frame without a time.
pub(super) fn time_s(ticks: Option<u64>) -> Option<f64> {
    let ticks = ticks.filter(|ticks| *ticks != 0 && *ticks != COMPUTED)?;
    Some(ticks as f64 / TICKS_HZ - AFTER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back() {
        for expected_s in [0.0, 0.0001, 0.178, 3600.0, 1e6, 2e7] {
            let back_s = time_s(Some(ticks(expected_s))).unwrap();
            assert!((back_s - expected_s).abs() <= 0.5 / TICKS_HZ + 1e-8, "{expected_s}: {back_s}");
        }
        assert_eq!([None, Some(0), Some(COMPUTED)].map(time_s), [None; 3]);
        // 271 days later.
        let end_s = COUNT as f64 / TICKS_HZ;
        assert!((time_s(Some(ticks(end_s + 1.0))).unwrap() - 1.0).abs() < 1e-6);
        for odd in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            assert!(ticks(odd) < COUNT);
        }
    }
}
