//! Window functions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Window function applied to the samples of a frame before the transform.
///
/// A tone between two bins leaks into all others. A window that fades in and out limits the leakage at the
/// price of resolution. All windows are sums of cosines over one period of the frame (F. J. Harris,
/// Proceedings of the IEEE 66, 1978).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// Equal weights: sharp for tones on a bin, side lobes 13 dB down for others.
    Rectangular,
    /// Side lobes 31 dB down and falling fast.
    #[default]
    Hann,
    /// Side lobes 43 dB down, and not falling.
    Hamming,
    /// Four terms, side lobes 92 dB down.
    BlackmanHarris,
}

impl Window {
    /// Returns the weights of a frame of `size` samples.
    pub fn weights(self, size: usize) -> Vec<f32> {
        let terms: &[f64] = match self {
            Window::Rectangular => &[1.0],
            Window::Hann => &[0.5, -0.5],
            Window::Hamming => &[0.54, -0.46],
            Window::BlackmanHarris => &[0.35875, -0.48829, 0.14128, -0.01168],
        };
        let weight = |n: usize| {
            let cosine = |(k, a): (usize, &f64)| a * (TAU * (k * n) as f64 / size as f64).cos();
            terms.iter().enumerate().map(cosine).sum::<f64>() as f32
        };
        (0..size).map(weight).collect()
    }
}
