//! Spectra: frames of a stream, transformed.
//!
//! | type | does |
//! |---|---|
//! | [`Window`] | weighs the samples of a frame |
//! | [`Framed`] | cuts a stream into frames and transforms them; what it sends is up to a [`Measure`] |
//! | [`Fft`] | each transform as it is: `fft` |
//! | [`Spectrum`] | mean powers, in decibels: `spectrum` |
//!
//! The transform is that of the crate rustfft (pure Rust, MIT or Apache-2.0), which picks the processor's
//! vector instructions when it starts: the last bits may differ from one kind of processor to another.

mod framed;
mod kinds;
mod measure;
mod window;

pub(crate) use framed::{AXIS_FIRST, AXIS_STEP};
pub use framed::{Framed, Signal};
pub(crate) use kinds::add_kinds;
pub use measure::{Fft, Measure, Spectrum};
pub use window::Window;
