//! Conversion between numbers in files and samples in memory.

use crate::vectors::Vectors;
use num_complex::Complex;
use onbeat_runtime::Sample;
use pulp::{Simd, WithSimd};

/// A sample that NumPy arrays can hold: a byte, which is stored as it is, or a [`FileSample`].
pub trait ArraySample: Sample {
    /// Numbers per sample: 2 for a complex one.
    const PARTS: usize;
    /// Whether a sample is a byte.
    const IS_BYTE: bool = false;
}

/// A sample that files of every [`SampleFormat`](super::SampleFormat) can hold: one number, or the two of a
/// complex sample.
pub trait FileSample: ArraySample {}

impl ArraySample for u8 {
    const PARTS: usize = 1;
    const IS_BYTE: bool = true;
}

impl ArraySample for f32 {
    const PARTS: usize = 1;
}

impl ArraySample for Complex<f32> {
    const PARTS: usize = 2;
}

impl FileSample for f32 {}
impl FileSample for Complex<f32> {}

/// Type of a number in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    U8,
    I8,
    /// A truth value: any byte but 0 is 1.
    Bool,
    /// The two codes of G.711, in steps of 16-bit numbers.
    ALaw,
    MuLaw,
    U16,
    I16,
    F16,
    I24,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

impl Number {
    pub const fn bytes(self) -> usize {
        match self {
            Number::U8 | Number::I8 | Number::Bool | Number::ALaw | Number::MuLaw => 1,
            Number::U16 | Number::I16 | Number::F16 => 2,
            Number::I24 => 3,
            Number::U32 | Number::I32 | Number::F32 => 4,
            Number::U64 | Number::I64 | Number::F64 => 8,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Number::F16 | Number::F32 | Number::F64)
    }
}

/// Meaning of the numbers in a file: sample = (number − zero) / full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Coding {
    pub number: Number,
    zero: f32,
    full: f32,
    /// Whether the high byte of a number comes first.
    is_high_first: bool,
}

/// Samples that were not written as they came.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lost {
    pub clipped: u64,
    pub not_finite: u64,
}

impl Coding {
    pub const CU8: Coding = Coding::new(Number::U8, 127.5, 127.5);
    pub const I8: Coding = Coding::new(Number::I8, 0.0, 128.0);
    pub const U16: Coding = Coding::new(Number::U16, 32768.0, 32768.0);
    pub const I16: Coding = Coding::new(Number::I16, 0.0, 32768.0);
    pub const I24: Coding = Coding::new(Number::I24, 0.0, 8_388_608.0);
    pub const U32: Coding = Coding::new(Number::U32, 2_147_483_648.0, 2_147_483_648.0);
    pub const I32: Coding = Coding::new(Number::I32, 0.0, 2_147_483_648.0);
    pub const F32: Coding = Coding::plain(Number::F32);

    /// Low byte first.
    pub const fn new(number: Number, zero: f32, full: f32) -> Coding {
        Coding { number, zero, full, is_high_first: false }
    }

    /// Numbers are used unscaled.
    pub const fn plain(number: Number) -> Coding {
        Coding::new(number, 0.0, 1.0)
    }

    /// The same with the high byte first.
    pub const fn high_first(self) -> Coding {
        Coding { is_high_first: self.number.bytes() > 1, ..self }
    }

    /// Converts numbers to fill `samples`; `bytes` must have the matching length.
    pub fn unpack(self, bytes: &[u8], samples: &mut [f32]) {
        debug_assert_eq!(bytes.len(), samples.len() * self.number.bytes());
        Vectors::new().run(Unpack { coding: self, bytes, samples });
    }

    #[inline(always)]
    fn unpack_all<const HIGH_FIRST: bool>(self, bytes: &[u8], samples: &mut [f32]) {
        let (zero, scale) = (self.zero, 1.0 / self.full);
        macro_rules! each {
            ($bytes:literal, $value:expr) => {
                for (sample, bytes) in samples.iter_mut().zip(bytes.as_chunks::<$bytes>().0) {
                    let mut bytes = *bytes;
                    if HIGH_FIRST {
                        bytes.reverse();
                    }
                    *sample = $value(bytes);
                }
            };
        }
        match self.number {
            Number::U8 => each!(1, |b: [u8; 1]| (f32::from(b[0]) - zero) * scale),
            Number::I8 => each!(1, |b: [u8; 1]| f32::from(b[0] as i8) * scale),
            Number::Bool => each!(1, |b: [u8; 1]| f32::from(b[0] != 0)),
            Number::ALaw => each!(1, |b: [u8; 1]| f32::from(of_a_law(b[0])) * scale),
            Number::MuLaw => each!(1, |b: [u8; 1]| f32::from(of_mu_law(b[0])) * scale),
            Number::U16 => each!(2, |b| (f32::from(u16::from_le_bytes(b)) - zero) * scale),
            Number::I16 => each!(2, |b| f32::from(i16::from_le_bytes(b)) * scale),
            Number::F16 => each!(2, |b| of_half(u16::from_le_bytes(b))),
            Number::I24 => {
                each!(3, |[a, b, c]: [u8; 3]| (i32::from_le_bytes([0, a, b, c]) >> 8) as f32 * scale)
            }
            // Rounded once: the difference is exact in 64 bits.
            Number::U32 => each!(4, |b| (f64::from(u32::from_le_bytes(b)) - f64::from(zero)) as f32 * scale),
            Number::I32 => each!(4, |b| i32::from_le_bytes(b) as f32 * scale),
            Number::U64 => each!(8, |b| u64::from_le_bytes(b) as f32),
            Number::I64 => each!(8, |b| i64::from_le_bytes(b) as f32),
            Number::F32 => each!(4, f32::from_le_bytes),
            Number::F64 => each!(8, |b| f64::from_le_bytes(b) as f32),
        }
    }

    /// Number of these samples that are not finite; integers always are.
    pub fn not_finite(self, samples: &[f32]) -> u64 {
        if !self.number.is_float() {
            return 0;
        }
        Vectors::new().run(NotFinite(samples))
    }

    /// Converts samples to the numbers of a sample format; `bytes` must have the matching length.
    pub fn pack(self, samples: &[f32], bytes: &mut [u8], lost: &mut Lost) {
        debug_assert_eq!(bytes.len(), samples.len() * self.number.bytes());
        Vectors::new().run(Pack { coding: self, samples, bytes, lost });
    }

    #[inline(always)]
    fn pack_all<const HIGH_FIRST: bool>(self, samples: &[f32], bytes: &mut [u8], lost: &mut Lost) {
        macro_rules! each {
            ($bytes:literal, $number:expr) => {
                for (bytes, x) in bytes.as_chunks_mut::<$bytes>().0.iter_mut().zip(samples) {
                    *bytes = $number(*x).to_le_bytes();
                    if HIGH_FIRST {
                        bytes.reverse();
                    }
                }
            };
        }
        if self.number.is_float() {
            lost.not_finite += self.not_finite(samples);
        }
        match self.number {
            Number::U8 => each!(1, |x| self.whole(x, 0.0, 255.0, lost) as u8),
            Number::I8 => each!(1, |x| self.whole(x, -128.0, 127.0, lost) as i8),
            Number::U16 => each!(2, |x| self.whole(x, 0.0, 65535.0, lost) as u16),
            Number::I16 => each!(2, |x| self.whole(x, -32768.0, 32767.0, lost) as i16),
            Number::U32 => each!(4, |x| self.wide(x, 0.0, 4_294_967_295.0, lost) as u32),
            Number::I32 => each!(4, |x| self.wide(x, -2_147_483_648.0, 2_147_483_647.0, lost) as i32),
            Number::F32 => each!(4, |x: f32| x),
            Number::F64 => each!(8, |x: f32| f64::from(x)),
            Number::Bool
            | Number::ALaw
            | Number::MuLaw
            | Number::F16
            | Number::I24
            | Number::U64
            | Number::I64 => {
                debug_assert!(false, "no sample format has such numbers");
            }
        }
    }

    #[inline(always)]
    fn whole(self, x: f32, low: f32, high: f32, lost: &mut Lost) -> f32 {
        let is_finite = x.is_finite();
        let y = (if is_finite { x * self.full } else { 0.0 } + self.zero).round();
        // 1.0 is one step above the highest number of a signed format: too little to count as clipped.
        lost.clipped += u64::from(y < low || y > high + 1.0);
        lost.not_finite += u64::from(!is_finite);
        y.clamp(low, high)
    }

    /// [`Coding::whole`] for numbers that 32-bit floating point does not have.
    #[inline(always)]
    fn wide(self, x: f32, low: f64, high: f64, lost: &mut Lost) -> f64 {
        let is_finite = x.is_finite();
        let y = if is_finite { f64::from(x) * f64::from(self.full) } else { 0.0 } + f64::from(self.zero);
        let y = y.round();
        lost.clipped += u64::from(y < low || y > high + 1.0);
        lost.not_finite += u64::from(!is_finite);
        y.clamp(low, high)
    }
}

/// The number of a 16-bit floating point code of IEEE 754.
#[inline(always)]
fn of_half(bits: u16) -> f32 {
    let (sign, rest) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff) << 13);
    // 2^112: the difference of the two biases of the exponent. Right for numbers below the normal ones too.
    let scaled = (f32::from_bits(rest) * f32::from_bits(0x7780_0000)).to_bits();
    let is_number = bits & 0x7c00 != 0x7c00;
    f32::from_bits(sign | if is_number { scaled } else { rest | 0x7f80_0000 })
}

/// The number of an A-law code of G.711: a sign, the number of a segment, the place in it.
fn of_a_law(code: u8) -> i16 {
    let code = code ^ 0x55;
    let (segment, place) = (i16::from(code >> 4 & 7), i16::from(code & 15));
    let magnitude = match segment {
        0 => (place << 4) + 8,
        _ => ((place << 4) + 0x108) << (segment - 1),
    };
    if code & 0x80 == 0 { -magnitude } else { magnitude }
}

/// The number of a µ-law code of G.711.
fn of_mu_law(code: u8) -> i16 {
    let code = !code;
    let (segment, place) = (i16::from(code >> 4 & 7), i16::from(code & 15));
    let magnitude = (((place << 3) + 0x84) << segment) - 0x84;
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

/// Counts samples that are not finite, with the processor's vectors.
struct NotFinite<'s>(&'s [f32]);

impl WithSimd for NotFinite<'_> {
    type Output = u64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> u64 {
        // Few enough at a time for a count of 32 bits, of which a vector holds twice as many.
        let pieces = self.0.chunks(1 << 20);
        pieces.map(|piece| u64::from(piece.iter().map(|x| u32::from(!x.is_finite())).sum::<u32>())).sum()
    }
}

/// [`Coding::unpack`] with the processor's vectors.
struct Unpack<'s> {
    coding: Coding,
    bytes: &'s [u8],
    samples: &'s mut [f32],
}

impl WithSimd for Unpack<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        match self.coding.is_high_first {
            false => self.coding.unpack_all::<false>(self.bytes, self.samples),
            true => self.coding.unpack_all::<true>(self.bytes, self.samples),
        }
    }
}

/// [`Coding::pack`] with the processor's vectors.
struct Pack<'s> {
    coding: Coding,
    samples: &'s [f32],
    bytes: &'s mut [u8],
    lost: &'s mut Lost,
}

impl WithSimd for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let mut lost = *self.lost;
        match self.coding.is_high_first {
            false => self.coding.pack_all::<false>(self.samples, self.bytes, &mut lost),
            true => self.coding.pack_all::<true>(self.samples, self.bytes, &mut lost),
        }
        *self.lost = lost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads and writes all numbers of 8 and 16 bits.
    #[test]
    fn every_whole_number_comes_back() {
        for coding in [Coding::CU8, Coding::I8, Coding::U16, Coding::I16, Coding::U16.high_first()] {
            let bytes: Vec<u8> = match coding.number {
                Number::I16 | Number::U16 => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
                _ => (0..=255).collect(),
            };
            let mut samples = vec![9.0; bytes.len() / coding.number.bytes()];
            coding.unpack(&bytes, &mut samples);
            Vectors::each(|vectors| {
                let (mut again, mut packed) = (vec![9.0; samples.len()], vec![0; bytes.len()]);
                coding.unpack(&bytes, &mut again);
                coding.pack(&samples, &mut packed, &mut Lost::default());
                assert!(again == samples && packed == bytes, "{vectors} {coding:?}");
            });
            assert!(samples.iter().all(|x| x.abs() <= 1.0), "{coding:?}");
            let (mut again, mut lost) = (vec![0; bytes.len()], Lost::default());
            coding.pack(&samples, &mut again, &mut lost);
            assert_eq!(again, bytes, "{coding:?}");
            assert_eq!((lost.clipped, lost.not_finite), (0, 0));
        }
    }

    #[test]
    fn full_scale_is_one() {
        for (coding, bytes, expected) in [
            (Coding::CU8, &[0, 255][..], [-1.0, 1.0]),
            (Coding::I8, &[0x80, 0x40], [-1.0, 0.5]),
            (Coding::I16, &[0, 0x80, 0, 0x40], [-1.0, 0.5]),
            (Coding::I16.high_first(), &[0x80, 0, 0x40, 0], [-1.0, 0.5]),
            (Coding::U16, &[0, 0, 0, 0xc0], [-1.0, 0.5]),
            (Coding::I24, &[0, 0, 0x80, 0, 0, 0x40], [-1.0, 0.5]),
            (Coding::U32.high_first(), &[0, 0, 0, 0, 0xc0, 0, 0, 0], [-1.0, 0.5]),
            (Coding::I32, &[0, 0, 0, 0x80, 0, 0, 0, 0x40], [-1.0, 0.5]),
        ] {
            let mut samples = [9.0; 2];
            coding.unpack(bytes, &mut samples);
            assert_eq!(samples, expected, "{coding:?}");
        }
    }

    /// All numbers of 16-bit floating point, by their definition.
    #[test]
    fn half_floats_are_read() {
        for bits in 0..=u16::MAX {
            let (sign, power, rest) =
                (bits >> 15, i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
            let magnitude = match power {
                0 => rest * 2f64.powi(-14),
                31 if rest == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1.0 + rest) * 2f64.powi(power - 15),
            };
            let expected = if sign == 1 { -magnitude } else { magnitude } as f32;
            let mut found = [9.0];
            Coding::plain(Number::F16).unpack(&bits.to_le_bytes(), &mut found);
            let is_same = found[0].to_bits() == expected.to_bits() || found[0].is_nan() && expected.is_nan();
            assert!(is_same, "{bits:#x}: {} for {expected}", found[0]);
        }
    }

    #[test]
    fn what_is_beyond_is_clipped_and_counted() {
        let samples = [1.0, -1.0, 1.1, -1.1, f32::NAN, f32::INFINITY];
        for (coding, expected) in
            [(Coding::CU8, [255, 0, 255, 0, 128, 128]), (Coding::I8, [127, 128, 127, 128, 0, 0])]
        {
            let (mut bytes, mut lost) = ([9; 6], Lost::default());
            coding.pack(&samples, &mut bytes, &mut lost);
            assert_eq!(bytes, expected, "{coding:?}");
            assert_eq!((lost.clipped, lost.not_finite), (2, 2));
        }
        let (mut bytes, mut lost) = ([0; 24], Lost::default());
        Coding::F32.pack(&samples, &mut bytes, &mut lost);
        let mut again = [0.0; 6];
        Coding::F32.unpack(&bytes, &mut again);
        assert!(again.map(f32::to_bits) == samples.map(f32::to_bits), "{again:?}");
        assert_eq!((lost.clipped, lost.not_finite), (0, 2));
    }
}
