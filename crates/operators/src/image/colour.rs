//! Conversions between colour spaces.

use super::{FrameFilter, frame};
use crate::vectors::Vectors;
use onbeat_runtime::Error;
use pulp::{Simd, WithSimd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bits of a coefficient after the binary point. Sums of four products fit 32 bits.
const FRACTION: u32 = 20;
const HALF: i32 = 1 << (FRACTION - 1);

/// Weights of red, green and blue in the luma Y of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ColourMatrix {
    /// 0.299, 0.587, 0.114: ITU-R BT.601, for standard definition, JPEG and most software.
    #[default]
    Bt601,
    /// 0.2126, 0.7152, 0.0722: ITU-R BT.709, for high definition.
    Bt709,
}

/// Bytes that stand for black and white in YCbCr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ColourRange {
    /// Y from 16 to 235, Cb and Cr from 16 to 240, as in video.
    Limited,
    /// All from 0 to 255, as in JPEG.
    Full,
}

/// Meaning of the samples of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ColourSpace {
    /// One sample per pixel, 0 is black and 255 white.
    Grey,
    /// Red, green, blue.
    Rgb,
    /// Luma, blue difference, red difference; at 128 there is none.
    Ycbcr,
}

/// Arithmetic of one matrix and range, in integers: nothing is rounded but the result, to the nearest
/// integer, halves up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Colours {
    /// Luma of red, green and blue, and its byte for black.
    to_luma: [i32; 3],
    black: i32,
    /// Cb and Cr of red, green and blue.
    to_blue: [i32; 3],
    to_red: [i32; 3],
    /// Red, green and blue of luma (one coefficient for all), Cb and Cr.
    luma: i32,
    of_blue: [i32; 3],
    of_red: [i32; 3],
}

impl Colours {
    pub fn new(matrix: ColourMatrix, range: ColourRange) -> Self {
        let (red, blue) = match matrix {
            ColourMatrix::Bt601 => (0.299, 0.114),
            ColourMatrix::Bt709 => (0.2126, 0.0722),
        };
        let (black, luma, chroma) = match range {
            ColourRange::Limited => (16, 219.0 / 255.0, 224.0 / 255.0),
            ColourRange::Full => (0, 1.0, 1.0),
        };
        let fixed = |x: f64| (x * f64::from(1 << FRACTION)).round() as i32;
        let green = 1.0 - red - blue;
        // Half of the difference to luma, in units of the largest one.
        let (blues, reds) = (0.5 * chroma / (1.0 - blue), 0.5 * chroma / (1.0 - red));
        let (of_blue, of_red) = (2.0 * (1.0 - blue) / chroma, 2.0 * (1.0 - red) / chroma);
        Colours {
            to_luma: [red, green, blue].map(|weight: f64| fixed(weight * luma)),
            black,
            to_blue: [-red * blues, -green * blues, (1.0 - blue) * blues].map(fixed),
            to_red: [(1.0 - red) * reds, -green * reds, -blue * reds].map(fixed),
            luma: fixed(1.0 / luma),
            of_blue: [0.0, -of_blue * blue / green, of_blue].map(fixed),
            of_red: [of_red, -of_red * red / green, 0.0].map(fixed),
        }
    }

    /// Luma of a colour.
    #[inline(always)]
    pub fn luma(&self, rgb: [u8; 3]) -> u8 {
        self.weighted(self.to_luma, rgb, self.black)
    }

    /// Luma, Cb and Cr of a colour.
    #[inline(always)]
    pub fn ycbcr(&self, rgb: [u8; 3]) -> [u8; 3] {
        [self.luma(rgb), self.weighted(self.to_blue, rgb, 128), self.weighted(self.to_red, rgb, 128)]
    }

    #[inline(always)]
    fn weighted(&self, [red, green, blue]: [i32; 3], [r, g, b]: [u8; 3], offset: i32) -> u8 {
        let sum = red * i32::from(r) + green * i32::from(g) + blue * i32::from(b);
        (((sum + HALF) >> FRACTION) + offset).clamp(0, 255) as u8
    }

    /// Red, green and blue of luma, Cb and Cr.
    #[inline(always)]
    pub fn rgb(&self, [y, cb, cr]: [u8; 3]) -> [u8; 3] {
        let (y, cb, cr) = (i32::from(y) - self.black, i32::from(cb) - 128, i32::from(cr) - 128);
        std::array::from_fn(|at| {
            let sum = self.luma * y + self.of_blue[at] * cb + self.of_red[at] * cr;
            ((sum + HALF) >> FRACTION).clamp(0, 255) as u8
        })
    }
}

/// Converts frames between grey, RGB and YCbCr.
///
/// Grey is the luma of RGB in the full range: `0.299 R + 0.587 G + 0.114 B` with the weights of BT.601.
/// Grey frames become RGB with three equal channels, and YCbCr without colour. Results are rounded to the
/// nearest integer, halves up, and limited to 0 to 255.
#[derive(Debug, Clone)]
pub struct Recolour {
    vectors: Vectors,
    from: ColourSpace,
    to: ColourSpace,
    colours: Colours,
    /// The same in the full range, for grey.
    full: Colours,
    /// The colour space of the frames that the filter was prepared for.
    found: ColourSpace,
}

impl Recolour {
    /// Creates the filter. `from` is what frames with three channels are; frames with one are grey. The range
    /// is that of YCbCr.
    ///
    /// # Errors
    /// When `from` is grey.
    pub fn new(
        from: ColourSpace,
        to: ColourSpace,
        matrix: ColourMatrix,
        range: ColourRange,
    ) -> Result<Self, Error> {
        if from == ColourSpace::Grey {
            return Err(Error::new(
                "`from` is \"grey\": it says what frames with three channels are, \"rgb\" or \"ycbcr\"; \
                 leave it out for grey frames",
            ));
        }
        let [colours, full] = [range, ColourRange::Full].map(|range| Colours::new(matrix, range));
        Ok(Recolour { vectors: Vectors::new(), from, to, colours, full, found: from })
    }
}

/// The loop, compiled for the processor's vectors.
struct RecolourLoop<'r> {
    recolour: &'r Recolour,
    input: &'r [u8],
    output: &'r mut [u8],
}

/// Computes pixels of three channels from pixels of three channels.
#[inline(always)]
fn each(input: &[u8], output: &mut [u8], pixel: impl Fn([u8; 3]) -> [u8; 3]) {
    let pairs = output.as_chunks_mut().0.iter_mut().zip(input.as_chunks().0);
    pairs.for_each(|(to, from)| *to = pixel(*from));
}

impl WithSimd for RecolourLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        use ColourSpace::{Grey, Rgb, Ycbcr};
        let RecolourLoop { recolour: Recolour { colours, full, found, to, .. }, input, output } = self;
        match (found, to) {
            (Grey, Rgb | Ycbcr) => {
                let pairs = output.as_chunks_mut().0.iter_mut().zip(input);
                if *to == Rgb {
                    pairs.for_each(|(to, &grey)| *to = [grey; 3]);
                } else {
                    pairs.for_each(|(to, &grey)| *to = colours.ycbcr([grey; 3]));
                }
            }
            (Rgb, Grey) => {
                let pairs = output.iter_mut().zip(input.as_chunks().0);
                pairs.for_each(|(to, from)| *to = full.luma(*from));
            }
            (Ycbcr, Grey) => {
                let pairs = output.iter_mut().zip(input.as_chunks::<3>().0);
                pairs.for_each(|(to, from)| *to = colours.rgb([from[0], 128, 128])[0]);
            }
            (Rgb, Ycbcr) => each(input, output, |rgb| colours.ycbcr(rgb)),
            (Ycbcr, Rgb) => each(input, output, |ycbcr| colours.rgb(ycbcr)),
            (Grey, Grey) | (Rgb, Rgb) | (Ycbcr, Ycbcr) => output.copy_from_slice(input),
        }
    }
}

impl FrameFilter for Recolour {
    type In = u8;
    type Out = u8;

    fn shape(&mut self, shape: [u32; 3]) -> Result<[u32; 3], Error> {
        let is_grey = frame(shape)?.channels == 1;
        self.found = if is_grey { ColourSpace::Grey } else { self.from };
        let [rows, columns, _] = shape;
        Ok([rows, columns, if self.to == ColourSpace::Grey { 0 } else { 3 }])
    }

    fn filter(&mut self, input: &[u8], output: &mut [u8]) {
        self.vectors.run(RecolourLoop { recolour: self, input, output });
    }

    fn place(&self, sample: usize) -> usize {
        let channels = |space| if space == ColourSpace::Grey { 1 } else { 3 };
        if channels(self.found) == channels(self.to) {
            return sample;
        }
        sample / channels(self.found) * channels(self.to)
    }
}
