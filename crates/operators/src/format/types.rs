//! The one table of sample types, for all sources and sinks of files and streams.

use super::coding::{Coding, Number};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! sample_formats {
    ($($variant:ident $name:literal $text:literal $coding:expr,)*) => {
        /// Sample format of files and streams without a header of their own; the names are those of SigMF. A
        /// complex sample (`c...`) is two numbers, in-phase and quadrature; a real one (`r...`) is one.
        ///
        /// | format | type of a number | zero is | 1.0 is |
        /// |---|---|---|---|
        /// | `cu8`, `ru8` | 8 bits, unsigned | 127.5 | 255 |
        /// | `cu16_le`, `ru16_le` | 16 bits, unsigned | 32768 | 65536 |
        /// | `cu32_le`, `ru32_le` | 32 bits, unsigned | 2^31 | 2^32 |
        /// | `ci8`, `ri8` | 8 bits, signed | 0 | 128 |
        /// | `ci16_le`, `ri16_le` | 16 bits, signed | 0 | 32768 |
        /// | `ci32_le`, `ri32_le` | 32 bits, signed | 0 | 2^31 |
        /// | `cf32_le`, `rf32_le`, `cf64_le`, `rf64_le` | floating point of 32 or 64 bits | 0 | 1 |
        ///
        /// With `_le` the low byte of a number comes first, with `_be` the high byte.
        ///
        /// Samples are rounded to the nearest number. 1.0 becomes the highest number. Samples beyond that by
        /// more than one step, or below the lowest number, are clipped and counted. Samples that are not
        /// finite are counted; integer formats store them as 0.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum SampleFormat {
            $(#[doc = $text] $variant,)*
        }

        impl SampleFormat {
            /// All formats: the complex ones, then the real ones, in the same order.
            pub const ALL: [SampleFormat; 28] = [$(SampleFormat::$variant),*];

            /// The name in files and parameters.
            ///
            /// ```
            /// assert_eq!(onbeat_operators::SampleFormat::Ci16Le.name(), "ci16_le");
            /// ```
            pub fn name(self) -> &'static str {
                match self {
                    $(SampleFormat::$variant => $name,)*
                }
            }

            pub(crate) fn coding(self) -> Coding {
                match self {
                    $(SampleFormat::$variant => $coding,)*
                }
            }
        }
    };
}

sample_formats! {
    Cu8 "cu8" "Complex, unsigned 8 bits: the output of RTL-SDR sticks." Coding::CU8,
    Cu16Le "cu16_le" "Complex, unsigned 16 bits." Coding::U16,
    Cu16Be "cu16_be" "Complex, unsigned 16 bits, high byte first." Coding::U16.high_first(),
    Cu32Le "cu32_le" "Complex, unsigned 32 bits." Coding::U32,
    Cu32Be "cu32_be" "Complex, unsigned 32 bits, high byte first." Coding::U32.high_first(),
    Ci8 "ci8" "Complex, 8 bits." Coding::I8,
    Ci16Le "ci16_le" "Complex, 16 bits." Coding::I16,
    Ci16Be "ci16_be" "Complex, 16 bits, high byte first." Coding::I16.high_first(),
    Ci32Le "ci32_le" "Complex, 32 bits." Coding::I32,
    Ci32Be "ci32_be" "Complex, 32 bits, high byte first." Coding::I32.high_first(),
    Cf32Le "cf32_le" "Complex, floating point." Coding::F32,
    Cf32Be "cf32_be" "Complex, floating point, high byte first." Coding::F32.high_first(),
    Cf64Le "cf64_le" "Complex, 64-bit floating point." Coding::plain(Number::F64),
    Cf64Be "cf64_be" "Complex, 64-bit floating point, high byte first." Coding::plain(Number::F64).high_first(),
    Ru8 "ru8" "Real, unsigned 8 bits." Coding::CU8,
    Ru16Le "ru16_le" "Real, unsigned 16 bits." Coding::U16,
    Ru16Be "ru16_be" "Real, unsigned 16 bits, high byte first." Coding::U16.high_first(),
    Ru32Le "ru32_le" "Real, unsigned 32 bits." Coding::U32,
    Ru32Be "ru32_be" "Real, unsigned 32 bits, high byte first." Coding::U32.high_first(),
    Ri8 "ri8" "Real, 8 bits." Coding::I8,
    Ri16Le "ri16_le" "Real, 16 bits." Coding::I16,
    Ri16Be "ri16_be" "Real, 16 bits, high byte first." Coding::I16.high_first(),
    Ri32Le "ri32_le" "Real, 32 bits." Coding::I32,
    Ri32Be "ri32_be" "Real, 32 bits, high byte first." Coding::I32.high_first(),
    Rf32Le "rf32_le" "Real, floating point." Coding::F32,
    Rf32Be "rf32_be" "Real, floating point, high byte first." Coding::F32.high_first(),
    Rf64Le "rf64_le" "Real, 64-bit floating point." Coding::plain(Number::F64),
    Rf64Be "rf64_be" "Real, 64-bit floating point, high byte first." Coding::plain(Number::F64).high_first(),
}

impl SampleFormat {
    /// Returns the format with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Numbers per sample: 2 for a complex one.
    pub fn parts(self) -> usize {
        if (self as usize) < Self::ALL.len() / 2 { 2 } else { 1 }
    }

    /// The format of the other sample type with the same numbers.
    pub(crate) fn other_kind(self) -> Self {
        Self::ALL[(self as usize + Self::ALL.len() / 2) % Self::ALL.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
