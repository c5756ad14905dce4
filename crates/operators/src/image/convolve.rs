//! Weighted sums of neighbours.

use super::{FrameFilter, FrameSize, frame};
use crate::check;
use crate::vectors::Vectors;
use onbeat_runtime::Error;
use pulp::{Simd, WithSimd};

/// Most rows and columns of weights.
const MOST: usize = 15;
/// Largest weight. Sums stay far below the largest float.
const LARGEST: f64 = 1e6;

/// Replaces each sample of grey and RGB frames by a weighted sum of its neighbours in the same channel:
/// `sum / divide + offset`.
///
/// The weights lie over the frame as they are written, the middle one on the sample itself. (They are not
/// mirrored: this is a correlation.) Outside of the frame, the nearest sample of its border counts. The
/// result is rounded to the nearest integer, halves up, and limited to 0 to 255. Sums are computed in 32-bit
/// floating point, row by row of the weights, so they are exact for whole weights whose magnitudes add up to
/// less than 65000.
#[derive(Debug, Clone)]
pub struct Convolve {
    vectors: Vectors,
    /// Weights, row by row.
    weights: Vec<f32>,
    /// Rows and columns of the weights.
    kernel: (usize, usize),
    divide: f32,
    offset: f32,
    size: FrameSize,
    /// The last rows of the frame, extended beyond both borders: row `r` at `r % kernel.0`.
    lines: Vec<f32>,
    sums: Vec<f32>,
}

impl Convolve {
    /// Creates the filter. Without `divide`, sums are divided by the sum of the weights, or by 1 if that is
    /// 0.
    ///
    /// # Errors
    /// When the rows of weights are not equally long, when there is not an odd number from 1 to 15 of rows
    /// and of columns, or when a number is not finite, above a million, or `divide` is 0.
    pub fn new(weights: &[Vec<f64>], divide: Option<f64>, offset: f64) -> Result<Self, Error> {
        let (rows, columns) = (weights.len(), weights.first().map_or(0, Vec::len));
        if let Some(row) = weights.iter().position(|row| row.len() != columns) {
            return Err(Error::new(format!(
                "`weights` has {columns} numbers in its first row and {} in row {}: all rows must have the \
                 same length",
                weights[row].len(),
                row + 1
            )));
        }
        for (what, count) in [("rows", rows), ("columns", columns)] {
            if count % 2 == 0 || count > MOST {
                return Err(Error::new(format!(
                    "`weights` has {count} {what}: it must be an odd number from 1 to {MOST}; pad with 0"
                )));
            }
        }
        let all = weights.iter().flatten().copied();
        for weight in all.clone() {
            check::within("weights", weight, -LARGEST, LARGEST, "use smaller weights and `divide`")?;
        }
        let total: f64 = all.clone().sum();
        let divide = divide.unwrap_or(if total == 0.0 { 1.0 } else { total });
        check::within("divide", divide.abs(), 1e-6, 1e9, "leave it out for the sum of the weights")?;
        check::within("offset", offset, -LARGEST, LARGEST, "samples are bytes")?;
        Ok(Convolve {
            vectors: Vectors::new(),
            weights: all.map(|weight| weight as f32).collect(),
            kernel: (rows, columns),
            divide: divide as f32,
            offset: offset as f32,
            size: FrameSize::default(),
            lines: Vec::new(),
            sums: Vec::new(),
        })
    }

    /// Samples of an extended row.
    fn line(&self) -> usize {
        (self.size.columns + self.kernel.1 - 1) * self.size.channels
    }
}

/// The loop, compiled for the processor's vectors.
struct ConvolveLoop<'c> {
    convolve: &'c mut Convolve,
    input: &'c [u8],
    output: &'c mut [u8],
}

/// Extends a row by its first and last pixel.
#[inline(always)]
fn extend(row: &[u8], channels: usize, line: &mut [f32]) {
    let beyond = (line.len() - row.len()) / 2;
    let (before, rest) = line.split_at_mut(beyond);
    let (inside, after) = rest.split_at_mut(row.len());
    inside.iter_mut().zip(row).for_each(|(to, x)| *to = f32::from(*x));
    let (first, last) = (&row[..channels], &row[row.len() - channels..]);
    for (part, pixel) in [(before, first), (after, last)] {
        for to in part.chunks_exact_mut(channels) {
            to.iter_mut().zip(pixel).for_each(|(to, x)| *to = f32::from(*x));
        }
    }
}

impl WithSimd for ConvolveLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let line = self.convolve.line();
        let Convolve { weights, kernel: (down, across), divide, offset, size, lines, sums, .. } =
            self.convolve;
        let FrameSize { rows, columns, channels } = *size;
        let samples = columns * channels;
        let place = |row: usize| row % *down * line..(row % *down + 1) * line;
        let mut done = 0;
        for (y, out) in self.output.chunks_exact_mut(samples).enumerate() {
            let needed = rows.min(y + *down / 2 + 1);
            for row in done..needed {
                let from = &self.input[row * samples..(row + 1) * samples];
                extend(from, channels, &mut lines[place(row)]);
            }
            done = needed;
            sums.fill(0.0);
            for (by, weights) in weights.chunks_exact(*across).enumerate() {
                let near = &lines[place((y + by).saturating_sub(*down / 2).min(rows - 1))];
                for (at, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                    let from = &near[at * channels..][..samples];
                    sums.iter_mut().zip(from).for_each(|(sum, x)| *sum += weight * x);
                }
            }
            for (to, sum) in out.iter_mut().zip(&*sums) {
                *to = (sum / *divide + *offset + 0.5).floor().clamp(0.0, 255.0) as u8;
            }
        }
    }
}

impl FrameFilter for Convolve {
    type In = u8;
    type Out = u8;

    fn shape(&mut self, shape: [u32; 3]) -> Result<[u32; 3], Error> {
        self.size = frame(shape)?;
        self.lines.resize(self.kernel.0 * self.line(), 0.0);
        self.sums.resize(self.size.columns * self.size.channels, 0.0);
        Ok(shape)
    }

    fn filter(&mut self, input: &[u8], output: &mut [u8]) {
        let vectors = self.vectors;
        vectors.run(ConvolveLoop { convolve: self, input, output });
    }
}
