//! Recursive filters: by design, by coefficients, and notches.
//!
//! | type | samples | description |
//! |---|---|---|
//! | [`Iir`], [`IirFamily`], [`IirResponse`] | real or complex | Butterworth and Chebyshev filters: `iir` |
//! | [`Sos`] | real or complex | sections of second order, by coefficients: `iir.sos` |
//! | [`Notch`] | real | stops one frequency: `notch` |
//! | [`ComplexNotch`] | complex | stops one frequency, positive or negative: `notch.complex` |
//! | [`DcBlock`] | real or complex | stops 0 Hz: `dc.block` |

mod dc;
mod design;
mod filter;
mod notch;
mod prototype;
mod sections;
mod sos;

pub use dc::{ComplexNotch, DcBlock};
pub use filter::{Iir, IirResponse};
pub use notch::Notch;
pub use prototype::IirFamily;
pub use sos::Sos;

use num_complex::Complex;
use onbeat_runtime::{Kind, Registry};

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::map::<Iir<f32>>());
    registry.add(Kind::map::<Iir<Complex<f32>>>().named("iir.complex"));
    registry.add(Kind::map::<Sos<f32>>());
    registry.add(Kind::map::<Sos<Complex<f32>>>().named("iir.sos.complex"));
    registry.add(Kind::map::<Notch>());
    registry.add(Kind::map::<ComplexNotch>());
    registry.add(Kind::map::<DcBlock<f32>>());
    registry.add(Kind::map::<DcBlock<Complex<f32>>>().named("dc.block.complex"));
}
