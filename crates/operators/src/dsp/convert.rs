//! Converts the bytes of a recording to samples.

use crate::format::Coding;
use num_complex::Complex;

/// Converts as many samples as both slices hold; a pair is `N` bytes of two numbers.
fn unpack<const N: usize>(coding: Coding, pairs: &[[u8; N]], samples: &mut [Complex<f32>]) -> usize {
    let count = pairs.len().min(samples.len());
    coding.unpack(pairs[..count].as_flattened(), bytemuck::cast_slice_mut(&mut samples[..count]));
    count
}

/// Unpacks signed 8-bit pairs (SigMF `ci8`: in-phase, quadrature) to complex samples, 1/128 per step, so that
/// −128 becomes −1. Converts as many as both slices hold and returns that number.
pub fn ci8_to_complex(pairs: &[[i8; 2]], samples: &mut [Complex<f32>]) -> usize {
    unpack::<2>(Coding::I8, bytemuck::cast_slice(pairs), samples)
}

/// Unpacks unsigned 8-bit pairs (`cu8`), where zero is between 127 and 128, to complex samples, 1/127.5 per
/// step: 0 becomes −1 and 255 becomes 1. Otherwise like [`ci8_to_complex`].
pub fn cu8_to_complex(pairs: &[[u8; 2]], samples: &mut [Complex<f32>]) -> usize {
    unpack(Coding::CU8, pairs, samples)
}

/// Unpacks signed 16-bit pairs, low byte first (`ci16_le`), to complex samples, 1/32768 per step. Otherwise
/// like [`ci8_to_complex`].
pub fn ci16_le_to_complex(pairs: &[[[u8; 2]; 2]], samples: &mut [Complex<f32>]) -> usize {
    unpack::<4>(Coding::I16, bytemuck::cast_slice(pairs), samples)
}

/// Copies pairs of 32-bit floats, low byte first (`cf32_le`), to complex samples. Otherwise like
/// [`ci8_to_complex`].
pub fn cf32_le_to_complex(pairs: &[[[u8; 4]; 2]], samples: &mut [Complex<f32>]) -> usize {
    unpack::<8>(Coding::F32, bytemuck::cast_slice(pairs), samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_both_have() {
        let mut out = [Complex::new(9.0, 9.0); 3];
        assert_eq!(ci8_to_complex(&[[-128, 127], [0, 64]], &mut out), 2);
        assert_eq!(out, [Complex::new(-1.0, 0.9921875), Complex::new(0.0, 0.5), Complex::new(9.0, 9.0)]);
    }

    #[test]
    fn full_scale_is_one() {
        let mut out = [Complex::new(9.0, 9.0)];
        assert_eq!(cu8_to_complex(&[[0, 255]], &mut out), 1);
        assert_eq!(out, [Complex::new(-1.0, 1.0)]);
        let pair = [(-32768i16).to_le_bytes(), 16384i16.to_le_bytes()];
        assert_eq!(ci16_le_to_complex(&[pair, pair], &mut out), 1);
        assert_eq!(out, [Complex::new(-1.0, 0.5)]);
        assert_eq!(cf32_le_to_complex(&[[(-1f32).to_le_bytes(), 0.25f32.to_le_bytes()]], &mut out), 1);
        assert_eq!(out, [Complex::new(-1.0, 0.25)]);
    }
}
