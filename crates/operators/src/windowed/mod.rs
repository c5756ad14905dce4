//! Measures of windows of a stream: one value for each window.
//!
//! | type | description |
//! |---|---|
//! | [`WindowMeasure`] | mean, root mean square, extremes and spread |
//! | [`Percentile`] | percentile |

mod engine;
mod lengths;
mod operators;
mod ordered;
mod statistics;

pub(crate) use lengths::samples;
pub use operators::{Percentile, WindowMeasure};

pub use statistics::{Highest, Lowest, Mean, PeakToPeak, Rms, StandardDeviation, WindowStatistic};

use crate::mode_s::MagnitudeSample;
use num_complex::Complex;
use onbeat_runtime::{Kind, Registry};

/// The kind of one measure.
fn measure<T: MagnitudeSample, S: WindowStatistic>(name: &'static str, summary: &'static str) -> Kind {
    Kind::operator::<WindowMeasure<T, S>>().named(name).described(summary)
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    for kind in [
        measure::<f32, Mean>("mean", "mean of each window"),
        measure::<f32, Rms>("rms", "root mean square of each window"),
        measure::<Complex<f32>, Rms>("rms.complex", "root mean square magnitude of each window"),
        measure::<f32, StandardDeviation>("std", "standard deviation of each window"),
        measure::<f32, Lowest>("minimum", "lowest sample of each window"),
        measure::<f32, Highest>("maximum", "highest sample of each window"),
        measure::<Complex<f32>, Highest>("maximum.complex", "largest magnitude of each window"),
        measure::<f32, PeakToPeak>("peak_to_peak", "highest less lowest sample of each window"),
        Kind::operator::<Percentile>(),
    ] {
        registry.add(kind);
    }
}
