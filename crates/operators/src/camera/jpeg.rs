//! Compressed frames (Motion JPEG).

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// A segment that tells the decoder to take the usual Huffman tables where a frame has none: that of AVI.
const USUAL_TABLES: [u8; 9] = [0xff, 0xe0, 0, 7, b'A', b'V', b'I', b'1', 0];
// Markers.
const START: [u8; 2] = [0xff, 0xd8];
const TABLES: u8 = 0xc4;
const SCAN: u8 = 0xda;

/// Decodes JPEG pictures of a known size.
#[derive(Debug, Default)]
pub(super) struct JpegReader {
    /// A frame with the segment that it lacks.
    completed: Vec<u8>,
}

impl JpegReader {
    /// Decodes a frame to grey (luma) or RGB. Allocates.
    ///
    /// # Errors
    /// If the frame is damaged or incomplete, or does not have this size: in words.
    pub fn read(
        &mut self,
        frame: &[u8],
        (columns, rows): (usize, usize),
        is_grey: bool,
        out: &mut [u8],
    ) -> Result<(), String> {
        let Some(rest) = frame.strip_prefix(&START) else {
            return Err("it does not begin as a JPEG picture".to_string());
        };
        let frame = if has_tables(rest) {
            frame
        } else {
            self.completed.clear();
            [&START[..], &USUAL_TABLES, rest].iter().for_each(|part| self.completed.extend_from_slice(part));
            &self.completed
        };
        let space = if is_grey { ColorSpace::Luma } else { ColorSpace::RGB };
        let options = DecoderOptions::default()
            .jpeg_set_out_colorspace(space)
            // A frame that was cut off is an error, and not filled up.
            .set_strict_mode(true)
            .set_max_width(columns)
            .set_max_height(rows);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(frame), options);
        decoder.decode_headers().map_err(|error| error.to_string())?;
        let found = decoder.info().map(|info| (usize::from(info.width), usize::from(info.height)));
        if found != Some((columns, rows)) {
            let (width, height) = found.unwrap_or_default();
            return Err(format!("it has {width} × {height} pixels instead of {columns} × {rows}"));
        }
        if decoder.output_buffer_size() != Some(out.len()) {
            return Err("it has another number of channels".to_string());
        }
        decoder.decode_into(out).map_err(|error| error.to_string())
    }
}

/// Whether a picture, without its first marker, has Huffman tables before its samples.
fn has_tables(mut rest: &[u8]) -> bool {
    while let [0xff, marker, high, low, ..] = *rest {
        if marker == TABLES || marker == SCAN {
            return marker == TABLES;
        }
        let length = 2 + usize::from(u16::from_be_bytes([high, low])).max(2);
        let Some(next) = rest.get(length..) else { return true };
        rest = next;
    }
    // What is damaged is not made better.
    true
}
