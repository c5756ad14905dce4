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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_scale_is_one() {
        let mut out = [Complex::new(9.0, 9.0); 3];
        assert_eq!(ci8_to_complex(&[[-128, 127], [0, 64]], &mut out), 2);
        assert_eq!(out, [Complex::new(-1.0, 0.9921875), Complex::new(0.0, 0.5), Complex::new(9.0, 9.0)]);
    }
}
