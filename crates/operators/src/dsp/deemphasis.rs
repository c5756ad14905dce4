//! De-emphasis: the treble cut of an FM receiver.

use std::f64::consts::TAU;

use num_complex::Complex;
use onbeat_runtime::{Error, Map};

use super::not_finite;
use crate::check;

/// Highest audio frequency of FM broadcasting.
const TOP_HZ: f64 = 15e3;

/// Sample rate from which on the phase is right, too.
const LEAST_HZ: f64 = 40e3;

/// Number of inputs in an output.
const TAPS: usize = 5;

/// Samples of a block.
const BLOCK: usize = 8;

#[doc = include_str!("../about/deemphasis.md")]
#[derive(Debug, Clone)]
pub struct Deemphasis {
    tau_s: f64,
    /// Weights of the current input and of those before it.
    feed: [f64; TAPS],
    /// Powers 1 to `BLOCK` of the previous output's weight.
    poles: [f64; BLOCK],
    /// The inputs before the current one, the latest first.
    last: [f64; TAPS - 1],
    /// Number of the next sample in its block.
    at: usize,
    /// What the samples of this block alone give.
    own: f64,
    /// The last output before this block.
    before: f64,
    not_finite: u64,
}

impl Deemphasis {
    /// Creates the filter with a time constant in seconds: 50e-6 in Europe, 75e-6 in America.
    ///
    /// # Errors
    /// When `tau_s` is not above 0 and at most 1.
    pub fn new(tau_s: f64) -> Result<Self, Error> {
        check::positive("tau", tau_s)?;
        check::within("tau", tau_s, 0.0, 1.0, "it is in seconds: 50 µs is 50e-6")?;
        Ok(Deemphasis {
            tau_s,
            feed: [0.0; TAPS],
            poles: [0.0; BLOCK],
            last: [0.0; TAPS - 1],
            at: 0,
            own: 0.0,
            before: 0.0,
            not_finite: 0,
        })
    }

    /// Filters one sample, the one with number `at` in its block.
    #[inline(always)]
    fn filter(&mut self, sample: &mut f32, at: usize) -> f64 {
        let is_finite = sample.is_finite();
        self.not_finite += u64::from(!is_finite);
        let x = if is_finite { f64::from(*sample) } else { 0.0 };
        let [b0, b1, b2, b3, b4] = self.feed;
        let [x1, x2, x3, x4] = self.last;
        let fed = (b0 * x + b1 * x1) + (b2 * x2 + b3 * x3) + b4 * x4;
        self.own = fed + self.poles[0] * self.own;
        self.last = [x, x1, x2, x3];
        let y = self.own + self.poles[at] * self.before;
        *sample = y as f32;
        y
    }

    /// Begins a block after this output.
    #[inline(always)]
    fn begin(&mut self, before: f64) {
        // Silence would decay to denormal numbers, which cost a hundred times as much.
        self.before = if before.abs() < 1e-30 { 0.0 } else { before };
        self.own = 0.0;
    }

    fn filter_one(&mut self, sample: &mut f32) {
        let y = self.filter(sample, self.at);
        self.at = (self.at + 1) % BLOCK;
        if self.at == 0 {
            self.begin(y);
        }
    }
}

impl Map for Deemphasis {
    type Sample = f32;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        if 2.0 * rate_hz * self.tau_s < 1.0 {
            return Err(Error::new(format!(
                "`tau` is {}: it must be at least {}, half a sample at {rate_hz} samples per second; a \
                 faster filter has no effect here: leave it out",
                self.tau_s,
                0.5 / rate_hz
            )));
        }
        let pole = (-1.0 / (rate_hz * self.tau_s)).exp();
        self.feed = weights(rate_hz, self.tau_s, pole);
        let mut power = 1.0;
        self.poles = std::array::from_fn(|_| {
            power *= pole;
            power
        });
        (self.last, self.at) = ([0.0; TAPS - 1], 0);
        self.begin(0.0);
        Ok(())
    }

    fn map(&mut self, samples: &mut [f32]) {
        let into_block = (self.at.next_multiple_of(BLOCK) - self.at).min(samples.len());
        let (first, samples) = samples.split_at_mut(into_block);
        let (blocks, last) = samples.as_chunks_mut::<BLOCK>();
        first.iter_mut().for_each(|sample| self.filter_one(sample));
        for block in blocks {
            let mut y = 0.0;
            for (at, sample) in block.iter_mut().enumerate() {
                y = self.filter(sample, at);
            }
            self.begin(y);
        }
        last.iter_mut().for_each(|sample| self.filter_one(sample));
    }

    fn note(&self) -> Option<String> {
        not_finite(self.not_finite, "counted as 0")
    }
}

/// Weights of the inputs.
///
/// At most rates they come near the analogue filter in magnitude and phase: the part of the response in its
/// direction is 1 at 0 Hz and three more frequencies, the part across it is 0 at one.
///
/// Below 40 kHz that is out of reach up to 15 kHz, and the magnitude alone is right.
fn weights(rate_hz: f64, tau_s: f64, pole: f64) -> [f64; TAPS] {
    let top_hz = TOP_HZ.max(rate_hz * 0.1).min(rate_hz * 0.5);
    let angle = |part: f64| TAU * part * top_hz / rate_hz;
    // What the pole leaves to the inputs.
    let wanted = |w: f64| {
        let of_pole = Complex::new(1.0, 0.0) - Complex::from_polar(pole, -w);
        of_pole / Complex::new(1.0, w * rate_hz * tau_s)
    };
    if rate_hz < LEAST_HZ {
        let [b0, b1, b2] = by_magnitude([0.0, 0.62, 0.96].map(angle), |w| wanted(w).norm_sqr());
        return [b0, b1, b2, 0.0, 0.0];
    }
    let row = |part: f64, is_across: bool| {
        let turn = |tap: usize| Complex::from_polar(1.0, -angle(part) * tap as f64) / wanted(angle(part));
        std::array::from_fn(|tap| if is_across { turn(tap).im } else { turn(tap).re })
    };
    let rows = [row(0.0, false), row(0.4, false), row(0.65, false), row(0.9, false), row(0.45, true)];
    solved(rows, [1.0, 1.0, 1.0, 1.0, 0.0])
}

/// Solves linear equations by elimination.
fn solved(mut rows: [[f64; TAPS]; TAPS], mut right: [f64; TAPS]) -> [f64; TAPS] {
    for at in 0..TAPS {
        let size = |row: &usize| rows[*row][at].abs();
        let best = (at..TAPS).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(at);
        rows.swap(at, best);
        right.swap(at, best);
        let (pivot, value) = (rows[at], right[at]);
        for (place, row) in rows.iter_mut().enumerate().filter(|(place, _)| *place != at) {
            let factor = row[at] / pivot[at];
            row.iter_mut().zip(&pivot).for_each(|(cell, of_pivot)| *cell -= factor * of_pivot);
            right[place] -= factor * value;
        }
    }
    std::array::from_fn(|at| right[at] / rows[at][at])
}

/// Weights of three inputs with the wanted squared magnitude at three angles, of which the first is 0.
///
/// The squared magnitude is `c0 + 2 c1 cos w + 2 c2 cos 2w`. Three points give `c`; the zeros of that
/// polynomial inside the unit circle give the weights.
fn by_magnitude(at: [f64; 3], wanted: impl Fn(f64) -> f64) -> [f64; 3] {
    let wanted = at.map(wanted);
    // As a polynomial in u = 1 - cos w, through u = 0 and two more points: v0 + v1 u + v2 u^2.
    let u = at.map(|w| 2.0 * (w / 2.0).sin().powi(2));
    let slope = |point: usize| (wanted[point] - wanted[0]) / u[point];
    let v2 = (slope(2) - slope(1)) / (u[2] - u[1]);
    let v1 = slope(1) - v2 * u[1];
    // Its roots; the second form keeps its digits where v2 is small.
    let root = Complex::new(v1 * v1 - 4.0 * v2 * wanted[0], 0.0).sqrt();
    let q = if v1 < 0.0 { (root - v1) / 2.0 } else { (-root - v1) / 2.0 };
    let zeros = [Complex::new(wanted[0], 0.0) / q, q / v2].map(|u| {
        let x = Complex::new(1.0, 0.0) - u;
        let part = (x * x - 1.0).sqrt();
        let z = if (x - part).norm() < 1.0 { x - part } else { x + part };
        if z.is_finite() { z } else { Complex::new(0.0, 0.0) }
    });
    let feed = [1.0, -(zeros[0] + zeros[1]).re, (zeros[0] * zeros[1]).re];
    let gain = wanted[0].sqrt() / feed.iter().sum::<f64>();
    feed.map(|weight| weight * gain)
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::*;

    /// Response at a frequency, from the impulse response.
    fn response(rate_hz: f64, tau_s: f64, hz: f64) -> Complex<f64> {
        let mut filter = Deemphasis::new(tau_s).unwrap();
        filter.start(rate_hz).unwrap();
        let mut impulse = vec![0.0; (rate_hz * tau_s * 40.0) as usize + 40];
        impulse[0] = 1.0;
        filter.map(&mut impulse);
        let turn = |(n, y): (usize, &f32)| Complex::from_polar(f64::from(*y), -TAU * hz / rate_hz * n as f64);
        impulse.iter().enumerate().map(turn).sum()
    }

    fn analogue(tau_s: f64, hz: f64) -> Complex<f64> {
        Complex::new(1.0, 0.0) / Complex::new(1.0, TAU * hz * tau_s)
    }

    /// Checks the deviations from the analogue filter that the page states.
    #[test]
    fn has_the_magnitude_of_the_analogue_filter() {
        let rates = [(32e3, 0.21), (44.1e3, 0.14), (48e3, 0.075), (96e3, 0.02), (240e3, 0.02), (2.4e6, 0.02)];
        for (rate_hz, limit_db) in rates {
            for tau_s in [50e-6, 75e-6] {
                for hz in (0..=150).map(|khz| f64::from(khz) * 1e2) {
                    let error = response(rate_hz, tau_s, hz).norm() / analogue(tau_s, hz).norm();
                    let error_db = 20.0 * error.log10();
                    assert!(error_db.abs() < limit_db, "{error_db} dB at {hz} Hz of {rate_hz} Hz");
                }
            }
        }
        // Below 30 kHz, half the sample rate takes the place of 15 kHz.
        for hz in [100.0, 1e3, 4e3, 7.9e3] {
            let error_db = 20.0 * (response(16e3, 50e-6, hz).norm() / analogue(50e-6, hz).norm()).log10();
            assert!(error_db.abs() < 0.35, "{error_db} dB at {hz} Hz of 16 kHz");
        }
    }

    #[test]
    fn has_its_phase_too() {
        for (rate_hz, [upto_8, upto_15]) in [(44.1e3, [0.5, 18.0]), (48e3, [0.4, 13.0]), (96e3, [0.1, 1.5])] {
            for hz in (1..=150).map(|khz| f64::from(khz) * 1e2) {
                let error = (response(rate_hz, 50e-6, hz) / analogue(50e-6, hz)).arg().to_degrees();
                let limit = if hz <= 8e3 { upto_8 } else { upto_15 };
                assert!(error.abs() < limit, "{error} degrees at {hz} Hz of {rate_hz} Hz");
            }
        }
    }

    #[test]
    fn recovers_from_bad_samples_and_falls_silent() {
        let mut filter = Deemphasis::new(50e-6).unwrap();
        filter.start(48e3).unwrap();
        let mut samples = [1.0, f32::NAN, f32::INFINITY, 0.0, 0.0];
        filter.map(&mut samples);
        assert!(samples.iter().all(|y| y.is_finite()));
        let mut silence = [0.0; 1000];
        filter.map(&mut silence);
        assert_eq!(silence[999], 0.0);
    }

    #[test]
    fn refuses_what_cannot_be() {
        for tau_s in [0.0, -1.0, f64::NAN] {
            assert!(Deemphasis::new(tau_s).is_err());
        }
        let error = Deemphasis::new(50.0).unwrap_err().to_string();
        assert!(error.contains("`tau` is 50") && error.contains("50 µs is 50e-6"), "{error}");
        let error = Deemphasis::new(1e-6).unwrap().start(48e3).unwrap_err().to_string();
        assert!(error.contains("`tau` is 0.000001") && error.contains("leave it out"), "{error}");
    }
}
