//! Round numbers along an axis.

/// Returns round values from `low` to `high`, as many as fit, with their labels.
///
/// Steps are 1, 2 or 5 times a power of ten. `most` is the approximate maximum number of ticks.
pub(super) fn ticks(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let span = high - low;
    // A range too small to be represented next to its values has no ticks.
    if !(span.is_finite() && span > 1e-9 * low.abs().max(high.abs()) && most > 0) {
        return Vec::new();
    }
    // Values slightly beyond the range are accepted, because sums of fractions are not exact.
    const SLACK: f64 = 1e-6;
    let least = span / most as f64 * (1.0 - SLACK);
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= least);
    let step = step.unwrap_or(10.0 * power);
    let digits = (-step.log10().floor()).max(0.0) as usize;
    let (first, last) = ((low / step - SLACK).ceil() as i64, (high / step + SLACK).floor() as i64);
    let label = |value: f64| {
        let text = format!("{value:.digits$}");
        if text.trim_start_matches('-').chars().all(|c| matches!(c, '0' | '.')) {
            text.replace('-', "")
        } else {
            text
        }
    };
    (first..=last).map(|n| n as f64 * step).map(|value| (value, label(value))).collect()
}

/// The unit for frequencies of up to this magnitude, and its size in hertz.
pub(super) fn unit(most_hz: f64) -> (&'static str, f64) {
    match most_hz {
        hz if hz >= 1e9 => ("GHz", 1e9),
        hz if hz >= 1e6 => ("MHz", 1e6),
        hz if hz >= 1e3 => ("kHz", 1e3),
        _ => ("Hz", 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (low, high, most, expected) in [
            (-128.0, 127.5, 6, &["-100", "-50", "0", "50", "100"][..]),
            (0.0, 2.0, 4, &["0.0", "0.5", "1.0", "1.5", "2.0"]),
            (-50.0, -15.0, 7, &["-50", "-45", "-40", "-35", "-30", "-25", "-20", "-15"]),
            (99.9, 100.1, 4, &["99.90", "99.95", "100.00", "100.05", "100.10"]),
            (0.0, 1e-3, 2, &["0.0000", "0.0005", "0.0010"]),
            (3.0, 3.0, 4, &[]),
            (0.0, f64::NAN, 4, &[]),
            (1e300, 2e300, 0, &[]),
        ] {
            let labels: Vec<String> = ticks(low, high, most).into_iter().map(|(_, label)| label).collect();
            assert_eq!(labels, expected, "{low} {high}");
        }
    }
}
