//! Design of filters with linear phase: windowed sincs with Kaiser's window.
//!
//! The formulas are those of J. F. Kaiser, "Nonrecursive digital filter design using the I0-sinh window
//! function" (1974), as in Oppenheim and Schafer, *Discrete-Time Signal Processing*, section 7.5.

use std::f64::consts::PI;

use onbeat_runtime::Error;

use crate::check;

/// The most taps of a filter. A transition that needs more is almost always a mistake in the unit.
pub(super) const MOST_TAPS: usize = 16_383;

/// Kaiser's formulas are fits and fall short by up to 2 dB. The design aims this many decibels deeper.
const MARGIN_DB: f64 = 2.5;

/// Specification of a low-pass filter.
///
/// It passes up to `cutoff_hz - transition_hz / 2`, stops from `cutoff_hz + transition_hz / 2` on, and halves
/// the amplitude (−6 dB) at `cutoff_hz`. Its gain at 0 Hz is 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowPass {
    /// Middle of the transition, in hertz.
    pub cutoff_hz: f64,
    /// Width of the transition, in hertz. The number of taps is inversely proportional to it.
    pub transition_hz: f64,
    /// Stop-band attenuation in decibels. The pass-band ripple is equally small: 60 dB is ±0.1 %.
    pub attenuation_db: f64,
}

impl LowPass {
    /// Checks everything that does not depend on the sample rate.
    pub(super) fn check(&self) -> Result<(), Error> {
        check::positive("cutoff", self.cutoff_hz)?;
        check::positive("transition", self.transition_hz)?;
        let fix = "60 suits most signals, and 120 is the limit of single precision";
        check::within("attenuation", self.attenuation_db, 20.0, 120.0, fix)?;
        if self.transition_hz > 2.0 * self.cutoff_hz {
            return Err(Error::new(format!(
                "`transition` is {}: it must be at most {}, twice `cutoff`, or nothing would pass; give a \
                 narrower transition",
                self.transition_hz,
                2.0 * self.cutoff_hz
            )));
        }
        Ok(())
    }

    /// Computes the taps for a sample rate: an odd number, symmetric, with sum 1.
    pub(super) fn taps(&self, rate_hz: f64) -> Result<Vec<f64>, Error> {
        let half = limited_half(self.transition_hz, self.attenuation_db, rate_hz)?;
        Ok(windowed_sinc(self.cutoff_hz / rate_hz, half, self.attenuation_db))
    }
}

/// Taps on each side of the middle one for a transition in hertz.
pub(super) fn limited_half(transition_hz: f64, attenuation_db: f64, rate_hz: f64) -> Result<usize, Error> {
    let half = half_length(transition_hz / rate_hz, attenuation_db);
    if half > (MOST_TAPS / 2) as f64 {
        return Err(Error::new(format!(
            "`transition` is {transition_hz}: at {rate_hz} samples per second the filter would need {:.0} taps, \
             and {MOST_TAPS} is the limit; give a wider transition, or decimate in two steps",
            2.0 * half + 1.0
        )));
    }
    Ok(half as usize)
}

/// Taps on each side of the middle one for a transition in cycles per sample; a whole number.
pub(super) fn half_length(transition: f64, attenuation_db: f64) -> f64 {
    // Kaiser's estimate: order = (A - 7.95) / (2.285 * width in radians per sample).
    let order = (attenuation_db + MARGIN_DB - 7.95) / (2.285 * 2.0 * PI * transition);
    (order / 2.0).ceil().max(1.0)
}

/// Computes a low-pass of `2 * half + 1` taps and sum 1, with the cutoff in cycles per sample.
pub(super) fn windowed_sinc(cutoff: f64, half: usize, attenuation_db: f64) -> Vec<f64> {
    windowed(|n| sinc(cutoff, n), half, attenuation_db, 0.0)
}

/// Tap `n` from the middle of the ideal low-pass, with the cutoff in cycles per sample.
pub(super) fn sinc(cutoff: f64, n: usize) -> f64 {
    if n == 0 { 2.0 * cutoff } else { (2.0 * PI * cutoff * n as f64).sin() / (PI * n as f64) }
}

/// Puts Kaiser's window on a symmetric ideal filter, given by its taps from the middle on. The gain is 1 at
/// the frequency `unity`, in cycles per sample.
pub(crate) fn windowed(
    ideal: impl Fn(usize) -> f64,
    half: usize,
    attenuation_db: f64,
    unity: f64,
) -> Vec<f64> {
    let a = attenuation_db + MARGIN_DB;
    let beta = match a {
        a if a > 50.0 => 0.1102 * (a - 8.7),
        a if a > 21.0 => 0.5842 * (a - 21.0).powf(0.4) + 0.07886 * (a - 21.0),
        _ => 0.0,
    };
    let side = |n: usize| {
        let x = n as f64 / half as f64;
        ideal(n) * bessel_i0(beta * (1.0 - x * x).sqrt())
    };
    let right: Vec<f64> = (0..=half).map(side).collect();
    let at_unity = |(n, tap): (usize, &f64)| tap * (2.0 * PI * unity * n as f64).cos();
    let gain = right[0] + 2.0 * right.iter().enumerate().skip(1).map(at_unity).sum::<f64>();
    right[1..].iter().rev().chain(&right).map(|tap| tap / gain).collect()
}

/// The modified Bessel function of the first kind and order zero, by its power series.
fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > sum * 1e-17 {
        term *= quarter / (k * k);
        sum += term;
        k += 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Magnitude of the frequency response, in decibels.
    fn response_db(taps: &[f64], cycles: f64) -> f64 {
        let (mut re, mut im) = (0.0, 0.0);
        for (n, tap) in taps.iter().enumerate() {
            let (sin, cos) = (2.0 * PI * cycles * n as f64).sin_cos();
            re += tap * cos;
            im += tap * sin;
        }
        20.0 * f64::hypot(re, im).log10()
    }

    #[test]
    fn bessel_values() {
        // Abramowitz and Stegun, table 9.8.
        assert!((bessel_i0(0.0) - 1.0).abs() < 1e-15);
        assert!((bessel_i0(1.0) - 1.266_065_877_752_008_4).abs() < 1e-14);
        assert!((bessel_i0(5.0) - 27.239_871_823_604_44).abs() < 1e-11);
    }

    #[test]
    fn keeps_what_it_promises() {
        for (cutoff_hz, transition_hz, attenuation_db) in
            [(46.5e3, 27e3, 60.0), (10e3, 4e3, 80.0), (3e3, 1e3, 40.0), (50e3, 9e3, 100.0)]
        {
            let rate = 256e3;
            let taps = LowPass { cutoff_hz, transition_hz, attenuation_db }.taps(rate).unwrap();
            assert_eq!(taps.len() % 2, 1);
            assert!((taps.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let ripple = 20.0 * (1.0 + 10f64.powf(-attenuation_db / 20.0)).log10();
            for i in 0..=1000 {
                let pass =
                    response_db(&taps, (cutoff_hz - transition_hz / 2.0) / rate * f64::from(i) / 1000.0);
                assert!(pass.abs() < ripple, "{pass} dB in the pass band of {cutoff_hz}");
                let stop = cutoff_hz + transition_hz / 2.0;
                let stop = response_db(&taps, (stop + (rate / 2.0 - stop) * f64::from(i) / 1000.0) / rate);
                assert!(stop < -attenuation_db, "{stop} dB in the stop band of {cutoff_hz}");
            }
            assert!((response_db(&taps, cutoff_hz / rate) + 6.02).abs() < 0.1);
        }
    }

    #[test]
    fn refuses_what_cannot_be() {
        let good = LowPass { cutoff_hz: 1e3, transition_hz: 200.0, attenuation_db: 60.0 };
        assert!(good.check().is_ok());
        let bad = [
            LowPass { cutoff_hz: 0.0, ..good },
            LowPass { cutoff_hz: f64::NAN, ..good },
            LowPass { transition_hz: -1.0, ..good },
            LowPass { transition_hz: 2001.0, ..good },
            LowPass { attenuation_db: 121.0, ..good },
            LowPass { attenuation_db: f64::NAN, ..good },
        ];
        for spec in bad {
            assert!(spec.check().is_err(), "{spec:?}");
        }
        let error = LowPass { transition_hz: 0.5, ..good }.taps(48e3).unwrap_err().to_string();
        assert!(error.contains("`transition` is 0.5") && error.contains("16383 is the limit"), "{error}");
    }
}
