//! Signal processing on slices of samples: the kernels of a radio receiver.
//!
//! | kernel | samples | does |
//! |---|---|---|
//! | [`Shift`] | complex | moves a frequency to another |
//! | [`FirDecimator`] | real or complex | low-pass, then keeps every n-th sample |
//! | [`Resampler`] | real or complex | changes the rate by a fraction |
//! | [`Magnitude`] | complex → real | size or power |
//! | [`QuadDemod`] | complex → real | frequency demodulation |
//! | [`Deemphasis`] | real | undoes the treble lift of an FM transmitter |
//! | [`Agc`] | real or complex | automatic gain |
//! | [`Saxpy`] | real | `a * x + b` |
//! | [`ci8_to_complex`] and its like | bytes → complex | unpack a recording |
//!
//! Three rules hold for all of them, and `tests/it/kernel_contract.rs` checks them:
//! - What comes out is the same, bit for bit, however the input and the output were cut into slices.
//! - No kernel moves its signal in time: output sample `k` belongs to the instant of input sample `k * down / up`.
//! - Nothing is allocated after `start`.
//!
//! The loops are plain Rust in a shape that the compiler turns into vector code for any x86-64; [`Affine`] takes the widest
//! vectors that the processor has, by the crate pulp. We wrote them
//! because the crates at hand do not fit: futuredsp 0.10 needs a nightly compiler, and its filters leave history,
//! delay and the end of the stream to the caller; rubato resamples real samples in blocks of a fixed size.

mod agc;
mod convert;
mod deemphasis;
mod demod;
mod design;
mod fir;
mod magnitude;
mod phase;
mod polyphase;
mod resample;
mod saxpy;
mod shift;

pub use agc::{Agc, Level};
pub use convert::{cf32_le_to_complex, ci8_to_complex, ci16_le_to_complex, cu8_to_complex};
pub use deemphasis::Deemphasis;
pub use demod::QuadDemod;
pub use design::LowPass;
pub use fir::FirDecimator;
pub use magnitude::Magnitude;
pub use polyphase::FirSample;
pub use resample::{Quality, Resampler};
pub use saxpy::{Affine, Saxpy};
pub use shift::Shift;

/// Says how many samples were not finite, and what became of them.
fn not_finite(count: u64, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} samples were not finite and {what}"))
}
