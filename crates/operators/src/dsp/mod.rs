//! Signal processing on slices of samples: the kernels of a radio receiver.
//!
//! | kernel | samples | description |
//! |---|---|---|
//! | [`Shift`] | complex | frequency shift |
//! | [`FirDecimator`] | real or complex | low-pass filter and decimation |
//! | [`BandPass`], [`BandStop`], [`HighPass`] | real or complex | filters of other responses |
//! | [`FirTaps`] | real or complex | filter with given taps |
//! | [`Resampler`] | real or complex | sample rate conversion by a ratio |
//! | [`Magnitude`] | complex → real | magnitude or power |
//! | [`QuadDemod`] | complex → real | frequency demodulation |
//! | [`AmDemod`] | complex → real | amplitude demodulation |
//! | [`SsbDemod`] | complex → real | single-sideband demodulation |
//! | [`IqBalance`] | complex | correction of I/Q imbalance |
//! | [`Deemphasis`] | real | inverse of an FM transmitter's treble lift |
//! | [`Agc`] | real or complex | automatic gain control |
//! | [`FilterBank`] | complex | channels of equal width |
//! | [`Saxpy`] | real | `a * x + b` |
//! | [`ci8_to_complex`] and similar | bytes → complex | unpacking of a recording |
//!
//! Three rules apply to all kernels, and `tests/it/kernel_contract.rs` checks them:
//! - The output is the same, bit for bit, however input and output are cut into slices, and whatever the
//!   width of the vectors ([`FirMethod::Fft`] and [`FilterBank`] excepted).
//! - No kernel shifts its signal in time: output sample `k` belongs to the instant of input sample `k * down
//!   / up`.
//! - Nothing is allocated after `start`.
//!
//! Loops without a chain through their samples are compiled for each kind of vectors, and take the widest,
//! through the crate pulp ([`Vectors`]). We wrote the kernels ourselves because the available
//! crates do not fit: futuredsp 0.10 needs a nightly compiler, and its filters leave history, delay and the
//! end of the stream to the caller; rubato resamples real samples in blocks of a fixed size.

mod agc;
mod am;
mod convert;
mod deemphasis;
mod demod;
mod design;
mod filter_bank;
mod fir;
mod fir_bands;
mod fir_taps;
mod iq_balance;
// For onbeat-bench. The type in it is of another crate.
#[doc(hidden)]
pub mod fourier;
mod magnitude;
mod phase;
mod polyphase;
mod resample;
mod saxpy;
mod shift;
mod ssb;
mod tap_file;
mod tap_filter;

pub use crate::vectors::Vectors;
pub use agc::{Agc, GainSample};
pub use am::AmDemod;
pub use convert::{cf32_le_to_complex, ci8_to_complex, ci16_le_to_complex, cu8_to_complex};
pub use deemphasis::Deemphasis;
pub use demod::QuadDemod;
pub use design::LowPass;
pub(crate) use design::windowed;
pub use filter_bank::FilterBank;
pub use fir::{FirDecimator, FirMethod};
pub use fir_bands::{BandPass, BandStop, HighPass};
pub use fir_taps::FirTaps;
pub use iq_balance::IqBalance;
pub use magnitude::Magnitude;
pub(crate) use phase::angle;
pub use polyphase::FirSample;
pub use resample::{Quality, Resampler};
pub use saxpy::{Affine, Saxpy};
pub use shift::Shift;
pub use ssb::{Sideband, SsbDemod};

/// Notes how many samples were not finite, and how they were treated.
pub(crate) fn not_finite(count: u64, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} samples were not finite and {what}"))
}
