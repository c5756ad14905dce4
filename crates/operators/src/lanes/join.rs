//! Joins several streams into one.

use super::check_count;
use onbeat_runtime::{Combine, Error, Operator, Sample, Slices, operator};
use std::marker::PhantomData;
use std::ops::AddAssign;

/// Names of this many inputs.
pub(crate) fn numbered(inputs: usize) -> Vec<String> {
    (0..inputs).map(|stream| format!("in{stream}")).collect()
}

/// Sum of several streams. Output `k` is the sum of sample `k` of all streams, added in their order.
#[derive(Debug, Clone, Copy, Operator)]
#[operator(summary = "sum of several streams", prepare = Self::check)]
pub struct Sum<T: Sample + AddAssign = f32> {
    /// Number of streams, from 1 to 64; the ports are called `in0`, `in1`, ...
    #[parameter(example = 3)]
    inputs: usize,
    samples: PhantomData<fn() -> T>,
}

impl<T: Sample + AddAssign> Sum<T> {
    /// Adds this many streams.
    ///
    /// # Errors
    /// When it is not from 1 to 64.
    pub fn new(inputs: usize) -> Result<Self, Error> {
        check_count("inputs", inputs as u64)?;
        Ok(Sum { inputs, samples: PhantomData })
    }

    fn check(&mut self) -> Result<(), Error> {
        check_count("inputs", self.inputs as u64)
    }
}

#[operator]
impl<T: Sample + AddAssign> Combine for Sum<T> {
    type In = [T];
    type Out = T;

    fn inputs(&self) -> Vec<String> {
        numbered(self.inputs)
    }

    fn combine(&mut self, inputs: Slices<'_, T>, out: &mut [T]) {
        out.copy_from_slice(inputs.of(0));
        for samples in inputs.each().skip(1) {
            out.iter_mut().zip(samples).for_each(|(y, x)| *y += *x);
        }
    }
}

/// Interleaves several streams, one sample of each in turn. Output `k n + l` is sample `k` of stream `l` of
/// `n`; the rate is `n` times as high.
#[derive(Debug, Clone, Copy, Operator)]
#[operator(summary = "interleaves several streams, one sample of each in turn", prepare = Self::check)]
pub struct Interleave {
    /// Number of streams, from 1 to 64; the ports are called `in0`, `in1`, ...
    #[parameter(example = 2)]
    inputs: usize,
}

impl Interleave {
    /// Interleaves this many streams.
    ///
    /// # Errors
    /// When it is not from 1 to 64.
    pub fn new(inputs: usize) -> Result<Self, Error> {
        check_count("inputs", inputs as u64)?;
        Ok(Interleave { inputs })
    }

    fn check(&mut self) -> Result<(), Error> {
        check_count("inputs", self.inputs as u64)
    }
}

#[operator]
impl Combine for Interleave {
    type In = [f32];
    type Out = f32;

    fn inputs(&self) -> Vec<String> {
        numbered(self.inputs)
    }

    fn outputs(&self) -> usize {
        self.inputs
    }

    fn place(&self, sample: usize, stream: usize) -> usize {
        sample * self.inputs + stream
    }

    fn combine(&mut self, inputs: Slices<'_, f32>, out: &mut [f32]) {
        for (stream, samples) in inputs.each().enumerate() {
            out[stream..].iter_mut().step_by(self.inputs).zip(samples).for_each(|(y, x)| *y = *x);
        }
    }
}
