//! Spectra: transforms of a stream's frames.
//!
//! | type | description |
//! |---|---|
//! | [`Window`] | weights for the samples of a frame |
//! | [`Framed`] | cuts a stream into frames and transforms them; a [`Measure`] defines the result |
//! | [`Fft`] | the transforms themselves: `fft` |
//! | [`Spectrum`] | average power in decibels: `spectrum` |
//!
//! The transform is that of the crate rustfft (pure Rust, MIT or Apache-2.0), which selects the processor's
//! vector instructions when it starts. The last bits of a result can therefore differ between processors.

mod framed;
mod kinds;
mod measure;
mod window;

pub(crate) use framed::{AXIS_FIRST, AXIS_STEP};
pub use framed::{Framed, SpectralSample};
pub(crate) use kinds::add_kinds;
pub use measure::{Fft, Measure, Spectrum};
pub use window::Window;
