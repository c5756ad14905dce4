//! Sources of computed signals.
//!
//! | type | kind | signal |
//! |---|---|---|
//! | [`ToneSource`] | `tone.source`, `tone.source.complex` | a tone of one frequency |
//! | [`SweepSource`] | `sweep.source`, `sweep.source.complex` | a tone whose frequency rises or falls |
//! | [`NoiseSource`] | `noise.source`, `noise.source.complex` | white noise |
//! | [`ConstantSource`], [`ComplexConstant`] | `constant.source`, `constant.source.complex` | one value |
//!
//! A sample depends on its number in the stream and on the parameters, never on the size of the chunks. All
//! sources send in real time unless `pace` is `fast`.

mod amplitude;
mod constant;
mod noise;
mod oscillator;
mod sweep;
mod tone;

pub use amplitude::Amplitude;
pub use constant::{ComplexConstant, ConstantSource};
pub use noise::{NoiseDistribution, NoiseSource};
pub use sweep::{SweepLaw, SweepSource};
pub use tone::ToneSource;

use num_complex::Complex;
use onbeat_runtime::{Error, Hertz, Kind, Pace, Registry, Sample, Seconds, StreamTiming};

/// A sample that is one part of a complex number, or both.
pub trait SignalSample: Sample {
    /// Numbers in a sample: 1 or 2.
    const PARTS: u32;

    /// Makes a sample of a complex number. A real sample is its real part.
    fn of(re: f64, im: f64) -> Self;
}

impl SignalSample for f32 {
    const PARTS: u32 = 1;

    #[inline(always)]
    fn of(re: f64, _: f64) -> f32 {
        re as f32
    }
}

impl SignalSample for Complex<f32> {
    const PARTS: u32 = 2;

    #[inline(always)]
    fn of(re: f64, im: f64) -> Self {
        Complex::new(re as f32, im as f32)
    }
}

/// Rate, pace and length of a stream: `count` samples, or as many as are due in `duration`.
fn timing(
    sample_rate: Hertz,
    count: Option<u64>,
    duration: Option<Seconds>,
    pace: Pace,
) -> Result<StreamTiming, Error> {
    let rate_hz = sample_rate.0;
    let count = match (count, duration) {
        (Some(_), Some(_)) => {
            return Err(Error::new("has both `count` and `duration`: give one of them, or none"));
        }
        (count, None) => count,
        (None, Some(Seconds(time_s))) => Some((time_s * rate_hz).round() as u64),
    };
    Ok(StreamTiming { rate_hz, pace, count })
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::generator::<ToneSource<f32>>());
    registry.add(Kind::generator::<ToneSource<Complex<f32>>>().named("tone.source.complex"));
    registry.add(Kind::generator::<SweepSource<f32>>());
    registry.add(Kind::generator::<SweepSource<Complex<f32>>>().named("sweep.source.complex"));
    registry.add(Kind::generator::<NoiseSource<f32>>());
    registry.add(Kind::generator::<NoiseSource<Complex<f32>>>().named("noise.source.complex"));
    registry.add(Kind::generator::<ConstantSource>());
    registry.add(Kind::generator::<ComplexConstant>());
}
