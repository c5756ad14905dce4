//! Simple arithmetic, sample by sample and value by value.
//!
//! | type | kind | formula |
//! |---|---|---|
//! | [`Gain`] | `gain`, `gain.complex` | `10^(gain / 20) x` |
//! | [`Clip`] | `clip`, `clip.complex` | magnitude at most `limit` |
//! | [`Absolute`] | `abs` | magnitude of a real sample |
//! | [`Conjugate`] | `conjugate` | `re - i im` |
//! | [`RealPart`], [`ImaginaryPart`] | `real`, `imaginary` | `re`, `im` |
//! | [`Argument`] | `argument` | `atan2(im, re)` |
//! | [`ToComplex`] | `complex` | `x + 0i` |
//! | [`ValueLinear`] | `value.linear` | `scale x + offset` |
//! | [`ValueCount`] | `value.count` | number of values above a limit |
//!
//! All of them have no delay, and pass a NaN on.

mod clip;
mod gain;
mod parts;
mod value;

pub use clip::{Clip, ClipSample};
pub use gain::Gain;
pub use parts::{Absolute, Argument, Conjugate, ImaginaryPart, RealPart, ToComplex};
pub use value::{ValueCount, ValueLinear};

use num_complex::Complex;
use onbeat_runtime::{Kind, Registry};

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::map::<Gain<f32>>());
    registry.add(Kind::map::<Gain<Complex<f32>>>().named("gain.complex"));
    registry.add(Kind::map::<Clip<f32>>());
    registry.add(Kind::map::<Clip<Complex<f32>>>().named("clip.complex"));
    registry.add(Kind::map::<Absolute>());
    registry.add(Kind::map::<Conjugate>());
    registry.add(Kind::kernel::<RealPart>());
    registry.add(Kind::kernel::<ImaginaryPart>());
    registry.add(Kind::kernel::<Argument>());
    registry.add(Kind::kernel::<ToComplex>());
    registry.add(Kind::operator::<ValueLinear>());
    registry.add(Kind::operator::<ValueCount>());
}
