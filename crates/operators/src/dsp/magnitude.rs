//! The magnitude of complex samples.

use crate::vectors::Vectors;
use num_complex::Complex;
use onbeat_runtime::{Kernel, Progress};
use pulp::{Simd, WithSimd};

#[doc = include_str!("../about/magnitude.md")]
#[derive(Debug, Clone)]
pub struct Magnitude {
    vectors: Vectors,
    power: bool,
}

impl Magnitude {
    /// Computes magnitudes, `√(re² + im²)`.
    pub fn new() -> Self {
        Magnitude { vectors: Vectors::new(), power: false }
    }

    /// Computes powers, `re² + im²`.
    pub fn power() -> Self {
        Magnitude { power: true, ..Magnitude::new() }
    }
}

impl Default for Magnitude {
    fn default() -> Self {
        Magnitude::new()
    }
}

/// The loop, compiled for the processor's vectors.
struct MagnitudeLoop<'m> {
    power: bool,
    input: &'m [Complex<f32>],
    output: &'m mut [f32],
}

impl WithSimd for MagnitudeLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let pairs = self.input.iter().zip(self.output);
        if self.power {
            pairs.for_each(|(x, y)| *y = x.re * x.re + x.im * x.im);
        } else {
            pairs.for_each(|(x, y)| *y = (x.re * x.re + x.im * x.im).sqrt());
        }
    }
}

impl Kernel for Magnitude {
    type In = Complex<f32>;
    type Out = f32;

    fn process(&mut self, input: &[Complex<f32>], output: &mut [f32]) -> Progress {
        let count = input.len().min(output.len());
        self.vectors.run(MagnitudeLoop {
            power: self.power,
            input: &input[..count],
            output: &mut output[..count],
        });
        Progress { consumed: count, produced: count }
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
}
