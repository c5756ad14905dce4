//! The signal of the FM receiver example, synthesised: two stations and noise.
//!
//! A receiver can only be tested against a known signal. This module computes the signal from formulas,
//! sample by sample, and keeps the melody for comparison. `examples/make_fm_recording.rs` writes the files; a
//! test checks that they match this module.
//!
//! | | station A | station B |
//! |---|---|---|
//! | offset from the tuned frequency | +40 kHz | −60 kHz |
//! | power | 0.1444 of full scale | the same |
//! | audio | [`melody()`] | a tone that glides from 300 Hz to 4 kHz |
//! | peak deviation | 25 kHz | 25 kHz |
//! | pre-emphasis | 50 µs | 50 µs |
//!
//! The noise is white and Gaussian, 20 dB below a station in a channel of 66 kHz. That is the bandwidth by
//! Carson's rule, `2 (25 kHz + 8 kHz)`, for audio up to 8 kHz. The sum is rounded to signed bytes, 1/128 per
//! step, whose own noise is 27 dB below.

mod melody;
mod noise;

use std::f64::consts::TAU;

pub use melody::melody;
use noise::Noise;

/// Sample rate of the recording, in hertz.
pub const RATE_HZ: f64 = 256e3;
/// Number of samples: two seconds.
pub const SAMPLES: usize = 512_000;
/// Frequency of station A, in hertz from the tuned frequency.
pub const STATION_A_HZ: f64 = 40e3;
/// Frequency of station B, in hertz from the tuned frequency.
pub const STATION_B_HZ: f64 = -60e3;
/// Frequency deviation of both stations for audio of amplitude 1, in hertz.
pub const DEVIATION_HZ: f64 = 25e3;
/// Time constant of both stations' pre-emphasis, in seconds.
pub const EMPHASIS_S: f64 = 50e-6;
/// Bandwidth of a station's channel, in hertz.
pub const CHANNEL_HZ: f64 = 66e3;

/// Amplitude of each station; full scale is 1. Both together and four standard deviations of the noise just
/// fit.
const AMPLITUDE: f64 = 0.38;
/// Power of a station relative to the noise in its channel: 20 dB.
const CARRIER_TO_NOISE: f64 = 100.0;

/// Computes the recording: [`SAMPLES`] pairs of in-phase and quadrature.
pub fn fm_recording() -> Vec<[i8; 2]> {
    let a = phases(STATION_A_HZ, melody::at);
    let b = phases(STATION_B_HZ, glide);
    // The noise over the whole rate exceeds that in the channel; half of it is in each component.
    let noise_power = AMPLITUDE * AMPLITUDE / CARRIER_TO_NOISE * (RATE_HZ / CHANNEL_HZ);
    let deviation = (noise_power / 2.0).sqrt();
    let mut noise = Noise::new(20);
    let byte = |x: f64| (x * 128.0).round().clamp(-128.0, 127.0) as i8;
    a.zip(b)
        .map(|(a, b)| {
            let (n, m) = noise.pair();
            let i = AMPLITUDE * (a.cos() + b.cos()) + deviation * n;
            let q = AMPLITUDE * (a.sin() + b.sin()) + deviation * m;
            [byte(i), byte(q)]
        })
        .collect()
}

/// The phase of a station in radians, sample by sample.
///
/// Pre-emphasis turns audio `m` into `m + tau m'`, and FM integrates it: the phase is `2π (carrier t +
/// deviation (∫m dt + tau m))`. The lift therefore needs neither filter nor derivative, and is the exact
/// inverse of an analogue de-emphasis. The integral is Simpson's, whose error at 4 kHz is 3·10⁻⁸.
fn phases(carrier_hz: f64, audio: impl Fn(f64) -> f64) -> impl Iterator<Item = f64> {
    let (mut integral, mut before) = (0.0, audio(0.0));
    (0..SAMPLES).map(move |n| {
        if n > 0 {
            let middle = audio((n as f64 - 0.5) / RATE_HZ);
            let now = audio(n as f64 / RATE_HZ);
            integral += (before + 4.0 * middle + now) / 6.0 / RATE_HZ;
            before = now;
        }
        // Whole turns of the carrier are subtracted while they are still exact.
        let carrier = (carrier_hz * n as f64 / RATE_HZ).fract();
        TAU * (carrier + DEVIATION_HZ * (integral + EMPHASIS_S * before))
    })
}

/// Station B's audio at a time in seconds: a tone that glides from 300 Hz to 4 kHz within the two seconds.
fn glide(t: f64) -> f64 {
    // With pre-emphasis, sqrt(1 + (2π 4 kHz 50 µs)²) = 1.61 times this at the top, 0.97.
    0.6 * (TAU * t * (300.0 + 0.5 * t * (4000.0 - 300.0) / 2.0)).sin()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest distance of a station's instantaneous frequency from its carrier, in hertz.
    fn peak_deviation_hz(carrier_hz: f64, audio: impl Fn(f64) -> f64) -> f64 {
        let phases: Vec<f64> = phases(carrier_hz, audio).collect();
        let deviation_hz = |pair: &[f64]| {
            let turns = (pair[1] - pair[0]) / TAU - carrier_hz / RATE_HZ;
            ((turns - turns.round()) * RATE_HZ).abs()
        };
        phases.windows(2).map(deviation_hz).fold(0.0, f64::max)
    }

    #[test]
    fn deviation_is_used_and_not_exceeded() {
        let used = 0.95 * DEVIATION_HZ..=DEVIATION_HZ;
        let (a, b) = (peak_deviation_hz(STATION_A_HZ, melody::at), peak_deviation_hz(STATION_B_HZ, glide));
        assert!(used.contains(&a) && used.contains(&b), "{a} Hz and {b} Hz");
    }
}
