//! From the bytes of a recording to samples.

use num_complex::Complex;

/// Unpacks signed 8-bit pairs (SigMF `ci8`: in-phase, quadrature) to complex samples, 1/128 per step, so that
/// −128 becomes −1. Converts as many as both slices hold and returns that number.
pub fn ci8_to_complex(pairs: &[[i8; 2]], samples: &mut [Complex<f32>]) -> usize {
    let count = pairs.len().min(samples.len());
    // As flat floats, which the compiler converts four at a time; as pairs it does not.
    let floats: &mut [f32] = bytemuck::cast_slice_mut(&mut samples[..count]);
    for (float, byte) in floats.iter_mut().zip(pairs[..count].as_flattened()) {
        *float = f32::from(*byte) * (1.0 / 128.0);
    }
    count
}

/// Unpacks unsigned 8-bit pairs (`cu8`), where 128 is zero, to complex samples, 1/128 per step. Otherwise as
/// [`ci8_to_complex`].
pub fn cu8_to_complex(pairs: &[[u8; 2]], samples: &mut [Complex<f32>]) -> usize {
    let count = pairs.len().min(samples.len());
    let floats: &mut [f32] = bytemuck::cast_slice_mut(&mut samples[..count]);
    for (float, byte) in floats.iter_mut().zip(pairs[..count].as_flattened()) {
        *float = (f32::from(*byte) - 128.0) * (1.0 / 128.0);
    }
    count
}

/// Unpacks signed 16-bit pairs, low byte first (`ci16_le`), to complex samples, 1/32768 per step. Otherwise as
/// [`ci8_to_complex`].
pub fn ci16_le_to_complex(pairs: &[[[u8; 2]; 2]], samples: &mut [Complex<f32>]) -> usize {
    let count = pairs.len().min(samples.len());
    let floats: &mut [f32] = bytemuck::cast_slice_mut(&mut samples[..count]);
    for (float, bytes) in floats.iter_mut().zip(pairs[..count].as_flattened()) {
        *float = f32::from(i16::from_le_bytes(*bytes)) * (1.0 / 32768.0);
    }
    count
}

/// Copies pairs of 32-bit floats, low byte first (`cf32_le`), to complex samples. Otherwise as [`ci8_to_complex`].
pub fn cf32_le_to_complex(pairs: &[[[u8; 4]; 2]], samples: &mut [Complex<f32>]) -> usize {
    let count = pairs.len().min(samples.len());
    let floats: &mut [f32] = bytemuck::cast_slice_mut(&mut samples[..count]);
    for (float, bytes) in floats.iter_mut().zip(pairs[..count].as_flattened()) {
        *float = f32::from_le_bytes(*bytes);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_scale_is_one() {
        let mut out = [Complex::new(9.0, 9.0); 3];
        assert_eq!(ci8_to_complex(&[[-128, 127], [0, 64]], &mut out), 2);
        assert_eq!(out, [Complex::new(-1.0, 0.9921875), Complex::new(0.0, 0.5), Complex::new(9.0, 9.0)]);
    }

    #[test]
    fn all_types_have_the_same_scale() {
        let mut out = [Complex::new(9.0, 9.0)];
        assert_eq!(cu8_to_complex(&[[0, 192]], &mut out), 1);
        assert_eq!(out, [Complex::new(-1.0, 0.5)]);
        let pair = [(-32768i16).to_le_bytes(), 16384i16.to_le_bytes()];
        assert_eq!(ci16_le_to_complex(&[pair, pair], &mut out), 1);
        assert_eq!(out, [Complex::new(-1.0, 0.5)]);
        assert_eq!(cf32_le_to_complex(&[[(-1f32).to_le_bytes(), 0.25f32.to_le_bytes()]], &mut out), 1);
        assert_eq!(out, [Complex::new(-1.0, 0.25)]);
    }
}
