//! Sum of two streams.

use onbeat_runtime::{Combine, Operator, Sample, operator};
use std::marker::PhantomData;

/// Adds two streams sample by sample: output `k` is `a[k] + b[k]`.
///
/// Both streams must have the same sample rate. The output ends with the shorter stream.
#[derive(Debug, Clone, Copy, Default, Operator)]
#[operator(summary = "y = a + b, sample by sample")]
pub struct Add<T: Sample + std::ops::Add<Output = T>> {
    samples: PhantomData<fn() -> T>,
}

#[operator]
impl<T: Sample + std::ops::Add<Output = T>> Combine for Add<T> {
    type In = (T, T);
    type Out = T;

    fn combine(&mut self, (a, b): (&[T], &[T]), out: &mut [T]) {
        out.iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y = *a + *b);
    }
}
