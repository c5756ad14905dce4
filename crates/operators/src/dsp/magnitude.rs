//! The magnitude of complex samples.

use num_complex::Complex;
use onbeat_runtime::{Kernel, Progress};

/// The magnitude `|x|` of each complex sample, or its square, the power.
///
/// It is computed in single precision, within 2 units in the last place, for magnitudes from 10⁻¹⁸ to 10¹⁸. A
/// sample that is not finite gives an output that is not finite.
#[derive(Debug, Clone, Default)]
pub struct Magnitude {
    power: bool,
}

impl Magnitude {
    /// Computes magnitudes, `√(re² + im²)`.
    pub fn new() -> Self {
        Magnitude::default()
    }

    /// Computes powers, `re² + im²`.
    pub fn power() -> Self {
        Magnitude { power: true }
    }
}

impl Kernel for Magnitude {
    type In = Complex<f32>;
    type Out = f32;

    fn process(&mut self, input: &[Complex<f32>], output: &mut [f32]) -> Progress {
        let count = input.len().min(output.len());
        let pairs = input[..count].iter().zip(&mut output[..count]);
        if self.power {
            pairs.for_each(|(x, y)| *y = x.re * x.re + x.im * x.im);
        } else {
            pairs.for_each(|(x, y)| *y = (x.re * x.re + x.im * x.im).sqrt());
        }
        Progress { consumed: count, produced: count }
    }
}
