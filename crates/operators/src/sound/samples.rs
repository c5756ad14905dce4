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

/// Converts samples to numbers of a device, rounded to the nearest. Samples beyond full scale are clipped, and
/// those that are not finite become 0; both are counted.
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
