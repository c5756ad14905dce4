//! Filters with given taps, real or complex, whose delay is compensated.

use super::fir::FirMethod;
use super::polyphase::{FirSample, Polyphase};
use num_complex::Complex;
use onbeat_runtime::{Error, FiniteMemory, Kernel, Progress};
use std::f64::consts::TAU;

/// Outputs that are computed at a time if the taps are complex.
const ROUND: usize = 1024;

/// An odd number of taps. The output for a sample is at the middle one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Taps {
    /// Real parts.
    pub re: Vec<f64>,
    /// Imaginary parts, as many; none if all are 0.
    pub im: Vec<f64>,
}

impl Taps {
    pub fn real(re: Vec<f64>) -> Self {
        Taps { re, im: Vec::new() }
    }

    /// Moves the response of real taps up by a frequency in cycles per sample.
    pub fn turned(taps: &[f64], cycles: f64) -> Self {
        if cycles == 0.0 {
            return Taps::real(taps.to_vec());
        }
        let middle = (taps.len() / 2) as f64;
        let turn = |(n, tap): (usize, &f64)| Complex::from_polar(*tap, TAU * cycles * (n as f64 - middle));
        let taps: Vec<Complex<f64>> = taps.iter().enumerate().map(turn).collect();
        Taps { re: taps.iter().map(|tap| tap.re).collect(), im: taps.iter().map(|tap| tap.im).collect() }
    }

    /// Puts zeros at one end, so that tap `delay` becomes the middle one.
    pub fn around(taps: &[Complex<f64>], delay: usize) -> Self {
        let reach = delay.max(taps.len() - 1 - delay);
        let mut all = vec![Complex::new(0.0, 0.0); 2 * reach + 1];
        all[reach - delay..][..taps.len()].copy_from_slice(taps);
        let is_real = all.iter().all(|tap| tap.im == 0.0);
        Taps {
            re: all.iter().map(|tap| tap.re).collect(),
            im: if is_real { Vec::new() } else { all.iter().map(|tap| tap.im).collect() },
        }
    }
}

/// A filter for samples of either type. Imaginary parts of taps have an effect on complex samples only.
#[derive(Debug, Clone)]
pub(super) struct TapFilter<T> {
    method: FirMethod,
    taps: Taps,
    straight: Polyphase<T>,
    /// The filter of the imaginary parts, and room for its outputs.
    across: Option<(Polyphase<T>, Vec<T>)>,
}

impl<T: FirSample> Default for TapFilter<T> {
    fn default() -> Self {
        TapFilter::new(Taps::real(vec![1.0]), FirMethod::Direct)
    }
}

impl<T: FirSample> TapFilter<T> {
    pub fn new(taps: Taps, method: FirMethod) -> Self {
        let across = (!taps.im.is_empty()).then(|| {
            let room = vec![T::zeroed(); ROUND];
            (method.filter(&taps.im, 1), room)
        });
        TapFilter { straight: method.filter(&taps.re, 1), across, method, taps }
    }
}

impl<T: FirSample> Kernel for TapFilter<T> {
    type In = T;
    type Out = T;

    fn start(&mut self, _: f64) -> Result<(), Error> {
        *self = TapFilter::new(std::mem::take(&mut self.taps), self.method);
        Ok(())
    }

    fn process(&mut self, input: &[T], output: &mut [T]) -> Progress {
        let Some((across, room)) = &mut self.across else { return self.straight.process(input, output) };
        let mut done = Progress { consumed: 0, produced: 0 };
        loop {
            let left = output.len() - done.produced;
            let output = &mut output[done.produced..][..left.min(ROUND)];
            let input = &input[done.consumed..];
            // Both have equally many taps, so they take and give equally many samples.
            let now = self.straight.process(input, output);
            across.process(input, &mut room[..output.len()]);
            output[..now.produced].iter_mut().zip(&*room).for_each(|(y, z)| *y = y.plus_turned(*z));
            done.consumed += now.consumed;
            done.produced += now.produced;
            if now.produced < ROUND {
                return done;
            }
        }
    }

    fn finish(&mut self, output: &mut [T]) -> usize {
        let Some((across, room)) = &mut self.across else { return self.straight.finish(output) };
        let count = output.len().min(ROUND);
        let count = self.straight.finish(&mut output[..count]).min(across.finish(&mut room[..count]));
        output[..count].iter_mut().zip(&*room).for_each(|(y, z)| *y = y.plus_turned(*z));
        count
    }

    fn replica(&self) -> Option<Self> {
        // Blocks are counted from the start of the stream.
        (self.method == FirMethod::Direct).then(|| self.clone())
    }

    fn finite(&mut self) -> Option<&mut dyn FiniteMemory> {
        if self.method == FirMethod::Direct { Some(self) } else { None }
    }
}

impl<T: FirSample> FiniteMemory for TapFilter<T> {
    fn memory(&self) -> usize {
        self.straight.memory().unwrap_or(0)
    }

    fn resume(&mut self, _: u64) {
        self.straight.resume();
        if let Some((across, _)) = &mut self.across {
            across.resume();
        }
    }
}
