//! A zero-order hold.

use onbeat_runtime::{Error, Kernel, Operator, Progress, Ratio, Sample, operator};
use std::marker::PhantomData;

#[doc = include_str!("../about/repeat.md")]
#[derive(Operator)]
#[operator(
    name = "repeat",
    summary = "sends each sample several times, at a higher rate",
    about = include_str!("../about/repeat.md"),
)]
pub struct RepeatSamples<T: Sample> {
    /// Number of copies of each sample, and factor of the sample rate.
    #[parameter(min = 1, max = 65536, example = 4)]
    times: u32,
    /// Copies of the next input sample that were sent.
    done: u32,
    sample: PhantomData<T>,
}

#[operator]
impl<T: Sample> Kernel for RepeatSamples<T> {
    type In = T;
    type Out = T;

    fn start(&mut self, _: f64) -> Result<(), Error> {
        self.done = 0;
        Ok(())
    }

    fn ratio(&self) -> Ratio {
        Ratio { up: self.times, down: 1 }
    }

    fn process(&mut self, input: &[T], output: &mut [T]) -> Progress {
        let mut progress = Progress { consumed: 0, produced: 0 };
        for x in input {
            let rest = &mut output[progress.produced..];
            let count = rest.len().min((self.times - self.done) as usize);
            rest[..count].fill(*x);
            progress.produced += count;
            self.done += count as u32;
            if self.done < self.times {
                break;
            }
            self.done = 0;
            progress.consumed += 1;
        }
        progress
    }
}
