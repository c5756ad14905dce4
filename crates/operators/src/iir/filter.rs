//! Butterworth and Chebyshev filters.

use super::design::{IirShape, sections};
use super::prototype::{IirFamily, Prototype};
use super::sections::SectionFilter;
use crate::check;
use crate::dsp::FirSample;
use crate::equalizer::BiquadWeights;
use onbeat_runtime::{Decibels, Error, Hertz, Map, Operator, operator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// Least edge as a share of the sample rate. Below, double precision does not suffice.
const LEAST: f64 = 1e-5;

/// Response of a recursive filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IirResponse {
    /// Passes below `cutoff`.
    LowPass,
    /// Passes above `cutoff`.
    HighPass,
    /// Passes from `low` to `high`.
    BandPass,
    /// Stops from `low` to `high`.
    BandStop,
}

#[doc = include_str!("../about/iir.md")]
#[derive(Debug, Clone, Operator)]
#[operator(
    name = "iir",
    summary = "recursive filter: Butterworth or Chebyshev",
    prepare = Self::prepare
)]
pub struct Iir<T: FirSample> {
    /// What it passes: `low-pass`, `high-pass`, `band-pass` or `band-stop`.
    #[parameter(example = "low-pass")]
    response: IirResponse,
    /// Order, from 1 to 16. A band filter has twice as many poles.
    #[parameter(default = 4, min = 1, max = 16)]
    order: usize,
    /// Design: `butterworth`, flat; `chebyshev1`, with a `ripple` in the pass band; `chebyshev2`, with an
    /// `attenuation` that the stop band keeps.
    #[parameter(default)]
    family: IirFamily,
    /// Edge of a low-pass or high-pass filter: its gain there is −3 dB (`butterworth`), −`ripple`
    /// (`chebyshev1`) or −`attenuation` (`chebyshev2`).
    #[parameter(above = 0, settable, example = "3 kHz")]
    cutoff: Option<Hertz>,
    /// Lower edge of a band filter, with the gain that is said at `cutoff`.
    #[parameter(above = 0, settable)]
    low: Option<Hertz>,
    /// Upper edge of a band filter.
    #[parameter(above = 0, settable)]
    high: Option<Hertz>,
    /// Ripple in the pass band of a `chebyshev1` filter, from 0.001 to 20 dB: its gain is between −`ripple`
    /// and 0 dB there.
    #[parameter(min = "0.001 dB", max = "20 dB")]
    ripple: Option<Decibels>,
    /// Attenuation in the stop band of a `chebyshev2` filter, from 3 to 200 dB.
    #[parameter(min = "3 dB", max = "200 dB")]
    attenuation: Option<Decibels>,
    /// Number of interleaved channels, from 1 to 64; the sample rate of a channel is that of the stream
    /// divided by it.
    #[parameter(default = 1, min = 1, max = 64)]
    channels: usize,
    /// Rate of a channel; 0 before it is known.
    rate_hz: f64,
    filter: SectionFilter,
    sample: PhantomData<T>,
}

impl<T: FirSample> Iir<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        let is_band = matches!(self.response, IirResponse::BandPass | IirResponse::BandStop);
        match (is_band, self.cutoff, self.low, self.high) {
            (false, Some(_), None, None) => {}
            (false, ..) => {
                return Err(Error::new("this response needs `cutoff`, and neither `low` nor `high`"));
            }
            (true, None, Some(low), Some(high)) if low.0 < high.0 => {}
            (true, None, Some(low), Some(high)) => {
                return Err(Error::new(format!("`low` is {low}: it must be below `high`, which is {high}")));
            }
            (true, ..) => return Err(Error::new("this response needs `low` and `high`, and no `cutoff`")),
        }
        match (self.family, self.ripple, self.attenuation) {
            (IirFamily::Butterworth, None, None)
            | (IirFamily::Chebyshev1, Some(_), None)
            | (IirFamily::Chebyshev2, None, Some(_)) => {}
            (IirFamily::Butterworth, ..) => {
                return Err(Error::new("`butterworth` takes neither `ripple` nor `attenuation`"));
            }
            (IirFamily::Chebyshev1, ..) => {
                return Err(Error::new(
                    "`chebyshev1` needs `ripple`, such as \"0.5 dB\", and no `attenuation`",
                ));
            }
            (IirFamily::Chebyshev2, ..) => {
                return Err(Error::new(
                    "`chebyshev2` needs `attenuation`, such as \"60 dB\", and no `ripple`",
                ));
            }
        }
        if self.rate_hz > 0.0 {
            let weights = self.design()?;
            self.filter.change(weights);
        }
        Ok(())
    }

    /// Edge as a share of the sample rate.
    fn share(&self, name: &str, edge: Option<Hertz>) -> Result<f64, Error> {
        let edge_hz = edge.map_or(0.0, |edge| edge.0);
        check::below_half(name, edge_hz, self.rate_hz, "sample", "use a higher sample rate")?;
        let share = edge_hz / self.rate_hz;
        // Up to half of the rate, the same distance is needed.
        if share < LEAST || 0.5 - share < LEAST {
            return Err(Error::new(format!(
                "`{name}` is {edge_hz}: it must be from {} to {}; decimate first",
                self.rate_hz * LEAST,
                self.rate_hz * (0.5 - LEAST)
            )));
        }
        Ok(share)
    }

    fn design(&self) -> Result<Vec<BiquadWeights>, Error> {
        let band = || -> Result<[f64; 2], Error> {
            let [low, high] = [self.share("low", self.low)?, self.share("high", self.high)?];
            if high - low < LEAST {
                return Err(Error::new(format!(
                    "`high` is {}: it must be at least {} above `low`; decimate first",
                    high * self.rate_hz,
                    LEAST * self.rate_hz
                )));
            }
            Ok([low, high])
        };
        let shape = match self.response {
            IirResponse::LowPass => IirShape::LowPass(self.share("cutoff", self.cutoff)?),
            IirResponse::HighPass => IirShape::HighPass(self.share("cutoff", self.cutoff)?),
            IirResponse::BandPass => band().map(|[low, high]| IirShape::BandPass(low, high))?,
            IirResponse::BandStop => band().map(|[low, high]| IirShape::BandStop(low, high))?,
        };
        let ripple = self.ripple.or(self.attenuation).map_or(0.0, |db| db.0);
        Ok(sections(&Prototype::new(self.family, self.order, ripple), shape))
    }
}

#[operator]
impl<T: FirSample> Map for Iir<T> {
    type Sample = T;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        self.rate_hz = rate_hz / self.channels as f64;
        let filters = self.design()?;
        self.filter.start::<T>(&filters, self.channels, rate_hz);
        Ok(())
    }

    fn map(&mut self, samples: &mut [T]) {
        self.filter.map(samples);
    }

    fn note(&self) -> Option<String> {
        self.filter.note()
    }
}
