//! Design of the bands of an equalizer.
//!
//! The formulas are those of Robert Bristow-Johnson, "Cookbook formulae for audio equalizer biquad filter
//! coefficients" (W3C Group Note, 2021): the bilinear transforms of analogue filters, with the frequency
//! prewarped.

use crate::check;
use onbeat_runtime::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Shape of a band's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BandType {
    /// The gain at the frequency, 0 dB far from it.
    Peaking,
    /// The gain below the frequency, half of it (in dB) at the frequency, 0 dB above.
    LowShelf,
    /// The gain above the frequency, half of it (in dB) at the frequency, 0 dB below.
    HighShelf,
    /// 0 dB below the frequency, falling by 12 dB per octave above.
    LowPass,
    /// 0 dB above the frequency, falling by 12 dB per octave below.
    HighPass,
    /// Nothing at the frequency, 0 dB far from it.
    Notch,
    /// 0 dB at the frequency, falling by 6 dB per octave on both sides far from it.
    BandPass,
    /// 0 dB everywhere; the phase turns by 180 degrees at the frequency, and by 360 above it.
    AllPass,
}

/// One band of an [`Equalizer`](super::Equalizer): a filter of second order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// Shape of the response.
    pub shape: BandType,
    /// Centre, corner or middle of the slope, in hertz.
    pub frequency_hz: f64,
    /// Gain in decibels, from −60 to 60; `None` for the types that have no gain.
    pub gain_db: Option<f64>,
    /// Quality, from 0.01 to 1000. For `Peaking`, `Notch` and `BandPass`, the frequency divided by the width
    /// of the band; for the others, how steep the slope is, without a peak up to √½.
    pub q: f64,
}

/// Weights of a filter of second order, of the inputs (`b`) and of the outputs (`a`), the newest first. That
/// of the newest output is 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BiquadWeights {
    pub b: [f64; 3],
    pub a: [f64; 2],
}

impl BiquadWeights {
    /// The filter that changes nothing.
    pub const IDENTITY: Self = BiquadWeights { b: [1.0, 0.0, 0.0], a: [0.0, 0.0] };
}

impl BandType {
    fn has_gain(self) -> bool {
        matches!(self, BandType::Peaking | BandType::LowShelf | BandType::HighShelf)
    }
}

impl Band {
    /// Checks everything that does not depend on the sample rate.
    pub(super) fn check(&self, number: usize) -> Result<(), Error> {
        let name = |key: &str| format!("bands[{number}].{key}");
        check::positive(&name("frequency"), self.frequency_hz)?;
        check::within(&name("q"), self.q, 0.01, 1000.0, "0.71 has no peak")?;
        match self.gain_db {
            Some(gain_db) if self.shape.has_gain() => {
                check::within(&name("gain"), gain_db, -60.0, 60.0, "it is in decibels")
            }
            None if !self.shape.has_gain() => Ok(()),
            Some(_) => {
                let text = "has no effect on a band of this type: leave it out, or use another `type`";
                Err(Error::new(format!("`{}` {text}", name("gain"))))
            }
            None => Err(Error::new(format!("`bands[{number}]` needs `gain`, in decibels: add it"))),
        }
    }

    /// Designs the filter for samples at this rate.
    pub(super) fn weights(&self, number: usize, rate_hz: f64) -> Result<BiquadWeights, Error> {
        let name = format!("bands[{number}].frequency");
        check::below_half(&name, self.frequency_hz, rate_hz, "sample", "leave the band out")?;
        let (sin, cos) = (TAU * self.frequency_hz / rate_hz).sin_cos();
        let alpha = sin / (2.0 * self.q);
        // The square root of the gain as a factor.
        let root = 10f64.powf(self.gain_db.unwrap_or(0.0) / 40.0);
        let (more, less) = (root + 1.0, root - 1.0);
        let slope = 2.0 * root.sqrt() * alpha;
        let plain = [1.0 + alpha, -2.0 * cos, 1.0 - alpha];
        let (b, a) = match self.shape {
            BandType::Peaking => (
                [1.0 + alpha * root, -2.0 * cos, 1.0 - alpha * root],
                [1.0 + alpha / root, -2.0 * cos, 1.0 - alpha / root],
            ),
            BandType::LowShelf => (
                [
                    root * (more - less * cos + slope),
                    2.0 * root * (less - more * cos),
                    root * (more - less * cos - slope),
                ],
                [more + less * cos + slope, -2.0 * (less + more * cos), more + less * cos - slope],
            ),
            BandType::HighShelf => (
                [
                    root * (more + less * cos + slope),
                    -2.0 * root * (less + more * cos),
                    root * (more + less * cos - slope),
                ],
                [more - less * cos + slope, 2.0 * (less - more * cos), more - less * cos - slope],
            ),
            BandType::LowPass => ([(1.0 - cos) / 2.0, 1.0 - cos, (1.0 - cos) / 2.0], plain),
            BandType::HighPass => ([(1.0 + cos) / 2.0, -1.0 - cos, (1.0 + cos) / 2.0], plain),
            BandType::Notch => ([1.0, -2.0 * cos, 1.0], plain),
            BandType::BandPass => ([alpha, 0.0, -alpha], plain),
            BandType::AllPass => ([1.0 - alpha, -2.0 * cos, 1.0 + alpha], plain),
        };
        Ok(BiquadWeights { b: b.map(|b| b / a[0]), a: [a[1] / a[0], a[2] / a[0]] })
    }
}
