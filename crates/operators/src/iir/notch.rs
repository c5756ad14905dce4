//! Notch filters for real samples.

use super::sections::SectionFilter;
use crate::check;
use crate::equalizer::BiquadWeights;
use onbeat_runtime::{Error, Hertz, Map, Operator, operator};
use std::f64::consts::TAU;

#[doc = include_str!("../about/notch.md")]
#[derive(Debug, Clone, Operator)]
#[operator(name = "notch", summary = "stops one frequency, such as hum", prepare = Self::prepare)]
pub struct Notch {
    /// The frequency that is stopped, below half of the sample rate of a channel.
    #[parameter(above = 0, settable, example = "50 Hz")]
    frequency: Hertz,
    /// Quality, from 0.1 to 10000: the frequency divided by the width of the notch, between the points with a
    /// gain of −3 dB.
    #[parameter(default = 30.0, min = 0.1, max = 10000, settable)]
    q: f64,
    /// Number of interleaved channels, from 1 to 64; the sample rate of a channel is that of the stream
    /// divided by it.
    #[parameter(default = 1, min = 1, max = 64)]
    channels: usize,
    /// Rate of a channel; 0 before it is known.
    rate_hz: f64,
    filter: SectionFilter,
}

impl Notch {
    fn prepare(&mut self) -> Result<(), Error> {
        if self.rate_hz > 0.0 {
            let weights = self.weights()?;
            self.filter.change(vec![weights]);
        }
        Ok(())
    }

    fn weights(&self) -> Result<BiquadWeights, Error> {
        let width = half_width(self.frequency.0, self.q, self.rate_hz)?.tan();
        let cos = (TAU * self.frequency.0 / self.rate_hz).cos();
        let gain = 1.0 / (1.0 + width);
        let b = [gain, -2.0 * gain * cos, gain];
        Ok(BiquadWeights { b, a: [b[1], 2.0 * gain - 1.0] })
    }
}

/// Half of the angle of a notch's width, in radians per sample. The width must be below half of the sample
/// rate.
pub(super) fn half_width(frequency_hz: f64, q: f64, rate_hz: f64) -> Result<f64, Error> {
    check::below_half("frequency", frequency_hz, rate_hz, "sample", "use a higher sample rate")?;
    let least_hz = 1e-6 * rate_hz;
    if frequency_hz.abs() < least_hz {
        let fix = "decimate first, or use `dc.block`";
        return Err(Error::new(format!(
            "`frequency` is {frequency_hz}: its magnitude must be at least {least_hz}; {fix}"
        )));
    }
    let width_hz = frequency_hz.abs() / q;
    if width_hz >= rate_hz / 2.0 {
        return Err(Error::new(format!(
            "`q` is {q}: it must be above {}, or the notch would be wider than half of the sample rate",
            2.0 * frequency_hz.abs() / rate_hz
        )));
    }
    Ok(TAU * width_hz / rate_hz / 2.0)
}

#[operator]
impl Map for Notch {
    type Sample = f32;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        check::rate(rate_hz)?;
        self.rate_hz = rate_hz / self.channels as f64;
        let weights = self.weights()?;
        self.filter.start::<f32>(&[weights], self.channels, rate_hz);
        Ok(())
    }

    fn map(&mut self, samples: &mut [f32]) {
        self.filter.map(samples);
    }

    fn note(&self) -> Option<String> {
        self.filter.note()
    }
}
