//! Demodulators of digital signals: I/Q samples around 0 Hz in, soft bits out.
//!
//! | type | kind | modulation |
//! |---|---|---|
//! | [`PskDemod`] | `psk.demod` | 2 or 4 phases, differential or not |
//! | [`FskDemod`] | `fsk.demod` | 2 or 4 frequencies |
//!
//! A soft bit is a sample: above 0 for a 1, below 0 for a 0, and near 0 if it is uncertain.

mod driver;
mod fsk;
mod psk;
mod pulse;

pub use fsk::FskDemod;
pub use psk::PskDemod;

use crate::check;
use onbeat_runtime::{Error, Kind, Registry};

/// Samples that are filtered at a time.
const BLOCK: usize = 256;

/// Fewest and most samples per symbol.
const LEAST_PERIOD: f64 = 3.0;
const MOST_PERIOD: f64 = 2000.0;

/// Length of a symbol in samples.
fn period(rate_hz: f64, symbol_hz: f64) -> Result<f64, Error> {
    check::rate(rate_hz)?;
    let period = rate_hz / symbol_hz;
    if period < LEAST_PERIOD {
        return Err(Error::new(format!(
            "`symbol_rate` is {symbol_hz}: it must be at most {}, a third of the sample rate; resample the input to a \
             higher rate",
            rate_hz / LEAST_PERIOD
        )));
    }
    if period > MOST_PERIOD {
        return Err(Error::new(format!(
            "`symbol_rate` is {symbol_hz}: it must be at least {}, a {MOST_PERIOD}th of the sample rate; decimate the \
             input by `fir.decimate`",
            rate_hz / MOST_PERIOD
        )));
    }
    Ok(period)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<PskDemod>());
    registry.add(Kind::operator::<FskDemod>());
}
