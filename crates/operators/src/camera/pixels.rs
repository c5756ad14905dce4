//! Frames of a device to grey and RGB.

use super::jpeg::JpegReader;
use crate::image::{ColourMatrix, ColourRange, Colours};
use crate::vectors::Vectors;
use crate::y4m::VideoFormat;
use onbeat_os::video::{FrameLayout, PixelCode};
use onbeat_runtime::Error;
use pulp::{Simd, WithSimd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pixels as a camera sends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CameraPixels {
    /// One sample per pixel (`GREY`).
    Grey,
    /// Luma and chroma of two pixels in four bytes, Y Cb Y Cr (`YUYV`).
    Yuyv,
    /// The same as Cb Y Cr Y (`UYVY`).
    Uyvy,
    /// A plane of luma, and one of Cb and Cr for each 2 × 2 pixels (`NV12`).
    Nv12,
    /// A plane of luma, one of Cb, one of Cr, for each 2 × 2 pixels (`YU12`).
    Yu12,
    /// Red, green, blue (`RGB3`).
    Rgb,
    /// Blue, green, red (`BGR3`).
    Bgr,
    /// Each frame is a JPEG picture (`MJPG`).
    Mjpeg,
}

impl CameraPixels {
    /// From the one that takes the least work for grey frames to the one that takes the most.
    pub(super) const FOR_GREY: [Self; 8] =
        [Self::Grey, Self::Nv12, Self::Yu12, Self::Yuyv, Self::Uyvy, Self::Rgb, Self::Bgr, Self::Mjpeg];
    /// The same for RGB. Grey pixels come last: they have no colours.
    pub(super) const FOR_RGB: [Self; 8] =
        [Self::Rgb, Self::Bgr, Self::Yuyv, Self::Uyvy, Self::Nv12, Self::Yu12, Self::Mjpeg, Self::Grey];

    /// Code of the kernel.
    pub fn code(self) -> PixelCode {
        PixelCode(*match self {
            CameraPixels::Grey => b"GREY",
            CameraPixels::Yuyv => b"YUYV",
            CameraPixels::Uyvy => b"UYVY",
            CameraPixels::Nv12 => b"NV12",
            CameraPixels::Yu12 => b"YU12",
            CameraPixels::Rgb => b"RGB3",
            CameraPixels::Bgr => b"BGR3",
            CameraPixels::Mjpeg => b"MJPG",
        })
    }

    /// Name of the parameter's value.
    pub(super) fn name(self) -> &'static str {
        match self {
            CameraPixels::Grey => "grey",
            CameraPixels::Yuyv => "yuyv",
            CameraPixels::Uyvy => "uyvy",
            CameraPixels::Nv12 => "nv12",
            CameraPixels::Yu12 => "yu12",
            CameraPixels::Rgb => "rgb",
            CameraPixels::Bgr => "bgr",
            CameraPixels::Mjpeg => "mjpeg",
        }
    }

    /// Whether chroma is shared by neighbours in a row.
    fn has_pairs(self) -> bool {
        matches!(self, Self::Yuyv | Self::Uyvy | Self::Nv12 | Self::Yu12)
    }

    /// Bytes that a row of the first plane needs.
    fn row_bytes(self, columns: usize) -> usize {
        match self {
            CameraPixels::Grey | CameraPixels::Nv12 | CameraPixels::Yu12 => columns,
            CameraPixels::Yuyv | CameraPixels::Uyvy => 2 * columns,
            CameraPixels::Rgb | CameraPixels::Bgr => 3 * columns,
            CameraPixels::Mjpeg => 0,
        }
    }
}

/// How the colours of a device's frames are meant: by its driver, where the user does not say otherwise.
pub(super) fn colours(
    layout: &FrameLayout,
    matrix: Option<ColourMatrix>,
    range: Option<ColourRange>,
) -> (ColourMatrix, ColourRange) {
    // Numbers of linux/videodev2.h: colour spaces, encodings, ranges.
    const SMPTE_240M: u32 = 2;
    const REC709: u32 = 3;
    const JPEG: u32 = 7;
    const BT2020: u32 = 10;
    const DCI_P3: u32 = 12;
    let [space, encoding, quantization] = layout.colours;
    let found = match encoding {
        0 if matches!(space, SMPTE_240M | REC709 | BT2020 | DCI_P3) => ColourMatrix::Bt709,
        2 | 4 | 6 | 7 | 8 => ColourMatrix::Bt709,
        _ => ColourMatrix::Bt601,
    };
    let is_full = quantization == 1 || quantization == 0 && space == JPEG;
    let found_range = if is_full { ColourRange::Full } else { ColourRange::Limited };
    (matrix.unwrap_or(found), range.unwrap_or(found_range))
}

/// Why a frame cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FrameDamage {
    /// It has fewer bytes than its size needs.
    Short,
    /// Its JPEG data are damaged.
    Jpeg(String),
}

/// Reads frames of one layout.
pub(super) struct PixelReader {
    vectors: Vectors,
    pixels: CameraPixels,
    format: VideoFormat,
    columns: usize,
    rows: usize,
    line_bytes: usize,
    colours: Colours,
    full: Colours,
    jpeg: JpegReader,
}

impl PixelReader {
    /// Prepares for frames.
    ///
    /// # Errors
    /// If the driver describes them in a way that makes no sense.
    pub fn new(
        layout: &FrameLayout,
        pixels: CameraPixels,
        format: VideoFormat,
        (matrix, range): (ColourMatrix, ColourRange),
    ) -> Result<Self, Error> {
        let (columns, rows) = (layout.size.0 as usize, layout.size.1 as usize);
        let need = pixels.row_bytes(columns);
        // Drivers that do not tell have no bytes between two rows.
        let line_bytes = if layout.line_bytes == 0 { need } else { layout.line_bytes as usize };
        if columns == 0 || rows == 0 || line_bytes < need {
            return Err(Error::new(format!(
                "its driver offers frames of {columns} × {rows} pixels with {line_bytes} bytes in a row, of which \
                 {need} are needed: try another `size`"
            )));
        }
        if pixels.has_pairs() && !columns.is_multiple_of(2) {
            return Err(Error::new(format!(
                "its frames have {columns} columns, and `{}` needs an even number: give another `size`",
                pixels.name()
            )));
        }
        let [colours, full] = [range, ColourRange::Full].map(|range| Colours::new(matrix, range));
        let jpeg = JpegReader::default();
        let vectors = Vectors::new();
        Ok(PixelReader { vectors, pixels, format, columns, rows, line_bytes, colours, full, jpeg })
    }

    /// Bytes of a frame.
    fn least_bytes(&self) -> usize {
        let first = (self.rows - 1) * self.line_bytes + self.pixels.row_bytes(self.columns);
        let (all, half) = (self.rows * self.line_bytes, self.rows.div_ceil(2));
        match self.pixels {
            CameraPixels::Nv12 => all + (half - 1) * self.line_bytes + self.columns,
            CameraPixels::Yu12 => {
                all + (2 * half - 1) * self.line_bytes.div_ceil(2) + self.columns.div_ceil(2)
            }
            CameraPixels::Mjpeg => 0,
            _ => first,
        }
    }

    /// Reads a frame into samples, of which there are as many as the result has.
    ///
    /// # Errors
    /// If the frame is damaged. `out` has no meaning then.
    pub fn read(&mut self, frame: &[u8], out: &mut [u8]) -> Result<(), FrameDamage> {
        if self.pixels == CameraPixels::Mjpeg {
            let is_grey = self.format == VideoFormat::Grey;
            let size = (self.columns, self.rows);
            return self.jpeg.read(frame, size, is_grey, out).map_err(FrameDamage::Jpeg);
        }
        if frame.len() < self.least_bytes() {
            return Err(FrameDamage::Short);
        }
        self.vectors.run(RowLoop { reader: self, frame, out });
        Ok(())
    }
}

/// The loop over rows, compiled for the processor's vectors.
struct RowLoop<'f> {
    reader: &'f PixelReader,
    frame: &'f [u8],
    out: &'f mut [u8],
}

impl WithSimd for RowLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let RowLoop { reader, frame, out } = self;
        let PixelReader { columns, line_bytes, pixels, .. } = *reader;
        match reader.format {
            VideoFormat::Grey => {
                let lines = out.chunks_exact_mut(columns).enumerate();
                lines.for_each(|(y, to)| {
                    reader.grey(&frame[y * line_bytes..][..pixels.row_bytes(columns)], to);
                });
            }
            VideoFormat::Rgb => {
                let lines = out.chunks_exact_mut(3 * columns).enumerate();
                lines.for_each(|(y, to)| reader.rgb(frame, y, to));
            }
        }
    }
}

impl PixelReader {
    /// A row to grey: luma as it is.
    #[inline(always)]
    fn grey(&self, row: &[u8], to: &mut [u8]) {
        let full = &self.full;
        match self.pixels {
            CameraPixels::Grey | CameraPixels::Nv12 | CameraPixels::Yu12 => to.copy_from_slice(row),
            CameraPixels::Yuyv => to.iter_mut().zip(row.as_chunks().0).for_each(|(to, [y, _])| *to = *y),
            CameraPixels::Uyvy => to.iter_mut().zip(row.as_chunks().0).for_each(|(to, [_, y])| *to = *y),
            CameraPixels::Rgb => {
                to.iter_mut().zip(row.as_chunks().0).for_each(|(to, rgb)| *to = full.luma(*rgb));
            }
            CameraPixels::Bgr => {
                let pixels = row.as_chunks().0;
                to.iter_mut().zip(pixels).for_each(|(to, &[b, g, r])| *to = full.luma([r, g, b]));
            }
            CameraPixels::Mjpeg => {}
        }
    }

    /// Row `y` to RGB. A sample of chroma stands for all pixels that it covers.
    #[inline(always)]
    fn rgb(&self, frame: &[u8], y: usize, to: &mut [u8]) {
        let (columns, line_bytes) = (self.columns, self.line_bytes);
        let row = &frame[y * line_bytes..][..self.pixels.row_bytes(columns)];
        let chroma = &frame[(self.rows * line_bytes).min(frame.len())..];
        match self.pixels {
            CameraPixels::Grey => {
                to.as_chunks_mut().0.iter_mut().zip(row).for_each(|(to, &grey)| *to = [grey; 3]);
            }
            CameraPixels::Rgb => to.copy_from_slice(row),
            CameraPixels::Bgr => {
                let pairs = to.as_chunks_mut().0.iter_mut().zip(row.as_chunks().0);
                pairs.for_each(|(to, &[b, g, r])| *to = [r, g, b]);
            }
            CameraPixels::Yuyv => self.pairs(row.as_chunks().0.iter().copied(), to),
            CameraPixels::Uyvy => {
                self.pairs(row.as_chunks().0.iter().map(|&[cb, a, cr, b]| [a, cb, b, cr]), to);
            }
            CameraPixels::Nv12 => {
                let chroma = chroma[y / 2 * line_bytes..][..columns].as_chunks().0;
                let pairs = row.as_chunks().0.iter().zip(chroma);
                self.pairs(pairs.map(|(&[a, b], &[cb, cr])| [a, cb, b, cr]), to);
            }
            CameraPixels::Yu12 => {
                let (line, rows) = (line_bytes.div_ceil(2), self.rows.div_ceil(2));
                let [blue, red] =
                    [y / 2, rows + y / 2].map(|row| &chroma[row * line..][..columns.div_ceil(2)]);
                let pairs = row.as_chunks().0.iter().zip(blue).zip(red);
                self.pairs(pairs.map(|((&[a, b], &cb), &cr)| [a, cb, b, cr]), to);
            }
            CameraPixels::Mjpeg => {}
        }
    }

    /// Pairs of pixels with one chroma, as Y Cb Y Cr, to RGB.
    #[inline(always)]
    fn pairs(&self, pairs: impl Iterator<Item = [u8; 4]>, to: &mut [u8]) {
        for (to, [a, cb, b, cr]) in to.as_chunks_mut::<6>().0.iter_mut().zip(pairs) {
            let (left, right) = (self.colours.rgb([a, cb, cr]), self.colours.rgb([b, cb, cr]));
            *to = [left[0], left[1], left[2], right[0], right[1], right[2]];
        }
    }
}

#[cfg(test)]
#[path = "pixels_tests.rs"]
mod tests;
