//! Smooths frames.

use super::{FrameFilter, grey};
use crate::vectors::Vectors;
use onbeat_runtime::Error;
use pulp::{Simd, WithSimd};

/// Rows whose sums are kept: those of the kernel.
const ROWS: usize = 5;

/// Smooths grey frames with the binomial kernel of 5 × 5 samples, the product of the weights 1 4 6 4 1 along
/// rows and along columns.
///
/// The weighted sum is divided by 256 and rounded to the nearest integer, halves up. It is exact: nothing is
/// rounded before. Outside the frame, the nearest sample of its border counts. The kernel is symmetric, so
/// nothing moves.
#[derive(Debug, Clone)]
pub struct Blur {
    vectors: Vectors,
    size: (usize, usize),
    /// Sums along the last five rows, row `r` at `r % 5`.
    sums: Vec<u16>,
}

impl Blur {
    /// Creates the filter.
    pub fn new() -> Self {
        Blur { vectors: Vectors::new(), size: (0, 0), sums: Vec::new() }
    }
}

impl Default for Blur {
    fn default() -> Self {
        Blur::new()
    }
}

/// Weighted sum of five neighbours. Twice applied, at most 256 times 255, which 16 bits hold.
#[inline(always)]
fn weighted([a, b, c, d, e]: [u16; ROWS]) -> u16 {
    a + e + ((b + c + d) << 2) + (c << 1)
}

/// Sums along a row.
#[inline(always)]
fn along(row: &[u8], sums: &mut [u16]) {
    let last = row.len() - 1;
    let near = |x: usize, by: usize| u16::from(row[(x + by).saturating_sub(2).min(last)]);
    let at_border = |x: usize| weighted(std::array::from_fn(|by| near(x, by)));
    for x in (0..row.len().min(2)).chain(row.len().saturating_sub(2).max(2)..row.len()) {
        sums[x] = at_border(x);
    }
    let Some(count) = row.len().checked_sub(ROWS - 1) else { return };
    let shifted: [&[u8]; ROWS] = std::array::from_fn(|by| &row[by..by + count]);
    for (x, sum) in sums[2..2 + count].iter_mut().enumerate() {
        *sum = weighted(std::array::from_fn(|by| u16::from(shifted[by][x])));
    }
}

/// The loop, compiled for the processor's vectors.
struct BlurLoop<'b> {
    size: (usize, usize),
    sums: &'b mut [u16],
    input: &'b [u8],
    output: &'b mut [u8],
}

impl WithSimd for BlurLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let (rows, columns) = self.size;
        let place = |row: usize| row % ROWS * columns..(row % ROWS + 1) * columns;
        let mut done = 0;
        for (y, out) in self.output.chunks_exact_mut(columns).enumerate() {
            let needed = rows.min(y + ROWS / 2 + 1);
            for row in done..needed {
                along(&self.input[row * columns..(row + 1) * columns], &mut self.sums[place(row)]);
            }
            done = needed;
            let near = |by: usize| &self.sums[place((y + by).saturating_sub(2).min(rows - 1))];
            let near: [&[u16]; ROWS] = std::array::from_fn(near);
            for (x, to) in out.iter_mut().enumerate() {
                let sum = weighted(std::array::from_fn(|by| near[by][x]));
                *to = ((sum + 128) >> 8) as u8;
            }
        }
    }
}

impl FrameFilter for Blur {
    type In = u8;
    type Out = u8;

    fn shape(&mut self, shape: [u32; 3]) -> Result<[u32; 3], Error> {
        self.size = grey(shape)?;
        self.sums.resize(ROWS * self.size.1, 0);
        Ok(shape)
    }

    fn filter(&mut self, input: &[u8], output: &mut [u8]) {
        self.vectors.run(BlurLoop { size: self.size, sums: &mut self.sums, input, output });
    }
}
