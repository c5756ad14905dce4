//! The synthetic signal of two FM stations, and the quality of a receiver's audio.
//!
//! | | station A | station B |
//! |---|---|---|
//! | offset from the tuned frequency | +40 kHz | −60 kHz |
//! | amplitude | 0.38 of full scale | the same |
//! | audio | tones of 400, 1000 and 2500 Hz | a tone of 700 Hz |
//! | peak deviation for audio of amplitude 1 | 25 kHz | 25 kHz |
//! | pre-emphasis | 50 µs | 50 µs |
//!
//! White noise is 40 dB below a station in a channel of 66 kHz. All frequencies are whole hertz, so a second
//! of the signal can be repeated without a seam.

use num_complex::Complex;
use onbeat_operators::recording::{
    CHANNEL_HZ, DEVIATION_HZ, EMPHASIS_S, RATE_HZ, STATION_A_HZ, STATION_B_HZ,
};
use std::f64::consts::TAU;

/// A tone: frequency in hertz and amplitude.
type Tone = (f64, f64);

/// Audio of station A. With pre-emphasis, the amplitudes add up to 0.95.
const TONES_A: &[Tone] = &[(400.0, 0.3), (1000.0, 0.25), (2500.0, 0.3)];
const TONES_B: &[Tone] = &[(700.0, 0.9)];
const AMPLITUDE: f64 = 0.38;
/// Power of a station relative to the noise in its channel: 40 dB.
const CARRIER_TO_NOISE: f64 = 1e4;

/// Sample rate of the audio, in hertz.
pub(super) const AUDIO_HZ: f64 = 48e3;
/// The period that all tones share, in audio samples: 10 ms.
const PERIOD: usize = 480;

/// Samples per second of signal.
pub(super) const SECOND: usize = RATE_HZ as usize;

/// Phase of a station at a time in seconds.
///
/// Pre-emphasis turns audio `m` into `m + tau m'`, and FM integrates it: `2π (carrier t + deviation (∫m dt +
/// tau m))`.
fn phase(carrier_hz: f64, tones: &[Tone], t: f64) -> f64 {
    let audio = |&(hz, size): &Tone| {
        let turn = TAU * hz * t;
        size * (-turn.cos() / (TAU * hz) + EMPHASIS_S * turn.sin())
    };
    TAU * (carrier_hz * t + DEVIATION_HZ * tones.iter().map(audio).sum::<f64>())
}

/// One second of the signal.
pub(super) fn second() -> Vec<Complex<f32>> {
    let noise_power = AMPLITUDE * AMPLITUDE / CARRIER_TO_NOISE * (RATE_HZ / CHANNEL_HZ);
    let deviation = (noise_power / 2.0).sqrt();
    let mut noise = GaussianNoise(0x9e37_79b9_7f4a_7c15);
    let sample = |n: usize| {
        let t = n as f64 / RATE_HZ;
        let (a, b) = (phase(STATION_A_HZ, TONES_A, t), phase(STATION_B_HZ, TONES_B, t));
        let (x, y) = noise.pair();
        let re = AMPLITUDE * (a.cos() + b.cos()) + deviation * x;
        let im = AMPLITUDE * (a.sin() + b.sin()) + deviation * y;
        Complex::new(re as f32, im as f32)
    };
    (0..SECOND).map(sample).collect()
}

/// White Gaussian noise of variance 1: xorshift64*, and the method of Box and Muller.
struct GaussianNoise(u64);

impl GaussianNoise {
    /// A number above 0 and at most 1.
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn pair(&mut self) -> (f64, f64) {
        let (size, turn) = ((-2.0 * self.uniform().ln()).sqrt(), TAU * self.uniform());
        (size * turn.cos(), size * turn.sin())
    }
}

/// Signal-to-noise ratio of received audio in dB: the power of the tones that station A sends, relative to
/// the power of the difference from them. A receiver may delay its audio by up to a millisecond, but an error
/// of the amplitude counts.
///
/// # Errors
/// When there are less than 40 ms of audio.
pub(super) fn snr_db(audio: &[f32]) -> Result<f64, String> {
    // From the middle, far from both ends. Over whole periods, the tones are orthogonal to each other.
    let length = (audio.len() / 2).min(AUDIO_HZ as usize) / PERIOD * PERIOD;
    if length < 2 * PERIOD {
        return Err(format!("it has {} samples of audio: at least {} are needed", audio.len(), 4 * PERIOD));
    }
    let begin = (audio.len() - length) / 2;
    let part = &audio[begin..begin + length];
    let received: Vec<Complex<f64>> =
        TONES_A.iter().map(|&(hz, _)| tone(part, begin, hz, AUDIO_HZ)).collect();
    let power: f64 = part.iter().map(|&y| f64::from(y).powi(2)).sum::<f64>() / length as f64;
    // A tone `size · sin` has the coefficient `size / 2i`; a delay turns it.
    let sent =
        |&(hz, size): &Tone, delay_s: f64| Complex::from_polar(size / 2.0, -TAU / 4.0 - TAU * hz * delay_s);
    let error = |delay_s: f64| -> f64 {
        let each = TONES_A.iter().zip(&received);
        let tones = each.map(|(it, y)| 2.0 * ((y - sent(it, delay_s)).norm_sqr() - y.norm_sqr()));
        power + tones.sum::<f64>()
    };
    let (hz, _) = TONES_A[0];
    let coarse = (received[0] / sent(&TONES_A[0], 0.0)).arg() / -(TAU * hz);
    let best = error(lowest(&error, coarse - 50e-6, coarse + 50e-6));
    let sent_power: f64 = TONES_A.iter().map(|(_, size)| size * size / 2.0).sum();
    Ok(10.0 * (sent_power / best.max(1e-15)).log10())
}

/// Coefficient of a tone in audio at `rate_hz` that begins with sample number `begin`.
pub(super) fn tone(audio: &[f32], begin: usize, hz: f64, rate_hz: f64) -> Complex<f64> {
    let turn = |at: usize| Complex::from_polar(1.0, -TAU * (hz / rate_hz * (begin + at) as f64).fract());
    let sum: Complex<f64> = audio.iter().enumerate().map(|(at, &y)| turn(at) * f64::from(y)).sum();
    sum / audio.len() as f64
}

/// Place of the minimum of a function that has one minimum in the range: golden-section search.
fn lowest(of: &dyn Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    const SHARE: f64 = 0.618_033_988_749_894_9;
    for _ in 0..60 {
        let (a, b) = (high - SHARE * (high - low), low + SHARE * (high - low));
        if of(a) < of(b) {
            high = b;
        } else {
            low = a;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audio(delay_s: f64, gain: f64) -> Vec<f32> {
        let at = |n: usize| {
            let t = n as f64 / AUDIO_HZ - delay_s;
            gain * TONES_A.iter().map(|(hz, size)| size * (TAU * hz * t).sin()).sum::<f64>()
        };
        (0..9_600).map(|n| at(n) as f32).collect()
    }

    #[test]
    fn a_delay_is_free_and_an_error_is_not() {
        for delay_s in [0.0, 13e-6, 0.9e-3, -0.7e-3] {
            let good = snr_db(&audio(delay_s, 1.0)).unwrap();
            assert!(good > 120.0, "{delay_s}: {good}");
            let louder = snr_db(&audio(delay_s, 1.01)).unwrap();
            assert!((louder - 40.0).abs() < 0.1, "{delay_s}: {louder}");
        }
        assert!(snr_db(&[0.0; 100]).unwrap_err().contains("100 samples of audio"));
    }

    #[test]
    fn a_second_has_no_seam() {
        let samples = second();
        let step = |a: Complex<f32>, b: Complex<f32>| (a - b).norm();
        let most = samples.windows(2).map(|pair| step(pair[0], pair[1])).fold(0.0, f32::max);
        assert!(step(samples[SECOND - 1], samples[0]) <= most);
    }
}
