//! Brings frames to another size.

use super::crop::MOST;
use super::{FrameFilter, FrameSize, frame};
use crate::check;
use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x3};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};
use onbeat_runtime::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most bytes of a frame that is resized along its rows only.
const MOST_BETWEEN: usize = 1 << 30;

/// How a pixel is computed from those of the other size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResizeFilter {
    /// The nearest pixel.
    Nearest,
    /// Mean of the area that becomes the pixel.
    Area,
    /// Weights that fall linearly, over two pixels of the coarser size.
    #[default]
    Bilinear,
    /// Cubic weights (Catmull-Rom), over four pixels.
    Bicubic,
    /// Lanczos weights over six pixels: the sharpest; bright edges can get a dark seam.
    Lanczos,
}

/// Brings grey and RGB frames to a given size.
///
/// The weights of a filter are as wide as the pixels of the coarser size, so that a smaller picture has no
/// moiré, as with `Image.resize` of Pillow. The sums along rows are rounded to integers
/// before those along columns are taken. A tag moves to the pixel at its place. Each frame allocates the
/// weights.
#[derive(Debug, Clone)]
pub struct Resize {
    rows: u32,
    columns: u32,
    options: ResizeOptions,
    resizer: Resizer,
    size: FrameSize,
    /// A frame with the columns of the result and the rows of the input.
    between: Vec<u8>,
}

impl Resize {
    /// Creates the filter with the size of its results.
    ///
    /// # Errors
    /// When a number is not from 1 to 65535.
    pub fn new(rows: u32, columns: u32, filter: ResizeFilter) -> Result<Self, Error> {
        let fix = "give the size of the result in pixels";
        check::within("rows", rows.into(), 1.0, MOST, fix)?;
        check::within("columns", columns.into(), 1.0, MOST, fix)?;
        let algorithm = match filter {
            ResizeFilter::Nearest => ResizeAlg::Nearest,
            ResizeFilter::Area => ResizeAlg::Convolution(FilterType::Box),
            ResizeFilter::Bilinear => ResizeAlg::Convolution(FilterType::Bilinear),
            ResizeFilter::Bicubic => ResizeAlg::Convolution(FilterType::CatmullRom),
            ResizeFilter::Lanczos => ResizeAlg::Convolution(FilterType::Lanczos3),
        };
        let options = ResizeOptions::new().resize_alg(algorithm).use_alpha(false);
        Ok(Resize {
            rows,
            columns,
            options,
            resizer: Resizer::new(),
            size: FrameSize::default(),
            between: Vec::new(),
        })
    }

    /// Resizes along rows first, and then along columns, as Pillow does. The library would begin with the
    /// columns: where a filter overshoots, sums that are limited in between would differ.
    fn resize<P: PixelTrait>(&mut self, input: &[u8], output: &mut [u8]) -> Result<(), String> {
        let (rows, columns) = (self.size.rows as u32, self.size.columns as u32);
        let mut between = std::mem::take(&mut self.between);
        let both = self
            .pass::<P>((rows, columns, input), (rows, self.columns, &mut between))
            .and_then(|()| self.pass::<P>((rows, self.columns, &between), (self.rows, self.columns, output)));
        self.between = between;
        both.map_err(|error| error.to_string())
    }

    /// Resizes a frame with these rows, columns and bytes to another. The library's loops are linked for each
    /// type of pixels and of picture: so there are two, and one.
    fn pass<P: PixelTrait>(
        &mut self,
        (rows, columns, from): (u32, u32, &[u8]),
        (rows_to, columns_to, to): (u32, u32, &mut [u8]),
    ) -> Result<(), Box<dyn std::error::Error>> {
        let from = TypedImageRef::<P>::from_buffer(columns, rows, from)?;
        let mut to = TypedImage::<P>::from_buffer(columns_to, rows_to, to)?;
        Ok(self.resizer.resize_typed(&from, &mut to, &self.options)?)
    }
}

impl FrameFilter for Resize {
    type In = u8;
    type Out = u8;

    fn shape(&mut self, shape: [u32; 3]) -> Result<[u32; 3], Error> {
        let size = frame(shape)?;
        if [size.rows, size.columns].iter().any(|&length| length as f64 > MOST) {
            return Err(Error::new(format!(
                "its input has frames of {} × {}: it takes at most {MOST} rows and columns; crop them first",
                size.rows, size.columns
            )));
        }
        self.size = size;
        let between = size.rows * self.columns as usize * size.channels;
        if between > MOST_BETWEEN {
            return Err(Error::new(format!(
                "frames of {} × {} with {} columns in the result need {between} bytes in between: at most \
                 {MOST_BETWEEN} are used; resize in two steps",
                size.rows, size.columns, self.columns
            )));
        }
        self.between = vec![0; between];
        Ok([self.rows, self.columns, shape[2]])
    }

    fn filter(&mut self, input: &[u8], output: &mut [u8]) {
        // The errors are about sizes and types that do not match; those were compared.
        let both = if self.size.channels == 1 { Self::resize::<U8> } else { Self::resize::<U8x3> };
        both(self, input, output).expect("both frames have the size and type that they were prepared for");
    }

    fn place(&self, sample: usize) -> usize {
        let FrameSize { rows, columns, channels } = self.size;
        let (pixel, channel) = (sample / channels, sample % channels);
        let row = pixel / columns * self.rows as usize / rows;
        let column = pixel % columns * self.columns as usize / columns;
        (row * self.columns as usize + column) * channels + channel
    }
}
