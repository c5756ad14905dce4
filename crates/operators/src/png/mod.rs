//! PNG pictures: frames and streams as pictures, and pictures as frames.
//!
//! `sink` draws real samples, `frames` writes bytes as they are, `source` plays pictures, which
//! `picture` decodes. `pattern` has the numbers in file names.

mod frames;
mod pattern;
mod picture;
mod sink;
mod source;

pub use frames::PngFrameSink;
pub(crate) use sink::heat;
pub use sink::{ColourMap, PngSink};
pub use source::{PictureFormat, PngSource};

use crate::part::PartFile;
use onbeat_runtime::{Error, Registry};
use std::io::{BufWriter, Write};

/// Writes pixels as a PNG file.
pub(crate) fn encode(
    part: &PartFile,
    (width, height): (u32, u32),
    colour: png::ColorType,
    pixels: &[u8],
) -> Result<(), Error> {
    let cannot = |error| Error::with_source(format!("cannot write {}", part.target().display()), error);
    let mut file = BufWriter::new(part.handle()?);
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(colour);
    encoder.set_compression(png::Compression::Fast);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(pixels)?;
        writer.finish()
    });
    written.map_err(cannot)?;
    file.flush().map_err(|error| cannot(error.into()))
}

pub(crate) fn add_kinds(registry: &mut Registry) {
    registry.add(sink::kind());
    registry.add(frames::kind());
    registry.add(source::kind());
}
