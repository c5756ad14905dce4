//! Low-pass filter and decimator.

use onbeat_runtime::{Error, FiniteMemory, Kernel, Progress, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::design::LowPass;
use super::polyphase::{FirSample, Polyphase};
use crate::check;

/// Taps for each sample of the factor from which on blocks are faster. Measured with AVX-512, where sums
/// are fastest: with 201 taps, 2048 complex samples take 14.6 µs in sums and 4.4 µs in blocks, with 61
/// taps 4.6 and 4.0 µs.
const LONG: usize = 64;

#[doc = include_str!("../about/fir.md")]
#[derive(Debug, Clone)]
pub struct FirDecimator<T> {
    factor: u32,
    method: FirMethod,
    plan: FirDesign,
    filter: Polyphase<T>,
}

/// How a [`FirDecimator`] computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FirMethod {
    /// Sums of products: each output at once.
    #[default]
    Direct,
    /// Fourier transforms of blocks (overlap-save). Faster for long filters, but each output waits for the
    /// end of its block, of at most 8 times as many samples as the filter has taps (or as `factor`, if
    /// that is more), or twice that for real samples. The last bits depend on the processor: the error is
    /// below 2·10⁻⁷ of the sum of the taps' magnitudes, for samples of magnitudes up to 1.
    Fft,
    /// `fft` for filters that are faster with it, from 64 taps for each sample of the factor on, else
    /// `direct`.
    Auto,
}

#[derive(Debug, Clone)]
enum FirDesign {
    /// Designed when the rate is known; values that are not given are shares of the output rate.
    Design { cutoff_hz: Option<f64>, transition_hz: Option<f64>, attenuation_db: f64 },
    /// Given by the user, independent of the rate.
    Taps(Vec<f64>),
}

impl<T: FirSample> FirDecimator<T> {
    /// Creates a filter that is designed when its sample rate is known.
    ///
    /// # Errors
    /// When `factor` is 0 or above 4096, or when `low_pass` has a value that is wrong for every sample rate.
    pub fn new(factor: u32, low_pass: LowPass) -> Result<Self, Error> {
        low_pass.check()?;
        let LowPass { cutoff_hz, transition_hz, attenuation_db } = low_pass;
        Self::for_rate(factor, Some(cutoff_hz), Some(transition_hz), attenuation_db)
    }

    /// Creates a filter that suits its output rate. Unless values are given, it passes 80 % of half that rate
    /// and stops from half of it on, so that there is no aliasing.
    ///
    /// # Errors
    /// Those of [`FirDecimator::new`]. Errors that depend on the rate appear when it is known.
    pub fn for_rate(
        factor: u32,
        cutoff_hz: Option<f64>,
        transition_hz: Option<f64>,
        attenuation_db: f64,
    ) -> Result<Self, Error> {
        // A missing value is assumed to suit those that are given.
        let cutoff = cutoff_hz.or(transition_hz).unwrap_or(1.0);
        let transition = transition_hz.unwrap_or(cutoff);
        LowPass { cutoff_hz: cutoff, transition_hz: transition, attenuation_db }.check()?;
        Self::build(factor, FirDesign::Design { cutoff_hz, transition_hz, attenuation_db })
    }

    /// Creates a filter with these taps, independent of the rate.
    ///
    /// # Errors
    /// Those of [`FirDecimator::new`]. Also when the number of taps is even (then there is no middle tap, and
    /// no whole delay to compensate) or one of them is not finite.
    pub fn with_taps(factor: u32, taps: &[f32]) -> Result<Self, Error> {
        if taps.len().is_multiple_of(2) {
            return Err(Error::new(format!(
                "`taps` has {} values: their number must be odd, so that one is the middle; add a zero",
                taps.len()
            )));
        }
        if let Some(at) = taps.iter().position(|tap| !tap.is_finite()) {
            return Err(Error::new(format!("`taps[{at}]` is {}: it must be a finite number", taps[at])));
        }
        Self::build(factor, FirDesign::Taps(taps.iter().map(|&tap| tap.into()).collect()))
    }

    fn build(factor: u32, plan: FirDesign) -> Result<Self, Error> {
        check::within("factor", factor.into(), 1.0, 4096.0, "1 filters without decimation")?;
        let filter = Polyphase::new(&[1.0], 1, factor as usize);
        Ok(FirDecimator { factor, method: FirMethod::Direct, plan, filter })
    }

    /// Sets how the filter computes.
    #[must_use]
    pub fn method(mut self, method: FirMethod) -> Self {
        self.method = method;
        self
    }

    fn filter(&self, taps: &[f64]) -> Polyphase<T> {
        self.method.filter(taps, self.factor as usize)
    }
}

impl FirMethod {
    /// Makes a filter of an odd number of taps that keeps every `factor`-th output.
    pub(super) fn filter<T: FirSample>(self, taps: &[f64], factor: usize) -> Polyphase<T> {
        match self {
            FirMethod::Fft => Polyphase::in_blocks(taps, factor),
            FirMethod::Auto if taps.len() >= LONG * factor => Polyphase::in_blocks(taps, factor),
            FirMethod::Direct | FirMethod::Auto => Polyphase::new(taps, 1, factor),
        }
    }
}

impl<T: FirSample> Kernel for FirDecimator<T> {
    type In = T;
    type Out = T;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        self.filter = match &self.plan {
            FirDesign::Taps(taps) => self.filter(taps),
            &FirDesign::Design { cutoff_hz, transition_hz, attenuation_db } => {
                check::rate(rate_hz)?;
                // Frequencies above half of the output rate fold down. With the cutoff below that, aliases
                // reach at worst the transition, never the pass band.
                let (which, fix) = match self.factor {
                    1 => ("sample", "lower `cutoff`"),
                    _ => ("output", "lower `cutoff`, or use a smaller `factor`"),
                };
                let out_hz = rate_hz / f64::from(self.factor);
                let low_pass = LowPass {
                    cutoff_hz: cutoff_hz.unwrap_or(0.45 * out_hz),
                    transition_hz: transition_hz.unwrap_or(0.1 * out_hz),
                    attenuation_db,
                };
                low_pass.check()?;
                check::below_half("cutoff", low_pass.cutoff_hz, out_hz, which, fix)?;
                self.filter(&low_pass.taps(rate_hz)?)
            }
        };
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
        // Blocks are counted from the start of the stream.
        (self.method == FirMethod::Direct).then(|| self.clone())
    }

    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        if self.method == FirMethod::Direct { Some(self) } else { None }
    }
}

impl<T: FirSample> FiniteMemory for FirDecimator<T> {
    fn memory(&self) -> usize {
        self.filter.memory().unwrap_or(0)
    }

    fn resume(&mut self, _: u64) {
        self.filter.resume();
    }
}
