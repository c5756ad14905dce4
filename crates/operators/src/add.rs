//! Sum of two streams.

use onbeat_runtime::{Combine, Operator, operator};

/// Adds two streams sample by sample: output `k` is `a[k] + b[k]`.
///
/// Both streams must have the same sample rate. The output ends with the shorter stream.
#[derive(Debug, Clone, Copy, Default, Operator)]
#[operator(summary = "y = a + b, sample by sample")]
pub struct Add {}

#[operator]
impl Combine for Add {
    type In = (f32, f32);
    type Out = f32;

    fn combine(&mut self, (a, b): (&[f32], &[f32]), out: &mut [f32]) {
        out.iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y = a + b);
    }
}
