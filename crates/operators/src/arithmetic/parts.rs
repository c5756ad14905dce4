//! Parts of complex samples, and complex samples of parts.

use crate::dsp::angle;
use crate::vectors::Vectors;
use num_complex::Complex;
use onbeat_runtime::{Kernel, Map, Operator, Progress, Sample, operator};
use pulp::{Simd, WithSimd};

/// Applies a function to each sample, compiled for the processor's vectors.
struct EachLoop<'e, A, B, F> {
    input: &'e [A],
    output: &'e mut [B],
    function: F,
}

impl<A: Sample, B: Sample, F: Fn(A) -> B> WithSimd for EachLoop<'_, A, B, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        self.input.iter().zip(self.output).for_each(|(x, y)| *y = (self.function)(*x));
    }
}

fn each<A: Sample, B: Sample>(
    vectors: Vectors,
    input: &[A],
    output: &mut [B],
    function: impl Fn(A) -> B,
) -> Progress {
    let count = input.len().min(output.len());
    vectors.run(EachLoop { input: &input[..count], output: &mut output[..count], function });
    Progress { consumed: count, produced: count }
}

/// Real part of complex samples.
#[derive(Operator, Clone)]
#[operator(name = "real")]
pub struct RealPart {
    vectors: Vectors,
}

#[operator]
impl Kernel for RealPart {
    type In = Complex<f32>;
    type Out = f32;

    fn process(&mut self, input: &[Complex<f32>], output: &mut [f32]) -> Progress {
        each(self.vectors, input, output, |x: Complex<f32>| x.re)
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
}

/// Imaginary part of complex samples.
#[derive(Operator, Clone)]
#[operator(name = "imaginary")]
pub struct ImaginaryPart {
    vectors: Vectors,
}

#[operator]
impl Kernel for ImaginaryPart {
    type In = Complex<f32>;
    type Out = f32;

    fn process(&mut self, input: &[Complex<f32>], output: &mut [f32]) -> Progress {
        each(self.vectors, input, output, |x: Complex<f32>| x.im)
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
}

#[doc = include_str!("../about/argument.md")]
#[derive(Operator, Clone)]
#[operator(summary = "argument of complex samples, in radians", about = include_str!("../about/argument.md"))]
pub struct Argument {
    vectors: Vectors,
}

#[operator]
impl Kernel for Argument {
    type In = Complex<f32>;
    type Out = f32;

    fn process(&mut self, input: &[Complex<f32>], output: &mut [f32]) -> Progress {
        each(self.vectors, input, output, |x: Complex<f32>| {
            // Halved so that the sum of two large parts is finite. Adding 0 makes a negative zero positive.
            angle(x.re * 0.5, x.im * 0.5 + 0.0) + (x.re * 0.0 + x.im * 0.0)
        })
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
}

/// Complex samples with a real stream as their real part.
///
/// `y = x + 0i`. The spectrum stays that of a real signal: each line has a mirror image at the negative
/// frequency.
#[derive(Operator, Clone)]
#[operator(name = "complex")]
pub struct ToComplex {
    vectors: Vectors,
}

#[operator]
impl Kernel for ToComplex {
    type In = f32;
    type Out = Complex<f32>;

    fn process(&mut self, input: &[f32], output: &mut [Complex<f32>]) -> Progress {
        each(self.vectors, input, output, |x: f32| Complex::new(x, 0.0))
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
}

/// Complex conjugate: the sign of the imaginary part changes.
///
/// It mirrors the spectrum at 0 Hz: what was at +10 kHz is at −10 kHz.
#[derive(Operator, Clone)]
pub struct Conjugate;

#[operator]
impl Map for Conjugate {
    type Sample = Complex<f32>;

    fn map(&mut self, samples: &mut [Complex<f32>]) {
        samples.iter_mut().for_each(|x| x.im = -x.im);
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
}

/// Absolute value of real samples: a full-wave rectifier.
///
/// For complex samples use `magnitude`.
#[derive(Operator, Clone)]
#[operator(name = "abs")]
pub struct Absolute;

#[operator]
impl Map for Absolute {
    type Sample = f32;

    fn map(&mut self, samples: &mut [f32]) {
        samples.iter_mut().for_each(|x| *x = x.abs());
    }

    fn replica(&self) -> Option<Self> {
        Some(self.clone())
    }
}
