//! Many outputs side by side, one per lane of the vectors.
//!
//! Input sample `n` is stored in plane `n % down` at row `n / down`. Every `up`-th output has the same
//! branch, and from one such output to the next the window moves by one row. So for each tap, the samples
//! that these outputs need lie beside each other in one plane: a vector of them times the tap is added to
//! a vector of outputs.
//!
//! ```text
//! up = 1, down = 2     plane 0: x[0] x[2] x[4] x[6] ..    taps h[0], h[2]: from here
//!                      plane 1: x[1] x[3] x[5] x[7] ..    tap h[1]: from here
//!                               y[0] y[1] y[2] y[3] ..
//! ```
//!
//! Every output is summed along its window, the oldest sample first, whatever its lane.

use super::{FirSample, ROOM, Windows, branch};
use crate::vectors::Vectors;
use pulp::{Simd, WithSimd};

/// Vectors of outputs at a time: as many sums hide the latency of an addition, and one tap serves them all.
const BLOCK: usize = 8;

/// Rows that the widest vectors may read beyond the last one.
const BEYOND: usize = 16;

/// A tap, and where its sample of row 0 is, in floats from the begin of the first plane.
#[derive(Debug, Clone, Copy)]
struct PlaneTap {
    at: u32,
    value: f32,
}

/// Outputs side by side, with their history.
#[derive(Debug, Clone)]
pub(super) struct Planes<T> {
    vectors: Vectors,
    up: usize,
    down: usize,
    /// Samples in a window.
    width: usize,
    /// Taps of output `k`, at `k % up`.
    phases: Vec<Vec<PlaneTap>>,
    /// The planes, each `stride` long. `rows` rows hold samples.
    samples: Vec<T>,
    stride: usize,
    rows: usize,
    /// Number of samples since row 0.
    filled: usize,
    /// Number of the next output since row 0.
    next: usize,
    /// Outputs of one phase.
    phase: Vec<T>,
}

impl<T: FirSample> Planes<T> {
    pub(super) fn new(taps: &[f64], up: usize, down: usize) -> Self {
        let reach = (taps.len() - 1) / (2 * up);
        let width = 2 * reach + 1;
        let rows = (width + ROOM).div_ceil(down);
        // An odd number of cache lines apart, the planes do not share few sets of the cache.
        let stride = ((rows + BEYOND).div_ceil(BEYOND) | 1) * BEYOND;
        let phases = (0..up).map(|phase| {
            let first = phase * down / up;
            let taps = branch(taps, up, phase * down % up).into_iter().enumerate();
            let place = |sample: usize| sample % down * stride + sample / down;
            taps.map(|(at, value)| PlaneTap { at: (place(first + at) * T::FLOATS) as u32, value }).collect()
        });
        Planes {
            vectors: Vectors::new(),
            up,
            down,
            width,
            phases: phases.collect(),
            samples: vec![T::zeroed(); down * stride],
            stride,
            rows,
            filled: reach,
            next: 0,
            phase: vec![T::zeroed(); rows + 1],
        }
    }

    /// Forgets all samples.
    pub(super) fn reset(&mut self) {
        let reach = self.width / 2;
        for plane in self.samples.chunks_exact_mut(self.stride) {
            plane[..reach.div_ceil(self.down)].fill(T::zeroed());
        }
        (self.filled, self.next) = (reach, 0);
    }

    /// Samples in the window of an output.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Number of outputs whose windows are complete, of those that are not computed yet.
    fn ready(&self) -> usize {
        let begins = (self.filled + 1).saturating_sub(self.width);
        (begins * self.up).div_ceil(self.down).saturating_sub(self.next)
    }

    /// Makes room: the row of the next output becomes row 0.
    fn slide(&mut self) {
        let rows = (self.next / self.up).min(self.filled / self.down);
        for plane in self.samples.chunks_exact_mut(self.stride) {
            plane.copy_within(rows..self.rows, 0);
        }
        self.filled -= rows * self.down;
        self.next -= rows * self.up;
    }

    /// Stores samples after those that are there.
    fn put(&mut self, input: &[T]) {
        let into_row = self.filled.next_multiple_of(self.down) - self.filled;
        let (first, input) = input.split_at(into_row.min(input.len()));
        let (middle, last) = input.split_at(input.len() - input.len() % self.down);
        first.iter().for_each(|x| self.put_one(*x));
        let row = self.filled / self.down;
        let rows = NewRows { input: middle, planes: &mut self.samples, stride: self.stride, row };
        match self.down {
            1 => rows.planes[row..row + middle.len()].copy_from_slice(middle),
            2 => self.vectors.run(RowsToPlanes::<T, 2>(rows)),
            3 => self.vectors.run(RowsToPlanes::<T, 3>(rows)),
            4 => self.vectors.run(RowsToPlanes::<T, 4>(rows)),
            down => rows.by_plane(down),
        }
        self.filled += middle.len();
        last.iter().for_each(|x| self.put_one(*x));
    }

    fn put_one(&mut self, x: T) {
        self.samples[self.filled % self.down * self.stride + self.filled / self.down] = x;
        self.filled += 1;
    }
}

/// Whole rows of samples, and the planes that get them.
struct NewRows<'s, T> {
    input: &'s [T],
    planes: &'s mut [T],
    stride: usize,
    /// First row.
    row: usize,
}

impl<T: FirSample> NewRows<'_, T> {
    fn by_plane(self, down: usize) {
        let rows = self.input.len() / down;
        for (plane, samples) in self.planes.chunks_exact_mut(self.stride).enumerate() {
            let from = self.input.iter().skip(plane).step_by(down);
            samples[self.row..self.row + rows].iter_mut().zip(from).for_each(|(place, x)| *place = *x);
        }
    }
}

/// [`NewRows::by_plane`] with vectors.
struct RowsToPlanes<'s, T, const DOWN: usize>(NewRows<'s, T>);

impl<T: FirSample, const DOWN: usize> WithSimd for RowsToPlanes<'_, T, DOWN> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let NewRows { input, planes, stride, row } = self.0;
        let rows = input.as_chunks::<DOWN>().0;
        for (plane, samples) in planes.chunks_exact_mut(stride).enumerate() {
            let places = samples[row..row + rows.len()].iter_mut();
            places.zip(rows).for_each(|(place, row)| *place = row[plane]);
        }
    }
}

impl<T: FirSample> Windows<T> for Planes<T> {
    fn drain(&mut self, output: &mut [T]) -> usize {
        let count = self.ready().min(output.len());
        if count > 0 {
            let (planes, phases) = (bytemuck::cast_slice(&self.samples), &self.phases[..]);
            let (first, phase) = (self.next, &mut self.phase[..]);
            self.vectors.run(Sums { planes, phases, first, output: &mut output[..count], phase });
            self.next += count;
        }
        count
    }

    fn fill(&mut self, input: &[T], wanted: usize) -> usize {
        if self.filled == self.rows * self.down {
            self.slide();
        }
        let last = (self.next + wanted - 1) * self.down / self.up;
        let needed = last + self.width - self.filled;
        let taken = needed.min(input.len()).min(self.rows * self.down - self.filled);
        self.put(&input[..taken]);
        taken
    }
}

/// Outputs to compute.
struct Sums<'s, T> {
    planes: &'s [f32],
    phases: &'s [Vec<PlaneTap>],
    /// Number of the first one.
    first: usize,
    output: &'s mut [T],
    phase: &'s mut [T],
}

impl<T: FirSample> WithSimd for Sums<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Sums { planes, phases, first, output, phase: outputs } = self;
        if let [taps] = phases {
            return rows(simd, planes, taps, first * T::FLOATS, bytemuck::cast_slice_mut(output));
        }
        let up = phases.len();
        for (phase, taps) in phases.iter().enumerate() {
            let row = (first + up - 1 - phase) / up;
            let Some(places) = output.get_mut(phase + row * up - first..) else { continue };
            let outputs = &mut outputs[..places.len().div_ceil(up)];
            rows(simd, planes, taps, row * T::FLOATS, bytemuck::cast_slice_mut(outputs));
            places.iter_mut().step_by(up).zip(outputs).for_each(|(place, y)| *place = *y);
        }
    }
}

/// Computes outputs of one phase, the first of them at a row that begins at float `at` of each plane.
#[inline(always)]
fn rows<S: Simd>(simd: S, planes: &[f32], taps: &[PlaneTap], mut at: usize, output: &mut [f32]) {
    let (whole, part) = S::as_mut_simd_f32s(output);
    let (blocks, rest) = whole.as_chunks_mut::<BLOCK>();
    for block in blocks {
        *block = sums(simd, planes, taps, at);
        at += BLOCK * S::F32_LANES;
    }
    let (pairs, rest) = rest.as_chunks_mut::<2>();
    for pair in pairs {
        *pair = sums(simd, planes, taps, at);
        at += 2 * S::F32_LANES;
    }
    for one in rest {
        [*one] = sums(simd, planes, taps, at);
        at += S::F32_LANES;
    }
    if !part.is_empty() {
        let [one] = sums(simd, planes, taps, at);
        simd.partial_store_f32s(part, one);
    }
}

/// Sums of products for `N` vectors of outputs.
#[inline(always)]
fn sums<S: Simd, const N: usize>(simd: S, planes: &[f32], taps: &[PlaneTap], at: usize) -> [S::f32s; N] {
    let mut sums = [simd.splat_f32s(0.0); N];
    for tap in taps {
        let from = tap.at as usize + at;
        let (samples, _) = S::as_simd_f32s(&planes[from..from + N * S::F32_LANES]);
        let value = simd.splat_f32s(tap.value);
        for (sum, sample) in sums.iter_mut().zip(samples) {
            *sum = simd.add_f32s(*sum, simd.mul_f32s(*sample, value));
        }
    }
    sums
}
