//! PNG pictures: frames and streams as pictures, and pictures as frames.
//!
//! `sink` draws real samples, `frames` writes bytes as they are, `source` plays pictures, which
//! `picture` decodes. `tap` keeps the latest frame. `pattern` has the numbers in file names.

mod frames;
mod pattern;
mod picture;
mod sink;
mod source;
mod tap;

pub use frames::PngFrameSink;
pub(crate) use sink::heat;
pub use sink::{ColourMap, PngSink};
pub use source::{PictureFormat, PngSource};
pub use tap::ImageTap;

use crate::part::PartFile;
use onbeat_runtime::{Error, Kind, Registry};
use std::io::{BufWriter, Write};

/// Media type.
const PNG: &str = "image/png";

/// Writes pixels as a PNG file.
pub(crate) fn encode(
    part: &PartFile,
    (width, height): (u32, u32),
    colour: png::ColorType,
    pixels: &[u8],
) -> Result<(), Error> {
    let cannot = |error| Error::with_source(format!("cannot write {}", part.target().display()), error);
    let mut file = BufWriter::new(part.handle()?);
    encode_to(&mut file, (width, height), colour, pixels).map_err(cannot)?;
    file.flush().map_err(|error| cannot(error.into()))
}

/// Writes pixels in the format of PNG files.
fn encode_to(
    to: impl Write,
    (width, height): (u32, u32),
    colour: png::ColorType,
    pixels: &[u8],
) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(to, width, height);
    encoder.set_color(colour);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(sink::kind());
    registry.add(frames::kind());
    registry.add(source::kind());
    registry.add(Kind::operator::<ImageTap>());
}
