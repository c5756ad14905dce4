//! Lengths of windows, and the distance of their begins.

use crate::check;
use onbeat_runtime::{Error, Seconds};

/// Most samples of a window or from one window to the next: 2⁴⁰.
const MOST: f64 = 1_099_511_627_776.0;

/// Lengths as they are given.
#[derive(Debug, Clone, Copy)]
pub(super) struct GivenLengths {
    pub window: Option<Seconds>,
    pub samples: Option<u64>,
    pub hop: Option<Seconds>,
    pub hop_samples: Option<u64>,
}

/// Lengths in samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Lengths {
    /// Length of a window.
    pub window: u64,
    /// Samples from the begin of a window to the begin of the next.
    pub hop: u64,
}

impl GivenLengths {
    /// Checks what can be checked without a sample rate.
    pub fn check(&self) -> Result<(), Error> {
        match (self.window, self.samples) {
            (Some(_), Some(_)) => {
                return Err(Error::new("has both `window` and `samples`: give one of them"));
            }
            (None, None) => return Err(Error::new("needs `window` or `samples`: give one of them")),
            _ => {}
        }
        if self.hop.is_some() && self.hop_samples.is_some() {
            return Err(Error::new("has both `hop` and `hop_samples`: give one of them"));
        }
        let fix = "leave it out for the default";
        if let Some(samples) = self.samples {
            check::within("samples", samples as f64, 1.0, MOST, "take a shorter window")?;
        }
        if let Some(samples) = self.hop_samples {
            check::within("hop_samples", samples as f64, 1.0, MOST, fix)?;
        }
        Ok(())
    }

    /// Lengths at this sample rate, in hertz.
    pub fn at(&self, rate_hz: f64) -> Result<Lengths, Error> {
        let window = match self.window {
            Some(window) => samples("window", window, rate_hz)?,
            None => self.samples.unwrap_or(1),
        };
        let hop = match self.hop {
            Some(hop) => samples("hop", hop, rate_hz)?,
            None => self.hop_samples.unwrap_or(window),
        };
        Ok(Lengths { window, hop })
    }
}

/// A time in whole samples, at least 1.
pub(crate) fn samples(name: &str, Seconds(time_s): Seconds, rate_hz: f64) -> Result<u64, Error> {
    check::rate(rate_hz)?;
    let samples = (time_s * rate_hz).round();
    if (1.0..=MOST).contains(&samples) {
        return Ok(samples as u64);
    }
    Err(Error::new(format!(
        "`{name}` is {time_s} s, which is {samples:.0} samples at {rate_hz} Hz: it must be from 1 to {MOST} samples"
    )))
}
