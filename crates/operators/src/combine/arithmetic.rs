//! Product and difference of two streams, and complex samples of two real streams.

use num_complex::Complex;
use onbeat_runtime::{Combine, Operator, Sample, operator};
use std::marker::PhantomData;
use std::ops::{Mul, Sub};

/// Multiplies two streams sample by sample: output `k` is `a[k] · b[k]`.
///
/// Both streams must have the same sample rate. The output ends with the shorter stream. The complex product
/// does not conjugate: it adds the frequencies of `a` and `b`.
#[derive(Debug, Clone, Copy, Default, Operator)]
#[operator(summary = "y = a · b, sample by sample")]
pub struct Multiply<T: Sample + Mul<Output = T>> {
    samples: PhantomData<fn() -> T>,
}

#[operator]
impl<T: Sample + Mul<Output = T>> Combine for Multiply<T> {
    type In = (T, T);
    type Out = T;

    fn combine(&mut self, (a, b): (&[T], &[T]), out: &mut [T]) {
        out.iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y = *a * *b);
    }
}

/// Subtracts two streams sample by sample: output `k` is `a[k] - b[k]`.
///
/// Both streams must have the same sample rate. The output ends with the shorter stream.
#[derive(Debug, Clone, Copy, Default, Operator)]
#[operator(summary = "y = a - b, sample by sample")]
pub struct Subtract<T: Sample + Sub<Output = T>> {
    samples: PhantomData<fn() -> T>,
}

#[operator]
impl<T: Sample + Sub<Output = T>> Combine for Subtract<T> {
    type In = (T, T);
    type Out = T;

    fn combine(&mut self, (a, b): (&[T], &[T]), out: &mut [T]) {
        out.iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y = *a - *b);
    }
}

/// Makes complex samples of two real streams: output `k` is `re[k] + i · im[k]`.
///
/// Both streams must have the same sample rate. The output ends with the shorter stream.
#[derive(Debug, Clone, Copy, Default, Operator)]
#[operator(name = "complex.join", summary = "complex samples of real and imaginary parts")]
pub struct ComplexJoin {}

#[operator]
impl Combine for ComplexJoin {
    type In = (f32, f32);
    type Out = Complex<f32>;

    fn inputs(&self) -> Vec<String> {
        vec!["re".into(), "im".into()]
    }

    fn combine(&mut self, (re, im): (&[f32], &[f32]), out: &mut [Complex<f32>]) {
        out.iter_mut().zip(re).zip(im).for_each(|((y, re), im)| *y = Complex::new(*re, *im));
    }
}
