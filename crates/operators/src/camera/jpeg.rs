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
    // Damaged data are left to the decoder.
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A picture of 16 × 16 pixels, and what Pillow decodes.
    struct Picture {
        name: String,
        jpeg: Vec<u8>,
        rgb: Vec<u8>,
        luma: Vec<u8>,
    }

    fn pictures() -> Vec<Picture> {
        let text = include_str!("jpeg_reference.in").split_once('\n').unwrap().1;
        let words: Vec<String> = text.split(';').map(|word| word.split_whitespace().collect()).collect();
        let bytes = |hex: &str| {
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            (0..hex.len()).step_by(2).map(byte).collect()
        };
        let parts = words.chunks_exact(4);
        let picture = |part: &[String]| {
            let [jpeg, rgb, luma] = [1, 2, 3].map(|at| bytes(&part[at]));
            Picture { name: part[0].clone(), jpeg, rgb, luma }
        };
        parts.map(picture).collect()
    }

    fn read(jpeg: &[u8], is_grey: bool) -> Result<Vec<u8>, String> {
        let mut out = vec![0; 16 * 16 * if is_grey { 1 } else { 3 }];
        JpegReader::default().read(jpeg, (16, 16), is_grey, &mut out).map(|()| out)
    }

    fn largest_step(a: &[u8], b: &[u8]) -> u8 {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
    }

    #[test]
    fn pictures_are_those_of_pillow() {
        for Picture { name, jpeg, rgb, luma } in pictures() {
            let steps = [(false, rgb), (true, luma)]
                .map(|(is_grey, out)| largest_step(&read(&jpeg, is_grey).unwrap(), &out));
            // The transforms may round differently by 1, and RGB adds the roundings of three channels.
            assert!(steps[0] <= 3 && steps[1] <= 1, "{name}: differs by up to {steps:?}");
        }
    }

    /// As some cameras send them: the tables are known.
    #[test]
    fn pictures_without_tables() {
        let Picture { jpeg, rgb, .. } = pictures().swap_remove(1);
        let mut bare = jpeg[..2].to_vec();
        let mut rest = &jpeg[2..];
        while rest[1] != SCAN {
            let length = 2 + usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            if rest[1] != TABLES {
                bare.extend_from_slice(&rest[..length]);
            }
            rest = &rest[length..];
        }
        bare.extend_from_slice(rest);
        assert!(jpeg.len() - bare.len() > 400);
        assert_eq!(read(&bare, false).unwrap(), read(&jpeg, false).unwrap());
        assert!(largest_step(&read(&bare, false).unwrap(), &rgb) <= 3);
    }

    #[test]
    fn damaged_pictures_are_refused() {
        let Picture { jpeg, .. } = pictures().swap_remove(2);
        assert!(read(&jpeg[..jpeg.len() - 40], false).is_err());
        assert!(read(&jpeg[..30], false).is_err());
        assert!(read(&[], false).unwrap_err().contains("does not begin as a JPEG"));
        assert!(read(&jpeg[1..], false).is_err());
        // Cameras fill their buffers up.
        assert!(read(&[&jpeg[..], &[0; 100]].concat(), false).is_ok());
        let mut out = vec![0; 8 * 16 * 3];
        let error = JpegReader::default().read(&jpeg, (16, 8), false, &mut out).unwrap_err();
        assert!(error.contains("16"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

        #[test]
        fn whatever_comes_is_read_or_refused(
            which in 0usize..4,
            changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..8),
            length in any::<usize>(),
            is_grey in any::<bool>(),
        ) {
            let mut jpeg = pictures().swap_remove(which).jpeg;
            for (place, byte) in changes {
                let place = place % jpeg.len();
                jpeg[place] = byte;
            }
            jpeg.truncate(length % (2 * jpeg.len()));
            if let Err(error) = read(&jpeg, is_grey) {
                prop_assert!(!error.is_empty());
            }
        }
    }
}
