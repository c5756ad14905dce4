//! Plans of Fourier transforms.
//!
//! These functions are not generic, so the kernels of rustfft are compiled once: in this crate, and not again
//! in each crate that has a generic operator with a transform.

use rustfft::{Fft, FftPlanner};
use std::sync::Arc;

/// Returns the transform of `size` samples to frequencies.
#[must_use]
pub fn forward(size: usize) -> Arc<dyn Fft<f32>> {
    FftPlanner::new().plan_fft_forward(size)
}

/// Returns the transform of `size` frequencies to samples, which are `size` times as large.
#[must_use]
pub fn inverse(size: usize) -> Arc<dyn Fft<f32>> {
    FftPlanner::new().plan_fft_inverse(size)
}
