//! Conversion between numbers in files and samples in memory.

use crate::vectors::Vectors;
use num_complex::Complex;
use onbeat_runtime::Sample;
use pulp::{Simd, WithSimd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A sample that NumPy arrays can hold: a byte, which is stored as it is, or a [`FileSample`].
pub trait ArraySample: Sample {
    /// Numbers per sample: 2 for a complex one.
    const PARTS: usize;
    /// Whether a sample is a byte.
    const IS_BYTE: bool = false;
}

/// A sample that files of every [`SampleFormat`] can hold: one number, or the two of a complex sample.
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

/// Sample format of a headerless file; the names are those of SigMF. A complex sample is two numbers,
/// in-phase and quadrature.
///
/// | format | type of a number | zero is | 1.0 is |
/// |---|---|---|---|
/// | `cu8`, `ru8` | 8 bits, unsigned | 127.5 | 255 |
/// | `ci8`, `ri8` | 8 bits, signed | 0 | 128 |
/// | `ci16_le`, `ri16_le` | 16 bits, signed, low byte first | 0 | 32768 |
/// | `cf32_le`, `rf32_le` | 32-bit floating point, low byte first | 0 | 1 |
///
/// Samples are rounded to the nearest number. 1.0 becomes the highest number. Samples beyond that by more
/// than one step, or below the lowest number, are clipped and counted. Samples that are not finite are
/// counted; integer formats store them as 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SampleFormat {
    /// Complex, unsigned 8 bits: the output of RTL-SDR sticks.
    Cu8,
    /// Complex, 8 bits.
    Ci8,
    /// Complex, 16 bits.
    Ci16Le,
    /// Complex, floating point.
    Cf32Le,
    /// Real, unsigned 8 bits.
    Ru8,
    /// Real, 8 bits.
    Ri8,
    /// Real, 16 bits.
    Ri16Le,
    /// Real, floating point.
    Rf32Le,
}

impl SampleFormat {
    /// All formats.
    pub const ALL: [SampleFormat; 8] = [
        SampleFormat::Cu8,
        SampleFormat::Ci8,
        SampleFormat::Ci16Le,
        SampleFormat::Cf32Le,
        SampleFormat::Ru8,
        SampleFormat::Ri8,
        SampleFormat::Ri16Le,
        SampleFormat::Rf32Le,
    ];

    /// The name in files and parameters.
    ///
    /// ```
    /// assert_eq!(onbeat_operators::SampleFormat::Ci16Le.name(), "ci16_le");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            SampleFormat::Cu8 => "cu8",
            SampleFormat::Ci8 => "ci8",
            SampleFormat::Ci16Le => "ci16_le",
            SampleFormat::Cf32Le => "cf32_le",
            SampleFormat::Ru8 => "ru8",
            SampleFormat::Ri8 => "ri8",
            SampleFormat::Ri16Le => "ri16_le",
            SampleFormat::Rf32Le => "rf32_le",
        }
    }

    /// Returns the format with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Numbers per sample: 2 for a complex one.
    pub fn parts(self) -> usize {
        if self.name().starts_with('c') { 2 } else { 1 }
    }

    /// The format of the other sample type with the same numbers.
    pub(crate) fn other_kind(self) -> Self {
        let at = Self::ALL.iter().position(|format| *format == self).unwrap_or(0);
        Self::ALL[(at + 4) % 8]
    }

    pub(crate) fn coding(self) -> Coding {
        match self {
            SampleFormat::Cu8 | SampleFormat::Ru8 => Coding::CU8,
            SampleFormat::Ci8 | SampleFormat::Ri8 => Coding::I8,
            SampleFormat::Ci16Le | SampleFormat::Ri16Le => Coding::I16,
            SampleFormat::Cf32Le | SampleFormat::Rf32Le => Coding::F32,
        }
    }
}

/// Storage of a number, low byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    U8,
    I8,
    U16,
    I16,
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
            Number::U8 | Number::I8 => 1,
            Number::U16 | Number::I16 => 2,
            Number::I24 => 3,
            Number::U32 | Number::I32 | Number::F32 => 4,
            Number::U64 | Number::I64 | Number::F64 => 8,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Number::F32 | Number::F64)
    }
}

/// Meaning of the numbers in a file: sample = (number − zero) / full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Coding {
    pub number: Number,
    pub zero: f32,
    pub full: f32,
}

/// Samples that were not written as they came.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lost {
    pub clipped: u64,
    pub not_finite: u64,
}

impl Coding {
    pub const CU8: Coding = Coding { number: Number::U8, zero: 127.5, full: 127.5 };
    pub const I8: Coding = Coding { number: Number::I8, zero: 0.0, full: 128.0 };
    pub const I16: Coding = Coding { number: Number::I16, zero: 0.0, full: 32768.0 };
    pub const F32: Coding = Coding::plain(Number::F32);

    /// Numbers are used unscaled.
    pub const fn plain(number: Number) -> Coding {
        Coding { number, zero: 0.0, full: 1.0 }
    }

    /// Converts numbers to fill `samples`; `bytes` must have the matching length.
    pub fn unpack(self, bytes: &[u8], samples: &mut [f32]) {
        debug_assert_eq!(bytes.len(), samples.len() * self.number.bytes());
        Vectors::new().run(Unpack { coding: self, bytes, samples });
    }

    #[inline(always)]
    fn unpack_all(self, bytes: &[u8], samples: &mut [f32]) {
        let (zero, scale) = (self.zero, 1.0 / self.full);
        macro_rules! each {
            ($bytes:literal, $value:expr) => {
                for (sample, bytes) in samples.iter_mut().zip(bytes.as_chunks::<$bytes>().0) {
                    let value: f32 = $value(*bytes);
                    *sample = (value - zero) * scale;
                }
            };
        }
        match self.number {
            Number::U8 => each!(1, |b: [u8; 1]| f32::from(b[0])),
            Number::I8 => each!(1, |b: [u8; 1]| f32::from(b[0] as i8)),
            Number::U16 => each!(2, |b| f32::from(u16::from_le_bytes(b))),
            Number::I16 => each!(2, |b| f32::from(i16::from_le_bytes(b))),
            Number::I24 => each!(3, |[a, b, c]: [u8; 3]| (i32::from_le_bytes([0, a, b, c]) >> 8) as f32),
            Number::U32 => each!(4, |b| u32::from_le_bytes(b) as f32),
            Number::I32 => each!(4, |b| i32::from_le_bytes(b) as f32),
            Number::U64 => each!(8, |b| u64::from_le_bytes(b) as f32),
            Number::I64 => each!(8, |b| i64::from_le_bytes(b) as f32),
            Number::F32 => {
                for (sample, bytes) in samples.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    *sample = f32::from_le_bytes(*bytes);
                }
            }
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

    /// Converts samples to the numbers of a [`SampleFormat`]; `bytes` must have the matching length.
    pub fn pack(self, samples: &[f32], bytes: &mut [u8], lost: &mut Lost) {
        debug_assert_eq!(bytes.len(), samples.len() * self.number.bytes());
        Vectors::new().run(Pack { coding: self, samples, bytes, lost });
    }

    #[inline(always)]
    fn pack_all(self, samples: &[f32], bytes: &mut [u8], lost: &mut Lost) {
        match self.number {
            Number::U8 => {
                for (byte, x) in bytes.iter_mut().zip(samples) {
                    *byte = self.whole(*x, 0.0, 255.0, lost) as u8;
                }
            }
            Number::I8 => {
                for (byte, x) in bytes.iter_mut().zip(samples) {
                    *byte = self.whole(*x, -128.0, 127.0, lost) as i8 as u8;
                }
            }
            Number::I16 => {
                for (pair, x) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(samples) {
                    *pair = (self.whole(*x, -32768.0, 32767.0, lost) as i16).to_le_bytes();
                }
            }
            _ => {
                debug_assert_eq!(self.number, Number::F32);
                lost.not_finite += self.not_finite(samples);
                for (four, x) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(samples) {
                    *four = x.to_le_bytes();
                }
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
        self.coding.unpack_all(self.bytes, self.samples);
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
        self.coding.pack_all(self.samples, self.bytes, &mut lost);
        *self.lost = lost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads and writes all numbers of 8 and 16 bits.
    #[test]
    fn every_whole_number_comes_back() {
        for coding in [Coding::CU8, Coding::I8, Coding::I16] {
            let bytes: Vec<u8> = match coding.number {
                Number::I16 => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
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
            (
                Coding { number: Number::I24, zero: 0.0, full: 8_388_608.0 },
                &[0, 0, 0x80, 0, 0, 0x40],
                [-1.0, 0.5],
            ),
        ] {
            let mut samples = [9.0; 2];
            coding.unpack(bytes, &mut samples);
            assert_eq!(samples, expected, "{coding:?}");
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

    #[test]
    fn formats_have_names() {
        for format in SampleFormat::ALL {
            assert_eq!(SampleFormat::named(format.name()), Some(format));
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
            assert_eq!(format.other_kind().name()[1..], format.name()[1..]);
            assert_eq!(format.other_kind().parts() + format.parts(), 3);
        }
    }
}
