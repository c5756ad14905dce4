//! The common filter: a polyphase filter that changes the rate by `up / down`.
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
//! There are three ways to compute it. [`Planes`] computes many outputs side by side: it suits all but rates
//! whose period `down` is longer than the vectors are wide. [`Dots`] computes one output after the other.
//! [`Blocks`] suits long filters that do not raise the rate, where outputs may wait.
//!
//! With the first two, each output depends on its window alone, summed in one fixed order. This makes it
//! independent of the slices and of the width of the vectors.

mod blocks;
mod dots;
mod planes;

use blocks::Blocks;
use bytemuck::Zeroable;
use dots::Dots;
use num_complex::Complex;
use onbeat_runtime::{Progress, Ratio, Sample};
use planes::Planes;

/// Samples of room beyond one window. Windows slide through the room; then the last one is copied to the
/// front. 1024 keeps the room within half of an L1 cache and the copy below 5 % of the work at usual filter
/// lengths.
const ROOM: usize = 1024;

/// Largest `down` for [`Planes`]: a chunk of 2048 samples then has four vectors of outputs.
const MOST_PLANES: usize = 32;

/// A sample type of the filters: `f32` or `Complex<f32>`.
pub trait FirSample: Sample + Zeroable + sealed::Floats {}
impl FirSample for f32 {}
impl FirSample for Complex<f32> {}

mod sealed {
    use num_complex::Complex;
    use std::iter::Sum;
    use std::ops::Mul;

    /// A sample as floats, all of which meet the same tap.
    pub trait Floats: Mul<f32, Output = Self> + Sum {
        /// Floats per sample.
        const FLOATS: usize;
        /// Adds lanes, of which each sample has `FLOATS`, to one sample: the upper half to the lower half
        /// until one sample is left.
        fn fold(lanes: [f32; 16]) -> Self;

        /// Writes the segments of a block, which begin `step` samples apart, as complex numbers.
        fn to_complex(block: &[Self], step: usize, segment: &mut [Complex<f32>]);

        /// Adds `j` times another sample. A real sample has no such part and stays as it is.
        fn plus_turned(self, other: Self) -> Self;

        /// Reads the outputs of the segments: every `down`-th number.
        fn from_complex(segment: &[Complex<f32>], down: usize, outputs: &mut [Self]);
    }
}

impl sealed::Floats for f32 {
    const FLOATS: usize = 1;
    #[inline(always)]
    fn fold(lanes: [f32; 16]) -> f32 {
        let [sum] = halved(lanes);
        sum
    }

    fn plus_turned(self, _: f32) -> f32 {
        self
    }

    fn to_complex(block: &[f32], step: usize, segment: &mut [Complex<f32>]) {
        let pairs = block.iter().zip(&block[step..]);
        segment.iter_mut().zip(pairs).for_each(|(x, (re, im))| *x = Complex::new(*re, *im));
    }

    fn from_complex(segment: &[Complex<f32>], down: usize, outputs: &mut [f32]) {
        let (first, second) = outputs.split_at_mut(outputs.len() / 2);
        let pairs = first.iter_mut().zip(second);
        pairs.zip(segment.iter().step_by(down)).for_each(|((re, im), y)| (*re, *im) = (y.re, y.im));
    }
}

impl sealed::Floats for Complex<f32> {
    const FLOATS: usize = 2;
    #[inline(always)]
    fn fold(lanes: [f32; 16]) -> Complex<f32> {
        let [re, im] = halved(lanes);
        Complex::new(re, im)
    }

    fn plus_turned(self, other: Complex<f32>) -> Complex<f32> {
        Complex::new(self.re - other.im, self.im + other.re)
    }

    fn to_complex(block: &[Complex<f32>], _: usize, segment: &mut [Complex<f32>]) {
        segment.copy_from_slice(block);
    }

    fn from_complex(segment: &[Complex<f32>], down: usize, outputs: &mut [Complex<f32>]) {
        outputs.iter_mut().zip(segment.iter().step_by(down)).for_each(|(output, y)| *output = *y);
    }
}

/// Adds the upper half of the lanes to the lower half until `N` are left.
#[inline(always)]
fn halved<const N: usize>(mut sum: [f32; 16]) -> [f32; N] {
    let mut width = 8;
    while width >= N {
        for lane in 0..width {
            sum[lane] += sum[lane + width];
        }
        width /= 2;
    }
    std::array::from_fn(|lane| sum[lane])
}

/// Taps of one branch in the order of its window, the oldest sample first. A shorter branch has a zero there.
fn branch(taps: &[f64], up: usize, branch: usize) -> Vec<f32> {
    // Later taps meet older samples.
    let newest_last = (branch..branch + taps.len()).step_by(up).rev();
    newest_last.map(|at| taps.get(at).map_or(0.0, |tap| *tap as f32)).collect()
}

/// A way to compute the outputs, with the history that it needs.
trait Windows<T> {
    /// Computes the outputs whose windows are complete, as many as fit.
    fn drain(&mut self, output: &mut [T]) -> usize;
    /// Copies input to the history, as much as `wanted` outputs need and as fits.
    fn fill(&mut self, input: &[T], wanted: usize) -> usize;

    /// Like [`onbeat_runtime::Kernel::process`].
    fn process(&mut self, input: &[T], output: &mut [T]) -> Progress {
        let (mut consumed, mut produced) = (0, 0);
        loop {
            produced += self.drain(&mut output[produced..]);
            if produced == output.len() || consumed == input.len() {
                return Progress { consumed, produced };
            }
            consumed += self.fill(&input[consumed..], output.len() - produced);
        }
    }
}

/// The filter with its history.
#[derive(Debug, Clone)]
pub(super) struct Polyphase<T> {
    form: FilterForm<T>,
    ratio: Ratio,
    /// Zeros that `finish` still has to feed.
    tail: usize,
}

#[derive(Debug, Clone)]
enum FilterForm<T> {
    Planes(Planes<T>),
    Dots(Dots<T>),
    Blocks(Blocks<T>),
}

impl<T: FirSample> Polyphase<T> {
    /// Creates a filter with `2 * up * reach + 1` taps (so their number, less one, is a multiple of `2 *
    /// up`). Its gain for a constant is `sum(taps) / up`.
    pub(super) fn new(taps: &[f64], up: usize, down: usize) -> Self {
        let reach = (taps.len() - 1) / (2 * up);
        debug_assert_eq!(taps.len(), 2 * up * reach + 1);
        let form = match down {
            ..=MOST_PLANES => FilterForm::Planes(Planes::new(taps, up, down)),
            _ => FilterForm::Dots(Dots::new(taps, up, down)),
        };
        Polyphase { form, ratio: Ratio { up: up as u32, down: down as u32 }, tail: reach }
    }

    /// Creates a filter with an odd number of taps that computes whole blocks.
    pub(super) fn in_blocks(taps: &[f64], down: usize) -> Self {
        let form = FilterForm::Blocks(Blocks::new(taps, down));
        Polyphase { form, ratio: Ratio { up: 1, down: down as u32 }, tail: taps.len() / 2 }
    }

    pub(super) fn ratio(&self) -> Ratio {
        self.ratio
    }

    /// Like [`onbeat_runtime::FiniteMemory::memory`]; `None` if the outputs depend on the begin of the
    /// stream.
    pub(super) fn memory(&self) -> Option<usize> {
        match &self.form {
            FilterForm::Planes(planes) => Some(planes.width() - 1),
            FilterForm::Dots(dots) => Some(dots.width() - 1),
            FilterForm::Blocks(_) => None,
        }
    }

    /// Like [`onbeat_runtime::FiniteMemory::resume`]. Only for filters with a [`memory`](Self::memory).
    pub(super) fn resume(&mut self) {
        match &mut self.form {
            FilterForm::Planes(planes) => planes.reset(),
            FilterForm::Dots(dots) => dots.reset(),
            FilterForm::Blocks(_) => {}
        }
    }

    /// Like [`onbeat_runtime::Kernel::process`].
    pub(super) fn process(&mut self, input: &[T], output: &mut [T]) -> Progress {
        match &mut self.form {
            FilterForm::Planes(planes) => planes.process(input, output),
            FilterForm::Dots(dots) => dots.process(input, output),
            FilterForm::Blocks(blocks) => blocks.process(input, output),
        }
    }

    /// Computes outputs that wait for the end of a block. Returns whether there are any.
    fn flush(&mut self) -> bool {
        match &mut self.form {
            FilterForm::Blocks(blocks) => blocks.flush(),
            FilterForm::Planes(_) | FilterForm::Dots(_) => false,
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
            if done.consumed == 0 && (produced == output.len() || !self.flush()) {
                return produced;
            }
        }
    }
}
