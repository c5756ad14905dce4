//! Recursive filters given by coefficients.

use super::sections::{SectionFilter, of_coefficients};
use crate::dsp::FirSample;
use crate::equalizer::MOST_BANDS;
use onbeat_runtime::{Error, Map, Operator, operator};
use std::marker::PhantomData;

#[doc = include_str!("../about/iir_sos.md")]
#[derive(Debug, Clone, Operator)]
#[operator(name = "iir.sos", summary = "recursive filter with given coefficients", prepare = Self::prepare)]
pub struct Sos<T: FirSample> {
    /// The sections of second order, from 1 to 32, each `[b0, b1, b2, a0, a1, a2]`, as SciPy's designs give
    /// them with `output="sos"`.
    #[parameter(example = [[0.25, 0.5, 0.25, 1.0, -0.2, 0.2]])]
    sos: Vec<[f64; 6]>,
    /// Number of interleaved channels, from 1 to 64.
    #[parameter(default = 1, min = 1, max = 64)]
    channels: usize,
    filter: SectionFilter,
    sample: PhantomData<T>,
}

impl<T: FirSample> Sos<T> {
    fn prepare(&mut self) -> Result<(), Error> {
        if self.sos.is_empty() || self.sos.len() > MOST_BANDS {
            return Err(Error::new(format!(
                "`sos` has {} sections: it must have from 1 to {MOST_BANDS}; use several operators for more",
                self.sos.len()
            )));
        }
        of_coefficients(&self.sos).map(drop)
    }
}

#[operator]
impl<T: FirSample> Map for Sos<T> {
    type Sample = T;

    fn start(&mut self, rate_hz: f64) -> Result<(), Error> {
        self.filter.start::<T>(&of_coefficients(&self.sos)?, self.channels, rate_hz);
        Ok(())
    }

    fn map(&mut self, samples: &mut [T]) {
        self.filter.map(samples);
    }

    fn note(&self) -> Option<String> {
        self.filter.note()
    }
}
