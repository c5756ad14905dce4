//! Converts between real samples and bytes.

use super::FrameFilter;
use crate::vectors::Vectors;
use onbeat_runtime::Error;
use pulp::{Simd, WithSimd};

/// Rounds real samples to bytes: to the nearest integer, halves to the even one. Samples below 0 become 0,
/// those above 255 become 255, and NaN becomes 0. Chunks of any shape keep it.
#[derive(Debug, Clone)]
pub struct ToBytes(Vectors);

/// Makes real samples of bytes, from 0.0 to 255.0. Chunks of any shape keep it.
#[derive(Debug, Clone)]
pub struct FromBytes(Vectors);

/// In a float of this size, the last bit of the fraction is worth 1.
const INTEGERS: f32 = 12_582_912.0;

/// The loops, compiled for the processor's vectors.
enum ConvertLoop<'c> {
    ToBytes(&'c [f32], &'c mut [u8]),
    FromBytes(&'c [u8], &'c mut [f32]),
}

impl WithSimd for ConvertLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        match self {
            ConvertLoop::ToBytes(from, to) => from.iter().zip(to).for_each(|(x, y)| {
                let x = if x.is_nan() { 0.0 } else { x.clamp(0.0, 255.0) };
                *y = (x + INTEGERS).to_bits() as u8;
            }),
            ConvertLoop::FromBytes(from, to) => from.iter().zip(to).for_each(|(x, y)| *y = f32::from(*x)),
        }
    }
}

impl ToBytes {
    /// Creates the filter.
    pub fn new() -> Self {
        ToBytes(Vectors::new())
    }
}

impl FromBytes {
    /// Creates the filter.
    pub fn new() -> Self {
        FromBytes(Vectors::new())
    }
}

impl Default for ToBytes {
    fn default() -> Self {
        ToBytes::new()
    }
}

impl Default for FromBytes {
    fn default() -> Self {
        FromBytes::new()
    }
}

impl FrameFilter for ToBytes {
    type In = f32;
    type Out = u8;

    fn shape(&mut self, shape: [u32; 3]) -> Result<[u32; 3], Error> {
        Ok(shape)
    }

    fn filter(&mut self, input: &[f32], output: &mut [u8]) {
        self.0.run(ConvertLoop::ToBytes(input, output));
    }
}

impl FrameFilter for FromBytes {
    type In = u8;
    type Out = f32;

    fn shape(&mut self, shape: [u32; 3]) -> Result<[u32; 3], Error> {
        Ok(shape)
    }

    fn filter(&mut self, input: &[u8], output: &mut [f32]) {
        self.0.run(ConvertLoop::FromBytes(input, output));
    }
}
