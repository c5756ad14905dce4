//! How large complex samples are.

use num_complex::Complex;
use onbeat_runtime::{Kernel, Progress};

/// The size of each complex sample: `|x|`, or its square, the power.
///
/// It is computed in single precision, within 2 units in the last place, for sizes from 10⁻¹⁸ to 10¹⁸. A
/// sample that is not finite gives one that is not.
#[derive(Debug, Clone, Default)]
pub struct Magnitude {
    power: bool,
}

impl Magnitude {
    /// Magnitudes, `√(re² + im²)`.
    pub fn new() -> Self {
        Magnitude::default()
    }

    /// Powers, `re² + im²`.
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
