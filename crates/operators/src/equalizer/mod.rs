//! Equalizers: cascades of filters of second order.
//!
//! | type | description |
//! |---|---|
//! | [`Band`], [`BandType`] | one filter, by frequency, gain and quality |
//! | [`Equalizer`] | several bands one after the other: `equalizer` |

mod band;
mod bank;
mod cascade;
mod kinds;

pub(crate) use band::BiquadWeights;
pub use band::{Band, BandType};
pub(crate) use bank::CascadeBank;
pub(crate) use kinds::add_kinds;

use crate::check;
use onbeat_runtime::{Error, Map};

/// Most bands. More would not fit the processor's registers.
pub(crate) const MOST_BANDS: usize = 32;

#[doc = include_str!("../about/equalizer.md")]
///
/// ```
/// use onbeat_operators::equalizer::{Band, BandType, Equalizer};
/// use onbeat_runtime::Map;
///
/// let hum = Band { shape: BandType::Notch, frequency_hz: 50.0, gain_db: None, q: 10.0 };
/// let mut equalizer = Equalizer::new(1, vec![hum])?;
/// equalizer.start(48e3)?;
/// let mut samples: Vec<f32> = (0..48_000).map(|n| (n as f32 * 50.0 / 48e3 * 6.283_185_5).sin()).collect();
/// equalizer.map(&mut samples);
/// assert!(samples[40_000..].iter().all(|y| y.abs() < 1e-3));
/// # Ok::<(), onbeat_runtime::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Equalizer {
    channels: usize,
    bands: Vec<Band>,
    /// The filters, once the sample rate is known.
    bank: Option<CascadeBank>,
    not_finite: u64,
}

impl Equalizer {
    /// Creates an equalizer for this number of channels.
    ///
    /// # Errors
    /// When there are not 1 to 64 channels and 1 to 32 bands, or a band has a value that is wrong for every
    /// sample rate. A frequency that is not below half of the sample rate is an error when the rate is known.
    pub fn new(channels: usize, bands: Vec<Band>) -> Result<Self, Error> {
        check::within("channels", channels as f64, 1.0, 64.0, "split the stream with `deinterleave`")?;
        if bands.is_empty() || bands.len() > MOST_BANDS {
            return Err(Error::new(format!(
                "`bands` has {} entries: it must have from 1 to {MOST_BANDS}; use several equalizers for more",
                bands.len()
            )));
        }
        bands.iter().enumerate().try_for_each(|(number, band)| band.check(number))?;
        Ok(Equalizer { channels, bands, bank: None, not_finite: 0 })
    }
}

impl Map for Equalizer {
    type Sample = f32;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        let rate_hz = rate_hz / self.channels as f64;
        let weights = |(number, band): (usize, &Band)| band.weights(number, rate_hz);
        let filters = self.bands.iter().enumerate().map(weights).collect::<Result<Vec<_>, _>>()?;
        self.bank = Some(CascadeBank::new(&filters, self.channels));
        Ok(())
    }

    fn map(&mut self, samples: &mut [f32]) {
        for x in samples.iter_mut().filter(|x| !x.is_finite()) {
            *x = 0.0;
            self.not_finite += 1;
        }
        if let Some(bank) = &mut self.bank {
            bank.run(samples);
        }
    }

    fn note(&self) -> Option<String> {
        crate::dsp::not_finite(self.not_finite, "counted as 0")
    }
}
