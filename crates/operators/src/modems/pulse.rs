//! Shapes of symbols.

use crate::packet::mean_taps;
use std::f64::consts::PI;

/// Symbols on each side of a pulse with the root of a raised cosine.
const HALF_SYMBOLS: f64 = 8.0;

/// Taps of the filter that is matched to a pulse of this length in samples, with a gain of 1 at 0 Hz: the
/// square root of a raised cosine (Proakis, *Digital Communications*, 5th edition, 9.2-37 transformed), or
/// for a roll-off of 0 the mean over a symbol.
pub(super) fn matched_taps(period: f64, roll_off: f64) -> Vec<f32> {
    if roll_off <= 0.0 {
        return mean_taps(period, 1.0);
    }
    let half = (HALF_SYMBOLS * period).round() as i64;
    let taps: Vec<f64> = (-half..=half).map(|n| root_raised_cosine(n as f64 / period, roll_off)).collect();
    let sum: f64 = taps.iter().sum();
    taps.iter().map(|tap| (tap / sum) as f32).collect()
}

/// The pulse at this time, in symbols.
fn root_raised_cosine(time: f64, roll_off: f64) -> f64 {
    let b = roll_off;
    if time.abs() < 1e-9 {
        return 1.0 - b + 4.0 * b / PI;
    }
    let x = 4.0 * b * time;
    let below = 1.0 - x * x;
    if below.abs() < 1e-9 {
        // The limit at |t| = 1 / (4 b).
        let (sin, cos) = (PI / (4.0 * b)).sin_cos();
        return b * std::f64::consts::FRAC_1_SQRT_2 * ((1.0 + 2.0 / PI) * sin + (1.0 - 2.0 / PI) * cos);
    }
    ((PI * time * (1.0 - b)).sin() + x * (PI * time * (1.0 + b)).cos()) / (PI * time * below)
}
