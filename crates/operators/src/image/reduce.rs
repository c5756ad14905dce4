//! Makes frames smaller.

use super::{FrameFilter, grey};
use crate::check;
use crate::vectors::Vectors;
use onbeat_runtime::Error;
use pulp::{Simd, WithSimd};

/// Means of blocks of `factor` × `factor` samples of grey frames.
///
/// A mean is rounded to the nearest integer, halves up. Rows and columns beyond the last whole block are left
/// out. A tag moves to the block that contains its sample, or to the nearest one.
#[derive(Debug, Clone)]
pub struct Reduce {
    vectors: Vectors,
    factor: usize,
    columns: usize,
    /// Rows and columns of the result.
    size: (usize, usize),
    /// Sums of the columns of a row of blocks.
    sums: Vec<u32>,
}

impl Reduce {
    /// Creates the filter. A factor of 1 changes nothing.
    ///
    /// # Errors
    /// When `factor` is not from 1 to 256.
    pub fn new(factor: u32) -> Result<Self, Error> {
        check::within("factor", factor.into(), 1.0, 256.0, "reduce in two steps")?;
        let (vectors, factor) = (Vectors::new(), factor as usize);
        Ok(Reduce { vectors, factor, columns: 0, size: (0, 0), sums: Vec::new() })
    }
}

/// The loop, compiled for the processor's vectors.
struct ReduceLoop<'r> {
    reduce: &'r mut Reduce,
    input: &'r [u8],
    output: &'r mut [u8],
}

/// Means of blocks of 2 × 2 samples.
#[inline(always)]
fn halve(upper: &[u8], lower: &[u8], out: &mut [u8]) {
    // As one number of 16 bits, two neighbours are split by a mask and a shift.
    let sum = |pair: &[u8; 2]| {
        let both = u16::from_le_bytes(*pair);
        (both & 0xff) + (both >> 8)
    };
    let pairs = upper.as_chunks().0.iter().zip(lower.as_chunks().0);
    for (to, (upper, lower)) in out.iter_mut().zip(pairs) {
        *to = ((sum(upper) + sum(lower) + 2) >> 2) as u8;
    }
}

/// The mean of a block, of the sums of its columns.
#[inline(always)]
fn mean(sums: &[u32], factor: usize) -> u8 {
    let area = (factor * factor) as u32;
    ((sums.iter().sum::<u32>() + area / 2) / area) as u8
}

/// Means of a row of blocks, with a division that is compiled for the factor.
#[inline(always)]
fn means<const FACTOR: usize>(sums: &[u32], out: &mut [u8]) {
    let blocks = out.iter_mut().zip(sums.as_chunks::<FACTOR>().0);
    blocks.for_each(|(to, sums)| *to = mean(sums, FACTOR));
}

impl WithSimd for ReduceLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Reduce { factor, columns, size: (_, across), .. } = *self.reduce;
        let sums = &mut self.reduce.sums[..];
        let blocks = self.input.chunks_exact(factor * columns);
        for (blocks, out) in blocks.zip(self.output.chunks_exact_mut(across)) {
            if factor == 2 {
                let (upper, lower) = blocks.split_at(columns);
                halve(upper, lower, out);
                continue;
            }
            sums.fill(0);
            for row in blocks.chunks_exact(columns) {
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += u32::from(*x));
            }
            match factor {
                3 => means::<3>(sums, out),
                4 => means::<4>(sums, out),
                5 => means::<5>(sums, out),
                6 => means::<6>(sums, out),
                8 => means::<8>(sums, out),
                16 => means::<16>(sums, out),
                _ => {
                    let blocks = out.iter_mut().zip(sums.chunks_exact(factor));
                    blocks.for_each(|(to, sums)| *to = mean(sums, factor));
                }
            }
        }
    }
}

impl FrameFilter for Reduce {
    type In = u8;
    type Out = u8;

    fn shape(&mut self, shape: [u32; 3]) -> Result<[u32; 3], Error> {
        let (rows, columns) = grey(shape)?;
        let (down, across) = (rows / self.factor, columns / self.factor);
        if down == 0 || across == 0 {
            return Err(Error::new(format!(
                "`factor` is {}: it must be at most {}, as its input has frames of {rows} × {columns}; give \
                 a smaller factor",
                self.factor,
                rows.min(columns)
            )));
        }
        (self.columns, self.size) = (columns, (down, across));
        self.sums.resize(columns, 0);
        Ok([down as u32, across as u32, shape[2]])
    }

    fn filter(&mut self, input: &[u8], output: &mut [u8]) {
        let vectors = self.vectors;
        vectors.run(ReduceLoop { reduce: self, input, output });
    }

    fn place(&self, sample: usize) -> usize {
        let (down, across) = self.size;
        let row = (sample / self.columns / self.factor).min(down - 1);
        row * across + (sample % self.columns / self.factor).min(across - 1)
    }
}
