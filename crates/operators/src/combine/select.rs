//! Passes one of several streams on.

use crate::lanes::{check_count, numbered};
use onbeat_runtime::{Combine, Error, Operator, Sample, Slices, operator};
use std::marker::PhantomData;

/// Passes one of several streams on. Output `k` is sample `k` of the selected stream.
///
/// All streams must have the same sample rate, and all are read at the same pace, so after a change of
/// `input` the output goes on with the sample at the same position of the other stream. The output ends with
/// the shortest stream. It has the tags of all streams.
#[derive(Debug, Clone, Copy, Operator)]
#[operator(summary = "passes one of several streams on", prepare = Self::check)]
pub struct Select<T: Sample> {
    /// Number of streams, from 1 to 64; the ports are called `in0`, `in1`, ...
    #[parameter(example = 2)]
    inputs: usize,
    /// Number of the stream that is passed on, from 0.
    #[parameter(default = 0, settable)]
    input: usize,
    samples: PhantomData<fn() -> T>,
}

impl<T: Sample> Select<T> {
    fn check(&mut self) -> Result<(), Error> {
        check_count("inputs", self.inputs as u64)?;
        if self.input < self.inputs {
            return Ok(());
        }
        Err(Error::new(format!(
            "`input` is {}: it must be from 0 to {}, because there are {} inputs",
            self.input,
            self.inputs - 1,
            self.inputs
        )))
    }
}

#[operator]
impl<T: Sample> Combine for Select<T> {
    type In = [T];
    type Out = T;

    fn inputs(&self) -> Vec<String> {
        numbered(self.inputs)
    }

    fn combine(&mut self, inputs: Slices<'_, T>, out: &mut [T]) {
        out.copy_from_slice(inputs.of(self.input));
    }
}
