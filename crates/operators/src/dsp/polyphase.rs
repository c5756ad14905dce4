//! The common filter loop: a polyphase filter that changes the rate by `up / down`.
//!
//! On paper, a rate change by `up / down` has three steps: insert `up - 1` zeros after every sample, filter,
//! keep every `down`-th sample. Most of that multiplies by zero or computes samples that are dropped. The
//! polyphase form does neither: output `k` is at position `u = k * down` of the stretched signal, which is
//! input `u / up`, and only the taps of *branch* `u % up` meet real samples. Each output is therefore one dot
//! product of a window of inputs with one branch:
//!
//! ```text
//! y[k] = sum over i of  h[u % up + up * i] * x[u / up + reach - i],   u = k * down,  i = 0 ..= 2 * reach
//! ```
//!
//! The middle of `h` is tap `up * reach`, so the window extends equally far to both sides of input `u / up`,
//! and looking ahead compensates the filter's delay. The signal is zero before the first sample and after the
//! last. Plain decimation is `up = 1`; a plain filter is `up = down = 1`.
//!
//! Each output depends on its window alone, summed in one fixed order. This makes it independent of the
//! slices.

use bytemuck::Zeroable;
use num_complex::Complex;
use onbeat_runtime::{Progress, Ratio, Sample};

/// Samples of room beyond one window. Windows slide through the room; then the last one is copied to the
/// front. 1024 keeps the room within half of an L1 cache and the copy below 5 % of the work at usual filter
/// lengths.
const ROOM: usize = 1024;

/// Floats that are summed side by side: four vectors of 128 bits hide the latency of an addition.
const LANES: usize = 16;

/// A sample type of the filters: `f32` or `Complex<f32>`.
pub trait FirSample: Sample + Zeroable + sealed::Dot {}
impl FirSample for f32 {}
impl FirSample for Complex<f32> {}

mod sealed {
    /// The inner loop for one sample type.
    pub trait Dot {
        /// Floats per sample. A tap is stored once for each, so that one loop serves real and complex
        /// samples.
        const FLOATS: usize;
        /// Sum of products. Both slices hold the same whole number of lane groups.
        fn dot(window: &[Self], branch: &[f32]) -> Self
        where
            Self: Sized;
    }
}

/// Sums of products per lane.
#[inline(always)]
fn lanes(x: &[f32], h: &[f32]) -> [f32; LANES] {
    let mut sum = [0.0; LANES];
    for (x, h) in x.as_chunks::<LANES>().0.iter().zip(h.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sum[lane] += x[lane] * h[lane];
        }
    }
    sum
}

/// Adds the upper half of the lanes to the lower half until `N` are left.
#[inline(always)]
fn fold<const N: usize>(mut sum: [f32; LANES]) -> [f32; N] {
    let mut width = LANES / 2;
    while width >= N {
        for lane in 0..width {
            sum[lane] += sum[lane + width];
        }
        width /= 2;
    }
    std::array::from_fn(|lane| sum[lane])
}

impl sealed::Dot for f32 {
    const FLOATS: usize = 1;
    #[inline(always)]
    fn dot(window: &[f32], branch: &[f32]) -> f32 {
        let [sum] = fold(lanes(window, branch));
        sum
    }
}

impl sealed::Dot for Complex<f32> {
    const FLOATS: usize = 2;
    #[inline(always)]
    fn dot(window: &[Complex<f32>], branch: &[f32]) -> Complex<f32> {
        let [re, im] = fold(lanes(bytemuck::cast_slice(window), branch));
        Complex::new(re, im)
    }
}

/// The filter loop with its history.
#[derive(Debug, Clone)]
pub(super) struct Polyphase<T> {
    /// `up` branches one after the other, each `width * T::FLOATS` long, in the order of the window.
    branches: Vec<f32>,
    /// Samples in a window: `2 * reach + 1`, filled up to whole lane groups with zero taps at the old end.
    width: usize,
    up: usize,
    down: usize,
    /// Branch of the next output, `u % up`.
    branch: usize,
    /// Inputs still needed; the length is fixed, and `filled` of them are valid.
    history: Vec<T>,
    filled: usize,
    /// First sample of the next output's window. Beyond `filled` when samples will be skipped.
    start: usize,
    /// Zeros that `finish` still has to feed.
    tail: usize,
}

impl<T: FirSample> Polyphase<T> {
    /// Creates a filter with `2 * up * reach + 1` taps (so their number, less one, is a multiple of `2 *
    /// up`). Its gain for a constant is `sum(taps) / up`.
    pub(super) fn new(taps: &[f64], up: usize, down: usize) -> Self {
        let reach = (taps.len() - 1) / (2 * up);
        debug_assert_eq!(taps.len(), 2 * up * reach + 1);
        let group = LANES / T::FLOATS;
        let width = (2 * reach + 1).next_multiple_of(group);
        let pad = width - (2 * reach + 1);

        let mut branches = vec![0.0; up * width * T::FLOATS];
        for (j, &tap) in taps.iter().enumerate() {
            // Tap `p + up * i` of branch `p` meets input `reach - i` from the middle: later taps, older
            // samples.
            let (branch, i) = (j % up, j / up);
            let at = (branch * width + pad + 2 * reach - i) * T::FLOATS;
            branches[at..at + T::FLOATS].fill(tap as f32);
        }
        Polyphase {
            branches,
            width,
            up,
            down,
            branch: 0,
            history: vec![T::zeroed(); width + ROOM],
            filled: width - 1 - reach,
            start: 0,
            tail: reach,
        }
    }

    pub(super) fn ratio(&self) -> Ratio {
        Ratio { up: self.up as u32, down: self.down as u32 }
    }

    /// Like [`onbeat_runtime::Kernel::process`].
    pub(super) fn process(&mut self, input: &[T], output: &mut [T]) -> Progress {
        let (mut consumed, mut produced) = (0, 0);
        loop {
            produced += self.drain(&mut output[produced..]);
            if produced == output.len() || consumed == input.len() {
                return Progress { consumed, produced };
            }
            consumed += self.fill(&input[consumed..], output.len() - produced);
        }
    }

    /// Like [`onbeat_runtime::Kernel::finish`].
    pub(super) fn finish(&mut self, output: &mut [T]) -> usize {
        let zeros = [T::zeroed(); 64];
        let mut produced = 0;
        loop {
            let done = self.process(&zeros[..self.tail.min(zeros.len())], &mut output[produced..]);
            self.tail -= done.consumed;
            produced += done.produced;
            if done.consumed == 0 {
                return produced;
            }
        }
    }

    /// Computes the outputs whose windows are complete.
    fn drain(&mut self, output: &mut [T]) -> usize {
        let (whole, part) = (self.down / self.up, self.down % self.up);
        let stride = self.width * T::FLOATS;
        let mut produced = 0;
        for out in output {
            if self.start + self.width > self.filled {
                break;
            }
            let window = &self.history[self.start..self.start + self.width];
            *out = T::dot(window, &self.branches[self.branch * stride..(self.branch + 1) * stride]);
            produced += 1;
            self.start += whole;
            self.branch += part;
            if self.branch >= self.up {
                self.branch -= self.up;
                self.start += 1;
            }
        }
        produced
    }

    /// Copies input to the history, as much as `wanted` outputs need and as fits.
    fn fill(&mut self, input: &[T], wanted: usize) -> usize {
        if self.filled == self.history.len() {
            let done = self.start.min(self.filled);
            self.history.copy_within(done..self.filled, 0);
            self.filled -= done;
            self.start -= done;
        }
        let last = self.start + (self.branch + (wanted - 1) * self.down) / self.up;
        let needed = last + self.width - self.filled;
        let taken = needed.min(input.len()).min(self.history.len() - self.filled);
        self.history[self.filled..self.filled + taken].copy_from_slice(&input[..taken]);
        self.filled += taken;
        taken
    }
}
