//! Filters that pass or stop a band, without delay.

use super::design::{limited_half, sinc, windowed, windowed_sinc};
use super::fir::FirMethod;
use super::polyphase::FirSample;
use super::tap_filter::{TapFilter, Taps};
use crate::check;
use onbeat_runtime::{Decibels, Error, FiniteMemory, Hertz, Kernel, Operator, Progress, operator};

#[doc = include_str!("../about/fir_bands.md")]
#[derive(Debug, Clone, Operator)]
#[operator(
    name = "fir.band_pass",
    summary = "filter without delay that passes a band",
    prepare = Self::check
)]
pub struct BandPass<T: FirSample> {
    /// Lower edge of the band, in the middle of a transition, where the amplitude is halved. For complex
    /// samples it can be negative.
    #[parameter(example = "3 kHz")]
    low: Hertz,
    /// Upper edge of the band, in the middle of a transition. For complex samples it can be negative.
    #[parameter(example = "8 kHz")]
    high: Hertz,
    /// Width of each of the two transitions; narrower ones cost more computation.
    #[parameter(above = 0, example = "2 kHz")]
    transition: Hertz,
    /// Stop-band attenuation; the pass-band ripple is equally small.
    #[parameter(default = "60 dB", min = "20 dB", max = "120 dB")]
    attenuation: Decibels,
    /// How to compute: `direct`, each output at once; `fft`, faster for long filters, but each output waits
    /// for its block of up to 16 times as many samples as the filter has taps; `auto`, whichever is faster.
    #[parameter(default)]
    method: FirMethod,
    filter: TapFilter<T>,
}

impl<T: FirSample> BandPass<T> {
    fn check(&mut self) -> Result<(), Error> {
        self.edges().check()
    }

    fn edges(&self) -> BandEdges {
        BandEdges::new::<T>([self.low, self.high, self.transition], self.attenuation)
    }

    fn taps(&self, rate_hz: f64) -> Result<Taps, Error> {
        self.edges().pass(rate_hz)
    }
}

#[doc = include_str!("../about/fir_bands.md")]
#[derive(Debug, Clone, Operator)]
#[operator(
    name = "fir.band_stop",
    summary = "filter without delay that stops a band",
    prepare = Self::check
)]
pub struct BandStop<T: FirSample> {
    /// Lower edge of the stopped band, in the middle of a transition, where the amplitude is halved. For
    /// complex samples it can be negative.
    #[parameter(example = "9 kHz")]
    low: Hertz,
    /// Upper edge of the stopped band, in the middle of a transition. For complex samples it can be negative.
    #[parameter(example = "12 kHz")]
    high: Hertz,
    /// Width of each of the two transitions; narrower ones cost more computation.
    #[parameter(above = 0, example = "2 kHz")]
    transition: Hertz,
    /// Stop-band attenuation; the pass-band ripple is equally small.
    #[parameter(default = "60 dB", min = "20 dB", max = "120 dB")]
    attenuation: Decibels,
    /// How to compute: `direct`, each output at once; `fft`, faster for long filters, but each output waits
    /// for its block of up to 16 times as many samples as the filter has taps; `auto`, whichever is faster.
    #[parameter(default)]
    method: FirMethod,
    filter: TapFilter<T>,
}

impl<T: FirSample> BandStop<T> {
    fn check(&mut self) -> Result<(), Error> {
        self.edges().check()
    }

    fn edges(&self) -> BandEdges {
        BandEdges::new::<T>([self.low, self.high, self.transition], self.attenuation)
    }

    fn taps(&self, rate_hz: f64) -> Result<Taps, Error> {
        self.edges().stop(rate_hz)
    }
}

#[doc = include_str!("../about/fir_bands.md")]
#[derive(Debug, Clone, Operator)]
#[operator(name = "fir.high_pass", summary = "high-pass filter without delay", prepare = Self::check)]
pub struct HighPass<T: FirSample> {
    /// Middle of the transition between stop band and pass band, where the amplitude is halved. Complex
    /// samples pass above it and below its negative.
    #[parameter(above = 0, example = "3 kHz")]
    cutoff: Hertz,
    /// Width of the transition; a narrower one costs more computation.
    #[parameter(above = 0, example = "2 kHz")]
    transition: Hertz,
    /// Stop-band attenuation; the pass-band ripple is equally small.
    #[parameter(default = "60 dB", min = "20 dB", max = "120 dB")]
    attenuation: Decibels,
    /// How to compute: `direct`, each output at once; `fft`, faster for long filters, but each output waits
    /// for its block of up to 16 times as many samples as the filter has taps; `auto`, whichever is faster.
    #[parameter(default)]
    method: FirMethod,
    filter: TapFilter<T>,
}

impl<T: FirSample> HighPass<T> {
    fn check(&mut self) -> Result<(), Error> {
        not_below_half("cutoff", self.cutoff.0, self.transition.0, "use a narrower transition")
    }

    fn taps(&self, rate_hz: f64) -> Result<Taps, Error> {
        check::rate(rate_hz)?;
        let [cutoff_hz, transition_hz] = [self.cutoff.0, self.transition.0];
        room_above("cutoff", cutoff_hz, transition_hz, rate_hz)?;
        let half = limited_half(transition_hz, self.attenuation.0, rate_hz)?;
        Ok(Taps::real(stopped(cutoff_hz / rate_hz, half, self.attenuation.0)))
    }
}

/// High-pass of `2 * half + 1` taps with a gain of 1 at half of the sample rate.
fn stopped(cutoff: f64, half: usize, attenuation_db: f64) -> Vec<f64> {
    windowed(|n| middle(n) - sinc(cutoff, n), half, attenuation_db, 0.5)
}

/// The filter that changes nothing, from its middle on.
fn middle(n: usize) -> f64 {
    if n == 0 { 1.0 } else { 0.0 }
}

/// Decibels by which the design of a band on both sides of 0 Hz aims deeper: the errors of the two add up, to
/// twice as much at worst.
const BOTH_DB: f64 = 6.0;

/// A band and its transitions, in hertz.
#[derive(Debug, Clone, Copy)]
pub(super) struct BandEdges {
    pub low: f64,
    pub high: f64,
    pub transition: f64,
    pub attenuation_db: f64,
    /// Whether the band has no mirror image at negative frequencies.
    pub is_one_sided: bool,
}

impl BandEdges {
    fn new<T: FirSample>([low, high, transition]: [Hertz; 3], attenuation: Decibels) -> Self {
        let (low, high, transition) = (low.0, high.0, transition.0);
        BandEdges { low, high, transition, attenuation_db: attenuation.0, is_one_sided: T::FLOATS == 2 }
    }

    /// Checks everything that does not depend on the sample rate.
    pub fn check(&self) -> Result<(), Error> {
        check::finite("low", self.low)?;
        check::finite("high", self.high)?;
        if self.high - self.low < self.transition {
            return Err(Error::new(format!(
                "`high` is {}: it must be at least {}, a `transition` above `low`; give a wider band or a \
                 narrower transition",
                self.high,
                self.low + self.transition
            )));
        }
        if self.is_one_sided {
            return Ok(());
        }
        let fix = "use a narrower transition, or a low-pass or high-pass filter";
        not_below_half("low", self.low, self.transition, fix)
    }

    fn half(&self, rate_hz: f64) -> Result<usize, Error> {
        check::rate(rate_hz)?;
        if self.is_one_sided {
            let fix = "use a higher sample rate";
            check::below_half("low", self.low, rate_hz, "sample", fix)?;
            check::below_half("high", self.high, rate_hz, "sample", fix)?;
        } else {
            room_above("high", self.high, self.transition, rate_hz)?;
        }
        limited_half(self.transition, self.aim_db(), rate_hz)
    }

    fn aim_db(&self) -> f64 {
        if self.is_one_sided { self.attenuation_db } else { self.attenuation_db + BOTH_DB }
    }

    /// Taps that pass the band, with a gain of 1 in its middle.
    pub fn pass(&self, rate_hz: f64) -> Result<Taps, Error> {
        let half = self.half(rate_hz)?;
        let [low, high] = [self.low / rate_hz, self.high / rate_hz];
        let centre = (low + high) / 2.0;
        Ok(if self.is_one_sided {
            Taps::turned(&windowed_sinc((high - low) / 2.0, half, self.aim_db()), centre)
        } else {
            let ideal = |n| sinc(high, n) - sinc(low, n);
            Taps::real(windowed(ideal, half, self.aim_db(), centre))
        })
    }

    /// Taps that stop the band, with a gain of 1 at the frequency that is farthest from it.
    pub fn stop(&self, rate_hz: f64) -> Result<Taps, Error> {
        let half = self.half(rate_hz)?;
        let [low, high] = [self.low / rate_hz, self.high / rate_hz];
        Ok(if self.is_one_sided {
            Taps::turned(&stopped((high - low) / 2.0, half, self.aim_db()), (low + high) / 2.0)
        } else {
            let ideal = |n| middle(n) - (sinc(high, n) - sinc(low, n));
            let farthest = if low + high < 0.5 { 0.5 } else { 0.0 };
            Taps::real(windowed(ideal, half, self.aim_db(), farthest))
        })
    }
}

/// Accepts an edge whose transition begins at 0 Hz or above.
fn not_below_half(name: &str, edge_hz: f64, transition_hz: f64, fix: &str) -> Result<(), Error> {
    if edge_hz >= transition_hz / 2.0 {
        return Ok(());
    }
    let least = transition_hz / 2.0;
    Err(Error::new(format!(
        "`{name}` is {edge_hz}: it must be at least {least}, half of `transition`; {fix}"
    )))
}

/// Accepts an edge whose transition ends at half of the sample rate or below.
fn room_above(name: &str, edge_hz: f64, transition_hz: f64, rate_hz: f64) -> Result<(), Error> {
    let most = (rate_hz - transition_hz) / 2.0;
    if edge_hz <= most {
        return Ok(());
    }
    Err(Error::new(format!(
        "`{name}` is {edge_hz}: it must be at most {most}, half of `transition` below half of the sample rate; \
         use a narrower transition or a higher sample rate"
    )))
}

/// The filters differ in their taps alone.
macro_rules! kernels {
    ($($filter:ident)*) => { $(
        #[operator]
        impl<T: FirSample> Kernel for $filter<T> {
            type In = T;
            type Out = T;

            fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
                self.filter = TapFilter::new(self.taps(rate_hz)?, self.method);
                Ok(())
            }

            fn process(&mut self, input: &[T], output: &mut [T]) -> Progress {
                self.filter.process(input, output)
            }

            fn finish(&mut self, output: &mut [T]) -> usize {
                self.filter.finish(output)
            }

            fn replica(&self) -> Option<Self> {
                (self.method == FirMethod::Direct).then(|| self.clone())
            }

            fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
                if self.method == FirMethod::Direct { Some(&mut self.filter) } else { None }
            }
        }
    )* };
}

kernels!(BandPass BandStop HighPass);
