//! Filters of first order that stop one frequency: 0 Hz, or any for complex samples.

use super::notch::half_width;
use crate::check;
use crate::dsp::{FirSample, not_finite};
use num_complex::Complex;
use onbeat_runtime::{Error, Hertz, Map, Operator, operator};
use std::f64::consts::{PI, TAU};
use std::marker::PhantomData;

/// Outputs below this magnitude count as 0, because numbers that are nearly 0 take a hundred times as long.
const SILENCE: f64 = 1e-30;

/// `y[n] = gain (x[n] − turn x[n−1]) + keep turn y[n−1]`, for one part or two of a sample.
#[derive(Debug, Clone, Copy)]
struct FirstOrder {
    gain: f64,
    keep: f64,
    turn: Complex<f64>,
    last_in: Complex<f64>,
    last_out: Complex<f64>,
}

impl Default for FirstOrder {
    fn default() -> Self {
        let zero = Complex::new(0.0, 0.0);
        FirstOrder { gain: 1.0, keep: 0.0, turn: Complex::new(1.0, 0.0), last_in: zero, last_out: zero }
    }
}

impl FirstOrder {
    /// Sets the tangent of half the angle from the stopped frequency to the edge at −3 dB.
    fn set_width(&mut self, width: f64) {
        (self.gain, self.keep) = (1.0 / (1.0 + width), (1.0 - width) / (1.0 + width));
    }

    fn forget(&mut self) {
        (self.last_in, self.last_out) = (Complex::default(), Complex::default());
    }

    #[inline(always)]
    fn kept(&mut self, x: Complex<f64>, y: Complex<f64>) -> Complex<f64> {
        self.last_in = x;
        self.last_out = if y.re.abs() + y.im.abs() < SILENCE { Complex::default() } else { y };
        self.last_out
    }

    /// Filters around 0 Hz.
    #[inline(always)]
    fn straight(&mut self, x: Complex<f64>) -> Complex<f64> {
        let y = (x - self.last_in) * self.gain + self.last_out * self.keep;
        self.kept(x, y)
    }

    #[inline(always)]
    fn turned(&mut self, x: Complex<f64>) -> Complex<f64> {
        let y = (x - self.turn * self.last_in) * self.gain + self.turn * self.last_out * self.keep;
        self.kept(x, y)
    }
}

#[doc = include_str!("../about/dc_block.md")]
#[derive(Debug, Clone, Operator)]
#[operator(name = "dc.block", summary = "removes a constant from a signal", prepare = Self::prepare)]
pub struct DcBlock<T: FirSample> {
    /// Frequency with a gain of −3 dB, below half of the sample rate. The constant decays by 55 dB in
    /// 1 / `cutoff`.
    #[parameter(default = "10 Hz", above = 0, settable)]
    cutoff: Hertz,
    /// Sample rate; 0 before it is known.
    rate_hz: f64,
    filter: FirstOrder,
    not_finite: u64,
    sample: PhantomData<T>,
}

impl<T: FirSample> DcBlock<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        if self.rate_hz > 0.0 {
            let fix = "use a higher sample rate";
            check::below_half("cutoff", self.cutoff.0, self.rate_hz, "sample", fix)?;
            self.filter.set_width((PI * self.cutoff.0 / self.rate_hz).tan());
        }
        Ok(())
    }
}

#[operator]
impl<T: FirSample> Map for DcBlock<T> {
    type Sample = T;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        self.rate_hz = rate_hz;
        self.filter.forget();
        self.prepare()
    }

    fn map(&mut self, samples: &mut [T]) {
        let floats: &mut [f32] = bytemuck::cast_slice_mut(samples);
        for sample in floats.chunks_exact_mut(T::FLOATS) {
            if !sample.iter().all(|part| part.is_finite()) {
                sample.fill(0.0);
                self.not_finite += 1;
                continue;
            }
            let x = Complex::new(sample[0].into(), sample.get(1).map_or(0.0, |part| (*part).into()));
            let y = self.filter.straight(x);
            sample.iter_mut().zip([y.re, y.im]).for_each(|(part, y)| *part = y as f32);
        }
    }

    fn note(&self) -> Option<String> {
        not_finite(self.not_finite, "were replaced by 0")
    }
}

#[doc = include_str!("../about/notch.md")]
#[derive(Debug, Clone, Operator)]
#[operator(
    name = "notch.complex",
    summary = "stops one frequency, positive or negative, such as a carrier",
    prepare = Self::prepare
)]
pub struct ComplexNotch {
    /// The frequency that is stopped, positive or negative; its magnitude must be below half of the sample
    /// rate. Its mirror image passes.
    #[parameter(settable, example = "-3 kHz")]
    frequency: Hertz,
    /// Quality, from 0.1 to 10000: the frequency divided by the width of the notch, between the points with a
    /// gain of −3 dB.
    #[parameter(default = 30.0, min = 0.1, max = 10000, settable)]
    q: f64,
    /// Sample rate; 0 before it is known.
    rate_hz: f64,
    filter: FirstOrder,
    not_finite: u64,
}

impl ComplexNotch {
    fn prepare(&mut self) -> Result<(), Error> {
        check::finite("frequency", self.frequency.0)?;
        if self.rate_hz > 0.0 {
            self.filter.set_width((half_width(self.frequency.0, self.q, self.rate_hz)? / 2.0).tan());
            self.filter.turn = Complex::from_polar(1.0, TAU * self.frequency.0 / self.rate_hz);
        }
        Ok(())
    }
}

#[operator]
impl Map for ComplexNotch {
    type Sample = Complex<f32>;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        self.rate_hz = rate_hz;
        self.filter.forget();
        self.prepare()
    }

    fn map(&mut self, samples: &mut [Complex<f32>]) {
        for sample in samples {
            if !sample.is_finite() {
                *sample = Complex::new(0.0, 0.0);
                self.not_finite += 1;
                continue;
            }
            let y = self.filter.turned(Complex::new(sample.re.into(), sample.im.into()));
            *sample = Complex::new(y.re as f32, y.im as f32);
        }
    }

    fn note(&self) -> Option<String> {
        not_finite(self.not_finite, "were replaced by 0")
    }
}
