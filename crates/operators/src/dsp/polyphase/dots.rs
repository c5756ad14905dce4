//! One output after the other: a sum of products along its window, in lanes that are added at its end.

use super::{FirSample, ROOM, Windows, branch};
use crate::vectors::Vectors;
use pulp::{Simd, WithSimd};

/// Floats that are summed side by side, whatever the width of the vectors: the order of the sum depends on
/// it.
const LANES: usize = 16;

/// Outputs one after the other, with their history.
#[derive(Debug, Clone)]
pub(super) struct Dots<T> {
    vectors: Vectors,
    /// `up` branches one after the other, each `width * T::FLOATS` long, in the order of the window: a tap
    /// for each float of a sample.
    branches: Vec<f32>,
    /// Samples in a window: `2 * reach + 1`, filled up to whole lane groups with zero taps at the old end.
    width: usize,
    reach: usize,
    up: usize,
    down: usize,
    /// Branch of the next output.
    branch: usize,
    /// Inputs still needed; the length is fixed, and `filled` of them are valid.
    history: Vec<T>,
    filled: usize,
    /// First sample of the next output's window. Beyond `filled` when samples will be skipped.
    start: usize,
}

impl<T: FirSample> Dots<T> {
    pub(super) fn new(taps: &[f64], up: usize, down: usize) -> Self {
        let reach = (taps.len() - 1) / (2 * up);
        let width = (2 * reach + 1).next_multiple_of(LANES / T::FLOATS);
        let pad = width - (2 * reach + 1);
        let mut branches = Vec::with_capacity(up * width * T::FLOATS);
        for number in 0..up {
            let taps = std::iter::repeat_n(0.0, pad).chain(branch(taps, up, number));
            branches.extend(taps.flat_map(|tap| std::iter::repeat_n(tap, T::FLOATS)));
        }
        Dots {
            vectors: Vectors::new(),
            branches,
            width,
            reach,
            up,
            down,
            branch: 0,
            history: vec![T::zeroed(); width + ROOM],
            filled: width - 1 - reach,
            start: 0,
        }
    }

    /// Forgets all samples.
    pub(super) fn reset(&mut self) {
        let zeros = self.width - 1 - self.reach;
        self.history[..zeros].fill(T::zeroed());
        (self.filled, self.start, self.branch) = (zeros, 0, 0);
    }

    /// Samples in the window of an output.
    pub(super) fn width(&self) -> usize {
        2 * self.reach + 1
    }

    /// Computes outputs until the windows or the room for them end.
    #[inline(always)]
    fn sums(&mut self, output: &mut [T]) -> usize {
        let (whole, part) = (self.down / self.up, self.down % self.up);
        let stride = self.width * T::FLOATS;
        let mut produced = 0;
        for out in output {
            if self.start + self.width > self.filled {
                break;
            }
            let window = &self.history[self.start..self.start + self.width];
            let branch = &self.branches[self.branch * stride..(self.branch + 1) * stride];
            *out = T::fold(products(bytemuck::cast_slice(window), branch));
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
}

/// Sums of products per lane.
#[inline(always)]
fn products(x: &[f32], h: &[f32]) -> [f32; LANES] {
    let mut sum = [0.0; LANES];
    for (x, h) in x.as_chunks::<LANES>().0.iter().zip(h.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sum[lane] += x[lane] * h[lane];
        }
    }
    sum
}

/// The loop, compiled for the processor's vectors.
struct DotsLoop<'d, T> {
    dots: &'d mut Dots<T>,
    output: &'d mut [T],
}

impl<T: FirSample> WithSimd for DotsLoop<'_, T> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> usize {
        self.dots.sums(self.output)
    }
}

impl<T: FirSample> Windows<T> for Dots<T> {
    fn drain(&mut self, output: &mut [T]) -> usize {
        self.vectors.run(DotsLoop { dots: self, output })
    }

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
