//! Long filters: the outputs of a block at once, by Fourier transforms (overlap-save).
//!
//! The spectrum of a segment times that of the taps is the spectrum of their circular convolution. Of
//! this, the outputs whose windows lie within the segment are right, and the others are dropped: the next
//! segment begins with the samples that they need. Real samples go two segments at a time, one as the real
//! and one as the imaginary part.
//!
//! Blocks are counted from the start of the stream, so slices do not change the output. It has to wait for
//! the end of its block.

use super::super::fourier;
use super::{FirSample, Windows, branch};
use crate::format::Coding;
use num_complex::Complex;
use rustfft::Fft;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Samples of a transform for each tap. Fewer spend more of each transform on the overlap, more wait longer.
const PER_TAP: usize = 4;

/// Outputs of a block, with the samples that they need.
#[derive(Clone)]
pub(super) struct Blocks<T> {
    down: usize,
    /// Taps in the order of the window.
    window: Vec<f32>,
    /// Spectrum of the taps, divided by the size of the transforms.
    response: Vec<Complex<f32>>,
    forward: Arc<dyn Fft<f32>>,
    inverse: Arc<dyn Fft<f32>>,
    /// Samples from one segment to the next, a multiple of `down`.
    step: usize,
    /// Samples of the current block, `filled` of them so far: what the last one left, then its segments.
    block: Vec<T>,
    filled: usize,
    transform: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    /// Outputs of the last block, and which of them are still to be sent.
    outputs: Vec<T>,
    unsent: Range<usize>,
}

impl<T> fmt::Debug for Blocks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocks").field("taps", &self.window.len()).finish_non_exhaustive()
    }
}

impl<T: FirSample> Blocks<T> {
    pub(super) fn new(taps: &[f64], down: usize) -> Self {
        let overlap = taps.len() - 1;
        let size = (PER_TAP * taps.len().max(down)).next_power_of_two();
        let step = (size - overlap) / down * down;
        let (forward, inverse) = (fourier::forward(size), fourier::inverse(size));
        let mut response = vec![Complex::new(0.0, 0.0); size];
        response.iter_mut().zip(taps).for_each(|(x, tap)| x.re = (*tap / size as f64) as f32);
        forward.process(&mut response);
        let scratch = forward.get_inplace_scratch_len().max(inverse.get_inplace_scratch_len());
        let segments = 2 / T::FLOATS;
        Blocks {
            down,
            window: branch(taps, 1, 0),
            response,
            forward,
            inverse,
            step,
            block: vec![T::zeroed(); overlap + segments * step],
            filled: overlap / 2,
            transform: vec![Complex::new(0.0, 0.0); size],
            scratch: vec![Complex::new(0.0, 0.0); scratch],
            outputs: vec![T::zeroed(); segments * step / down],
            unsent: 0..0,
        }
    }

    /// Computes the last block as far as its windows are complete. All outputs must have been sent. Returns
    /// whether there are more.
    pub(super) fn flush(&mut self) -> bool {
        let count = (self.filled + 1 - self.window.len()).div_ceil(self.down);
        if count > 0 {
            self.block[self.filled..].fill(T::zeroed());
            self.compute();
            self.unsent = 0..count;
        }
        count > 0
    }

    /// Computes the outputs of the current block and begins the next one.
    fn compute(&mut self) {
        let floats: &[f32] = bytemuck::cast_slice(&self.block);
        if Coding::F32.not_finite(floats) == 0 {
            self.convolve();
        } else {
            self.sum();
        }
        self.unsent = 0..self.outputs.len();
        let overlap = self.window.len() - 1;
        let begin = self.block.len() - overlap;
        self.block.copy_within(begin.., 0);
        self.filled = overlap;
    }

    fn convolve(&mut self) {
        let (overlap, step) = (self.window.len() - 1, self.step);
        let (used, unused) = self.transform.split_at_mut(overlap + step);
        T::to_complex(&self.block, step, used);
        unused.fill(Complex::new(0.0, 0.0));
        self.forward.process_with_scratch(&mut self.transform, &mut self.scratch);
        self.transform.iter_mut().zip(&self.response).for_each(|(x, response)| *x *= response);
        self.inverse.process_with_scratch(&mut self.transform, &mut self.scratch);
        T::from_complex(&self.transform[overlap..overlap + step], self.down, &mut self.outputs);
    }

    /// Slower, for blocks with samples that are not finite: a transform would spread them over all outputs.
    #[cold]
    fn sum(&mut self) {
        let windows = self.block.windows(self.window.len()).step_by(self.down);
        for (output, window) in self.outputs.iter_mut().zip(windows) {
            *output = window.iter().zip(&self.window).map(|(x, tap)| *x * *tap).sum();
        }
    }
}

impl<T: FirSample> Windows<T> for Blocks<T> {
    fn drain(&mut self, output: &mut [T]) -> usize {
        let count = self.unsent.len().min(output.len());
        output[..count].copy_from_slice(&self.outputs[self.unsent.start..][..count]);
        self.unsent.start += count;
        count
    }

    fn fill(&mut self, input: &[T], _: usize) -> usize {
        let room = &mut self.block[self.filled..];
        let count = room.len().min(input.len());
        room[..count].copy_from_slice(&input[..count]);
        self.filled += count;
        if self.filled == self.block.len() {
            self.compute();
        }
        count
    }
}
