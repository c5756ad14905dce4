//! Sample rate conversion by a ratio.

use onbeat_runtime::{Error, FiniteMemory, Kernel, Progress, Ratio};

use super::design;
use super::polyphase::{FirSample, Polyphase};
use crate::check;

/// The largest numerator or denominator in lowest terms. It allows 44 100 to 48 000 (160/147) and most odd
/// radio rates, and at the default quality it keeps the table of taps below half a megabyte.
const LARGEST_TERM: u32 = 1024;

/// Quality of a [`Resampler`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quality {
    /// Pass band as a share of the lower Nyquist frequency; the rest is the transition.
    pub pass_band: f64,
    /// Attenuation of images and aliases in decibels; the pass-band ripple is equally small.
    pub attenuation_db: f64,
}

impl Default for Quality {
    /// Flat over 80 %, −80 dB: below the noise of a 12-bit converter, at about 50 multiplications per output
    /// when the rate goes up.
    fn default() -> Self {
        Quality { pass_band: 0.8, attenuation_db: 80.0 }
    }
}

#[doc = include_str!("../about/resample.md")]
#[derive(Debug, Clone)]
pub struct Resampler<T> {
    target: Target,
    quality: Quality,
    filter: Polyphase<T>,
}

#[derive(Debug, Clone, Copy)]
enum Target {
    /// In lowest terms.
    Ratio(u32, u32),
    /// Whole hertz; the ratio follows from the input's rate.
    Rate(f64),
}

impl<T: FirSample> Resampler<T> {
    /// Converts by a fixed ratio `up / down`, which is reduced to lowest terms.
    ///
    /// # Errors
    /// When `up` or `down` is 0 or, reduced, above 1024; when a quality is out of range.
    pub fn new(up: u32, down: u32, quality: Quality) -> Result<Self, Error> {
        let (up, down) = reduced(("up", up), ("down", down))?;
        Self::build(Target::Ratio(up, down), quality)
    }

    /// Converts to a rate in whole hertz; the input's rate must be in whole hertz too.
    ///
    /// # Errors
    /// When `rate_hz` is not a whole number from 1 to 4 294 967 295; when a quality is out of range.
    pub fn to_rate(rate_hz: f64, quality: Quality) -> Result<Self, Error> {
        whole_hertz("rate", rate_hz)?;
        Self::build(Target::Rate(rate_hz), quality)
    }

    fn build(target: Target, quality: Quality) -> Result<Self, Error> {
        let fix = "0.8 suits most signals, and 1 would need infinitely many taps";
        check::within("pass_band", quality.pass_band, 0.1, 0.98, fix)?;
        let fix = "80 suits most signals, and 120 is the limit of single precision";
        check::within("attenuation", quality.attenuation_db, 20.0, 120.0, fix)?;
        let (up, down) = match target {
            Target::Ratio(up, down) => (up, down),
            Target::Rate(_) => (1, 1),
        };
        Ok(Resampler { target, quality, filter: filter(up as usize, down as usize, quality) })
    }
}

/// Designs the filter at `up` times the input's rate.
fn filter<T: FirSample>(up: usize, down: usize, quality: Quality) -> Polyphase<T> {
    if up == down {
        return Polyphase::new(&[1.0], 1, 1);
    }
    // The lower Nyquist frequency, in cycles per sample of the stretched signal.
    let nyquist = 0.5 / up.max(down) as f64;
    let half = design::half_length((1.0 - quality.pass_band) * nyquist, quality.attenuation_db);
    let half = (half as usize).next_multiple_of(up);
    let cutoff = (1.0 + quality.pass_band) / 2.0 * nyquist;
    let mut taps = design::windowed_sinc(cutoff, half, quality.attenuation_db);
    // Stretching kept one sample of `up`; this factor restores the signal's power.
    taps.iter_mut().for_each(|tap| *tap *= up as f64);
    Polyphase::new(&taps, up, down)
}

fn whole_hertz(name: &str, rate_hz: f64) -> Result<u32, Error> {
    if rate_hz >= 1.0 && rate_hz <= f64::from(u32::MAX) && rate_hz.fract() == 0.0 {
        return Ok(rate_hz as u32);
    }
    Err(Error::new(format!(
        "`{name}` is {rate_hz}: a resampler needs whole hertz from 1 to {}; give the ratio as `up` and \
         `down` instead",
        u32::MAX
    )))
}

/// Reduces a fraction and checks its terms.
fn reduced(up: (&str, u32), down: (&str, u32)) -> Result<(u32, u32), Error> {
    for (name, value) in [up, down] {
        if value == 0 {
            return Err(Error::new(format!("`{name}` is 0: it must be 1 or more")));
        }
    }
    let (mut a, mut b) = (up.1, down.1);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let terms = (up.1 / a, down.1 / a);
    for (name, value) in [(up.0, terms.0), (down.0, terms.1)] {
        if value > LARGEST_TERM {
            return Err(Error::new(format!(
                "`{name}` is {value} once {}/{} is reduced: it must be at most {LARGEST_TERM}; choose rates \
                 with a larger common divisor, or resample in two steps",
                up.1, down.1
            )));
        }
    }
    Ok(terms)
}

impl<T: FirSample> Kernel for Resampler<T> {
    type In = T;
    type Out = T;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        let (up, down) = match self.target {
            Target::Ratio(up, down) => (up, down),
            Target::Rate(target_hz) => {
                check::rate(rate_hz)?;
                let up = whole_hertz("rate", target_hz)?;
                let down = whole_hertz("sample_rate", rate_hz)?;
                reduced(("rate", up), ("sample_rate", down))?
            }
        };
        self.filter = filter(up as usize, down as usize, self.quality);
        Ok(())
    }

    fn ratio(&self) -> Ratio {
        self.filter.ratio()
    }

    fn process(&mut self, input: &[T], output: &mut [T]) -> Progress {
        self.filter.process(input, output)
    }

    fn finish(&mut self, output: &mut [T]) -> usize {
        self.filter.finish(output)
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        Some(self)
    }
}

impl<T: FirSample> FiniteMemory for Resampler<T> {
    fn memory(&self) -> usize {
        self.filter.memory().unwrap_or(0)
    }

    fn resume(&mut self, _: u64) {
        self.filter.resume();
    }
}
