//! Converts between real samples and bytes.

use super::FrameFilter;
use crate::check;
use crate::vectors::Vectors;
use onbeat_runtime::Error;
use pulp::{Simd, WithSimd};

/// Rounds real samples to bytes, after a scale and an offset: `scale x + offset`, to the nearest integer,
/// halves to the even one. Results below 0 become 0, those above 255 become 255, and NaN becomes 0. Chunks of
/// any shape keep it.
#[derive(Debug, Clone)]
pub struct ToBytes(Conversion);

/// Makes real samples of bytes: `scale byte + offset`, by default from 0.0 to 255.0. Chunks of any shape keep
/// it.
#[derive(Debug, Clone)]
pub struct FromBytes(Conversion);

/// In a float of this size, the last bit of the fraction is worth 1.
const INTEGERS: f32 = 12_582_912.0;

/// Scale and offset, and the vectors to compute with.
#[derive(Debug, Clone, Copy)]
struct Conversion {
    vectors: Vectors,
    scale: f32,
    offset: f32,
}

impl Conversion {
    fn new(scale: f64, offset: f64) -> Result<Self, Error> {
        check::single("scale", scale)?;
        check::single("offset", offset)?;
        Ok(Conversion { scale: scale as f32, offset: offset as f32, ..Conversion::default() })
    }
}

impl Default for Conversion {
    fn default() -> Self {
        Conversion { vectors: Vectors::new(), scale: 1.0, offset: 0.0 }
    }
}

/// The loops, compiled for the processor's vectors.
enum ConvertLoop<'c> {
    ToBytes(Conversion, &'c [f32], &'c mut [u8]),
    FromBytes(Conversion, &'c [u8], &'c mut [f32]),
}

impl WithSimd for ConvertLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        match self {
            ConvertLoop::ToBytes(by, from, to) => from.iter().zip(to).for_each(|(x, y)| {
                let x = by.scale * x + by.offset;
                let x = if x.is_nan() { 0.0 } else { x.clamp(0.0, 255.0) };
                *y = (x + INTEGERS).to_bits() as u8;
            }),
            ConvertLoop::FromBytes(by, from, to) => {
                from.iter().zip(to).for_each(|(x, y)| *y = by.scale * f32::from(*x) + by.offset);
            }
        }
    }
}

impl ToBytes {
    /// Creates the filter, with scale 1 and offset 0.
    pub fn new() -> Self {
        ToBytes(Conversion::default())
    }

    /// Creates the filter with a scale and an offset.
    ///
    /// # Errors
    /// When one of them is not a finite `f32`.
    pub fn scaled(scale: f64, offset: f64) -> Result<Self, Error> {
        Conversion::new(scale, offset).map(ToBytes)
    }
}

impl FromBytes {
    /// Creates the filter, with scale 1 and offset 0.
    pub fn new() -> Self {
        FromBytes(Conversion::default())
    }

    /// Creates the filter with a scale and an offset.
    ///
    /// # Errors
    /// When one of them is not a finite `f32`.
    pub fn scaled(scale: f64, offset: f64) -> Result<Self, Error> {
        Conversion::new(scale, offset).map(FromBytes)
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
        self.0.vectors.run(ConvertLoop::ToBytes(self.0, input, output));
    }
}

impl FrameFilter for FromBytes {
    type In = u8;
    type Out = f32;

    fn shape(&mut self, shape: [u32; 3]) -> Result<[u32; 3], Error> {
        Ok(shape)
    }

    fn filter(&mut self, input: &[u8], output: &mut [f32]) {
        self.0.vectors.run(ConvertLoop::FromBytes(self.0, input, output));
    }
}
