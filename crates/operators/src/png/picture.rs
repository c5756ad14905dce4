//! Decodes PNG files to bytes.

use super::source::PictureFormat;
use crate::format;
use crate::image::{ColourMatrix, ColourRange, Colours};
use onbeat_runtime::Error;
use png::{BitDepth, Decoder, Reader, Transformations};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Most rows and columns.
const MOST: u32 = 65535;

/// A file whose header was read.
pub(super) struct OpenPicture {
    reader: Reader<BufReader<File>>,
    _use: onbeat_runtime::FileUse,
    pub rows: u32,
    pub columns: u32,
    /// Whether it has colour, or a palette.
    pub is_colour: bool,
}

/// The layout of decoded samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoded {
    /// Samples of a pixel: grey or RGB, and perhaps alpha.
    channels: usize,
    /// Bytes of a sample, the high one first.
    bytes: usize,
}

impl OpenPicture {
    /// Opens a file and reads its header.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (file, _, _use) = format::open(path)?;
        let wrong = |error| Error::with_source(format!("{}: it is not a PNG file", path.display()), error);
        let mut decoder = Decoder::new(BufReader::new(file));
        // Palettes become RGB, and fewer bits than 8 become 8.
        decoder.set_transformations(Transformations::EXPAND);
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        let reader = decoder.read_info().map_err(wrong)?;
        let (columns, rows) = reader.info().size();
        let is_colour = !matches!(
            reader.output_color_type().0,
            png::ColorType::Grayscale | png::ColorType::GrayscaleAlpha
        );
        if rows > MOST || columns > MOST {
            return Err(Error::new(format!(
                "{}: it has {rows} × {columns} pixels: at most {MOST} × {MOST} are supported",
                path.display()
            )));
        }
        Ok(OpenPicture { reader, _use, rows, columns, is_colour })
    }

    /// Decodes all samples into a buffer.
    pub fn decode(mut self, path: &Path, samples: &mut Vec<u8>) -> Result<Decoded, Error> {
        let (colour, depth) = self.reader.output_color_type();
        let bytes = if depth == BitDepth::Sixteen { 2 } else { 1 };
        let decoded = Decoded { channels: colour.samples(), bytes };
        let size = decoded.channels * bytes * self.rows as usize * self.columns as usize;
        samples.resize(size, 0);
        let wrong = |error| {
            Error::with_source(format!("{}: it is damaged and cannot be decoded", path.display()), error)
        };
        self.reader.next_frame(samples).map_err(wrong)?;
        Ok(decoded)
    }
}

impl Decoded {
    /// Converts samples to the bytes of a frame. Alpha is left out.
    pub fn write(self, samples: &[u8], format: PictureFormat, frame: &mut [u8]) {
        let Decoded { channels, bytes } = self;
        let sample = |pixel: &[u8], at: usize| match bytes {
            1 => pixel[at],
            // From 0 ... 65535 to 0 ... 255, to the nearest.
            _ => {
                let wide = u32::from(pixel[2 * at]) << 8 | u32::from(pixel[2 * at + 1]);
                ((wide * 255 + 32767) / 65535) as u8
            }
        };
        let pixels = samples.chunks_exact(channels * bytes);
        let is_colour = channels >= 3;
        match format {
            PictureFormat::Grey if is_colour => {
                let colours = Colours::new(ColourMatrix::Bt601, ColourRange::Full);
                for (to, pixel) in frame.iter_mut().zip(pixels) {
                    *to = colours.luma(std::array::from_fn(|at| sample(pixel, at)));
                }
            }
            PictureFormat::Grey => frame.iter_mut().zip(pixels).for_each(|(to, x)| *to = sample(x, 0)),
            PictureFormat::Rgb => {
                for (to, pixel) in frame.as_chunks_mut::<3>().0.iter_mut().zip(pixels) {
                    *to = std::array::from_fn(|at| sample(pixel, if is_colour { at } else { 0 }));
                }
            }
        }
    }
}
