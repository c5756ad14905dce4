//! Loops that follow the phase of a carrier.
//!
//! | type | description |
//! |---|---|
//! | [`Pll`] | follows an unmodulated carrier: `pll`, `pll.complex` |
//! | [`Costas`] | follows the suppressed carrier of a PSK signal: `costas` |
//!
//! Both are loops of second order, which follow a constant frequency without error. The gains are those of
//! Rice, *Digital Communications: A Discrete-Time Approach* (2009), appendix C.

mod costas;
mod driver;
mod lock;
mod pll;
mod tracker;

pub use costas::Costas;
pub(crate) use costas::CostasDetector;
pub use driver::LoopSample;
pub(crate) use lock::LockDetector;
pub use pll::{CarrierSample, Pll};
pub(crate) use tracker::{LoopGains, PhaseTracker};

use num_complex::Complex;
use onbeat_runtime::{Kind, Registry};

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(Kind::operator::<Pll<f32>>());
    registry.add(Kind::operator::<Pll<Complex<f32>>>().named("pll.complex"));
    registry.add(Kind::operator::<Costas>());
}
