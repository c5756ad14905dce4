//! The header of a YUV4MPEG2 stream: a line of text with size, frame rate and layout of the planes.

use crate::image::ColourRange;

/// First word of a stream and of a frame.
const MAGIC: &[u8] = b"YUV4MPEG2";
pub(super) const FRAME: &[u8] = b"FRAME";
/// Longest line, in bytes. Those of usual programs have less than 100.
pub(super) const LINE: usize = 4096;
/// Most rows and columns.
pub(super) const MOST: u32 = 65535;

/// Layout of the planes of a frame: luma, then two of chroma unless it is grey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamHeader {
    pub rows: usize,
    pub columns: usize,
    /// Frames per second, as a fraction; `None` if the header does not say.
    pub rate: Option<(u32, u32)>,
    /// Columns and rows of luma for one sample of chroma; `None` for grey.
    pub chroma: Option<(usize, usize)>,
    pub is_interlaced: bool,
    /// Range of its bytes, if the header says so.
    pub range: Option<ColourRange>,
}

impl StreamHeader {
    /// Reads a line, without its line break. The error is for users; the caller adds the file name.
    pub fn read(line: &[u8]) -> Result<Self, String> {
        let Some(rest) = line.strip_prefix(MAGIC).filter(|rest| matches!(rest.first(), None | Some(b' ')))
        else {
            return Err("it does not begin with `YUV4MPEG2`: it is not a Y4M file".into());
        };
        let rest = std::str::from_utf8(rest).map_err(|_| "its header is not text".to_string())?;
        let (mut rows, mut columns) = (None, None);
        let mut header = StreamHeader {
            rows: 0,
            columns: 0,
            rate: None,
            chroma: Some((2, 2)),
            is_interlaced: false,
            range: None,
        };
        for field in rest.split_ascii_whitespace() {
            let (tag, value) = field.split_at_checked(1).unwrap_or(("", field));
            match tag {
                "W" => columns = Some(length("W", "columns", value)?),
                "H" => rows = Some(length("H", "rows", value)?),
                "F" => header.rate = rate(value)?,
                "I" => header.is_interlaced = !matches!(value, "p" | "?"),
                "C" => header.chroma = chroma(value)?,
                "X" if value == "COLORRANGE=FULL" => header.range = Some(ColourRange::Full),
                "X" if value == "COLORRANGE=LIMITED" => header.range = Some(ColourRange::Limited),
                // The shape of a pixel, comments, and what other programs add.
                _ => {}
            }
        }
        let (Some(rows), Some(columns)) = (rows, columns) else {
            return Err("its header lacks `W` or `H`, the size of a frame".into());
        };
        (header.rows, header.columns) = (rows, columns);
        Ok(header)
    }

    /// Formats the line, with its line break.
    pub fn write(&self) -> String {
        let (rate, base) = self.rate.unwrap_or((0, 0));
        let chroma = match self.chroma {
            None => "mono",
            Some((1, 1)) => "444",
            Some(_) => "420jpeg",
        };
        let range = match self.range {
            None => "",
            Some(ColourRange::Full) => " XCOLORRANGE=FULL",
            Some(ColourRange::Limited) => " XCOLORRANGE=LIMITED",
        };
        let (columns, rows) = (self.columns, self.rows);
        format!("YUV4MPEG2 W{columns} H{rows} F{rate}:{base} Ip A1:1 C{chroma}{range}\n")
    }

    /// Rows and columns of a plane of chroma.
    pub fn chroma_size(&self) -> (usize, usize) {
        self.chroma.map_or((0, 0), |(across, down)| (self.rows.div_ceil(down), self.columns.div_ceil(across)))
    }

    /// Bytes of the planes of a frame.
    pub fn frame_bytes(&self) -> usize {
        let (rows, columns) = self.chroma_size();
        self.rows * self.columns + 2 * rows * columns
    }

    /// Frames per second; 0 if unknown.
    pub fn rate_hz(&self) -> f64 {
        self.rate.map_or(0.0, |(rate, base)| f64::from(rate) / f64::from(base))
    }
}

fn length(tag: &str, what: &str, value: &str) -> Result<usize, String> {
    let length = value.parse::<u32>().ok().filter(|length| (1..=MOST).contains(length));
    length.map(|length| length as usize).ok_or_else(|| {
        format!("its header has `{tag}{}`: the number of {what} must be from 1 to {MOST}", shown(value))
    })
}

fn rate(value: &str) -> Result<Option<(u32, u32)>, String> {
    let both = value.split_once(':').and_then(|(rate, base)| rate.parse().ok().zip(base.parse().ok()));
    match both {
        Some((0, _) | (_, 0)) => Ok(None),
        Some(both) => Ok(Some(both)),
        None => Err(format!("its header has `F{}`: it must be a fraction such as `F25:1`", shown(value))),
    }
}

fn chroma(value: &str) -> Result<Option<(usize, usize)>, String> {
    let known = match value {
        "420jpeg" | "420mpeg2" | "420paldv" | "420" => Some(Some((2, 2))),
        "422" => Some(Some((2, 1))),
        "444" => Some(Some((1, 1))),
        "411" => Some(Some((4, 1))),
        "mono" => Some(None),
        _ => None,
    };
    known.ok_or_else(|| {
        let bits = value.strip_prefix("mono").or_else(|| value.split_once('p').map(|(_, bits)| bits));
        let is_deep = bits.is_some_and(|bits| !bits.is_empty() && bits.bytes().all(|c| c.is_ascii_digit()));
        let value = shown(value);
        if is_deep {
            return format!(
                "its samples are `C{value}`, with more than 8 bits: convert it, for example with `ffmpeg \
                 -pix_fmt yuv420p`"
            );
        }
        format!(
            "its layout `C{value}` is not supported: it plays 420, 422, 444, 411 and mono; convert it, for \
             example with `ffmpeg -pix_fmt yuv420p`"
        )
    })
}

/// The begin of a value, for messages.
fn shown(value: &str) -> String {
    value.chars().take(20).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A frame rate as a fraction. Rates within two millionths of n · 1000/1001 are taken for these, so that
/// 29.97 becomes 30000:1001.
pub(crate) fn fraction(rate_hz: f64) -> Option<(u32, u32)> {
    let close = |base: u32, most: f64| {
        let rate = (rate_hz * f64::from(base)).round();
        let is_near = (rate / f64::from(base) - rate_hz).abs() <= most * rate_hz;
        (is_near && rate >= 1.0 && rate <= f64::from(u32::MAX)).then_some((rate as u32, base))
    };
    // NTSC: 24, 30, 60 and so on, times 1000/1001.
    let ntsc = close(1001, 2e-6).filter(|(rate, _)| rate % 1000 == 0);
    let any = || close(1_000_000, 1.0).or_else(|| close(1000, 1.0));
    let (mut rate, mut base) = close(1, 1e-9).or(ntsc).or_else(any)?;
    let (mut a, mut b) = (rate, base);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (rate, base) = (rate / a, base / a);
    Some((rate, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_usual_programs() {
        let read = |text: &str| StreamHeader::read(text.as_bytes()).unwrap();
        let ffmpeg = read("YUV4MPEG2 W176 H144 F30000:1001 Ip A128:117 C420mpeg2 XYSCSS=420MPEG2");
        assert_eq!((ffmpeg.columns, ffmpeg.rows, ffmpeg.rate), (176, 144, Some((30000, 1001))));
        assert_eq!((ffmpeg.chroma, ffmpeg.range, ffmpeg.frame_bytes()), (Some((2, 2)), None, 38016));
        let odd = read("YUV4MPEG2 W5 H3 F0:0 It C420jpeg XCOLORRANGE=FULL");
        assert_eq!((odd.rate, odd.is_interlaced, odd.frame_bytes()), (None, true, 15 + 2 * 6));
        assert_eq!(odd.range, Some(ColourRange::Full));
        assert_eq!(read("YUV4MPEG2 H1 W1").chroma, Some((2, 2)));
        for (chroma, bytes) in [("mono", 15), ("444", 45), ("422", 33), ("411", 27), ("420paldv", 27)] {
            assert_eq!(read(&format!("YUV4MPEG2 W5 H3 C{chroma}")).frame_bytes(), bytes, "{chroma}");
        }
        for header in [ffmpeg, odd] {
            let line = StreamHeader { chroma: None, ..header }.write();
            let again = read(line.trim_end());
            assert_eq!(again, StreamHeader { chroma: None, is_interlaced: false, ..header });
        }
    }

    #[test]
    fn lines_that_are_refused() {
        for (text, expected) in [
            ("", "does not begin with `YUV4MPEG2`"),
            ("YUV4MPEG25 W1 H1", "does not begin with"),
            ("YUV4MPEG2 W1", "lacks `W` or `H`"),
            ("YUV4MPEG2 W0 H1", "`W0`: the number of columns must be from 1 to 65535"),
            ("YUV4MPEG2 W1 H-1", "`H-1`: the number of rows"),
            ("YUV4MPEG2 W99999999999999999999999 H1", "`W99999999999999999999`"),
            ("YUV4MPEG2 W1 H1 F25", "`F25`: it must be a fraction"),
            ("YUV4MPEG2 W1 H1 C420p10", "`C420p10`, with more than 8 bits"),
            ("YUV4MPEG2 W1 H1 Cmono16", "`Cmono16`, with more than 8 bits"),
            ("YUV4MPEG2 W1 H1 C444alpha", "layout `C444alpha` is not supported"),
        ] {
            let error = StreamHeader::read(text.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(StreamHeader::read(b"YUV4MPEG2 \xff").is_err());
    }

    #[test]
    fn rates_become_fractions() {
        for (rate_hz, expected) in [
            (25.0, (25, 1)),
            (29.97, (30000, 1001)),
            (24000.0 / 1001.0, (24000, 1001)),
            (59.94, (60000, 1001)),
            (12.5, (25, 2)),
            (0.1, (1, 10)),
            (1e6, (1_000_000, 1)),
            (5000.5, (10001, 2)),
        ] {
            assert_eq!(fraction(rate_hz), Some(expected), "{rate_hz}");
        }
        assert_eq!(fraction(1e-9), None);
        assert_eq!(fraction(0.0), None);
        assert_eq!(fraction(f64::NAN), None);
    }
}
