//! Samples as a device has them.

use super::SoundFormat;
use crate::format::{Coding, Lost};
use onbeat_os::sound::SoundCode;

/// Full scale of 24 bits.
const FULL_24: f32 = 8_388_608.0;

impl From<SoundFormat> for SoundCode {
    fn from(format: SoundFormat) -> Self {
        match format {
            SoundFormat::S32 => SoundCode::S32,
            SoundFormat::Float => SoundCode::Float,
            SoundFormat::S24Packed => SoundCode::S24Packed,
            SoundFormat::S24 => SoundCode::S24,
            SoundFormat::S16 => SoundCode::S16,
        }
    }
}

/// Converts numbers of a device to samples, of which 1 is full scale.
pub(super) fn unpack(code: SoundCode, bytes: &[u8], samples: &mut [f32]) {
    match code {
        SoundCode::S32 => Coding::I32.unpack(bytes, samples),
        SoundCode::Float => Coding::F32.unpack(bytes, samples),
        SoundCode::S24Packed => Coding::I24.unpack(bytes, samples),
        SoundCode::S16 => Coding::I16.unpack(bytes, samples),
        SoundCode::S24 => {
            for (sample, bytes) in samples.iter_mut().zip(bytes.as_chunks::<4>().0) {
                // The high byte has no meaning.
                *sample = (i32::from_le_bytes(*bytes) << 8 >> 8) as f32 / FULL_24;
            }
        }
    }
}

/// Converts samples to numbers of a device, rounded to the nearest. Samples beyond full scale are clipped,
/// and those that are not finite become 0; both are counted.
pub(super) fn pack(code: SoundCode, samples: &[f32], bytes: &mut [u8], lost: &mut Lost) {
    match code {
        SoundCode::S32 => Coding::I32.pack(samples, bytes, lost),
        SoundCode::S16 => Coding::I16.pack(samples, bytes, lost),
        SoundCode::Float => {
            for (bytes, x) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(samples) {
                let x = if x.is_finite() { *x } else { 0.0 };
                *bytes = x.clamp(-1.0, 1.0).to_le_bytes();
            }
            lost.not_finite += samples.iter().filter(|x| !x.is_finite()).count() as u64;
            lost.clipped += samples.iter().filter(|x| x.is_finite() && x.abs() > 1.0).count() as u64;
        }
        SoundCode::S24 => {
            for (bytes, x) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(samples) {
                *bytes = whole_24(*x, lost).to_le_bytes();
            }
        }
        SoundCode::S24Packed => {
            for (bytes, x) in bytes.as_chunks_mut::<3>().0.iter_mut().zip(samples) {
                let [a, b, c, _] = whole_24(*x, lost).to_le_bytes();
                *bytes = [a, b, c];
            }
        }
    }
}

fn whole_24(x: f32, lost: &mut Lost) -> i32 {
    if !x.is_finite() {
        lost.not_finite += 1;
        return 0;
    }
    let (whole, limit) = ((x * FULL_24).round(), FULL_24);
    // 1 itself is one step too high, and is not counted as clipped.
    lost.clipped += u64::from(whole.abs() > limit);
    whole.clamp(-limit, limit - 1.0) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples, and what NumPy makes of them: with `v = x * 2**(bits - 1)` in float64,
    /// `np.clip(np.sign(v) * np.floor(np.abs(v) + 0.5), -(2**(bits - 1)), 2**(bits - 1) - 1)`.
    const SAMPLES: [f32; 12] = [
        0.0,
        0.5,
        -0.5,
        1.0,
        -1.0,
        1.5,
        -1.5,
        1.0 / 8_388_608.0,
        -1.0 / 8_388_608.0,
        0.1,
        -0.7,
        1.0 / 33_554_432.0,
    ];
    const NUMBERS_16: [i32; 12] = [0, 16384, -16384, 32767, -32768, 32767, -32768, 0, 0, 3277, -22938, 0];
    const NUMBERS_24: [i32; 12] =
        [0, 4194304, -4194304, 8388607, -8388608, 8388607, -8388608, 1, -1, 838861, -5872026, 0];
    const NUMBERS_32: [i32; 12] = [
        0,
        1073741824,
        -1073741824,
        2147483647,
        -2147483648,
        2147483647,
        -2147483648,
        256,
        -256,
        214748368,
        -1503238528,
        64,
    ];

    fn packed(code: SoundCode) -> Vec<u8> {
        let (mut bytes, mut lost) = (vec![9; SAMPLES.len() * code.bytes()], Lost::default());
        pack(code, &SAMPLES, &mut bytes, &mut lost);
        assert_eq!((lost.clipped, lost.not_finite), (2, 0), "{code}");
        bytes
    }

    #[test]
    fn numbers_are_those_of_numpy() {
        for (code, numbers) in [
            (SoundCode::S16, NUMBERS_16),
            (SoundCode::S24Packed, NUMBERS_24),
            (SoundCode::S24, NUMBERS_24),
            (SoundCode::S32, NUMBERS_32),
        ] {
            let bytes: Vec<u8> =
                numbers.iter().flat_map(|x| x.to_le_bytes()[..code.bytes()].to_vec()).collect();
            assert_eq!(packed(code), bytes, "{code}");
            // And back: NumPy's (number / 2**(bits - 1)).astype(np.float32).
            let full = match code {
                SoundCode::S16 => 32768.0,
                SoundCode::S32 => 2_147_483_648.0,
                _ => 8_388_608.0,
            };
            let mut samples = [9.0; SAMPLES.len()];
            unpack(code, &bytes, &mut samples);
            assert_eq!(samples, numbers.map(|x| (f64::from(x) / full) as f32), "{code}");
        }
    }

    #[test]
    fn floating_point_is_limited() {
        let mut samples = [9.0; SAMPLES.len()];
        unpack(SoundCode::Float, &packed(SoundCode::Float), &mut samples);
        assert_eq!(samples, SAMPLES.map(|x| x.clamp(-1.0, 1.0)));
    }

    #[test]
    fn samples_that_are_not_finite_are_silent() {
        for code in SoundCode::ALL {
            let (mut bytes, mut lost) = (vec![9; 3 * code.bytes()], Lost::default());
            pack(code, &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY], &mut bytes, &mut lost);
            assert_eq!((lost.clipped, lost.not_finite), (0, 3), "{code}");
            assert!(bytes.iter().all(|byte| *byte == 0), "{code}");
        }
    }

    /// The high byte of `S24_LE` has no meaning.
    #[test]
    fn the_unused_byte_is_ignored() {
        let mut samples = [9.0; 2];
        unpack(SoundCode::S24, &[0, 0, 0xc0, 0x7f, 0, 0, 0x40, 0xff], &mut samples);
        assert_eq!(samples, [-0.5, 0.5]);
    }
}
