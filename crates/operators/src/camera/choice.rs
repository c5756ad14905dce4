//! Which pixel format, size and rate a device is asked for.

use super::pixels::CameraPixels;
use crate::check;
use crate::y4m::VideoFormat;
use onbeat_os::video::{PixelCode, SizeRange, VideoDevice};
use onbeat_runtime::Error;

/// Most columns and rows.
const MOST: u32 = 65535;
/// Entries of a list that a message shows.
const SHOWN: usize = 12;
/// Rates closer than this are the same: drivers round the time of a frame.
const SAME_RATE: f64 = 1e-3;

/// What the user asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct CameraRequest {
    /// What comes out.
    pub format: VideoFormat,
    pub pixels: Option<CameraPixels>,
    /// Columns and rows.
    pub size: Option<(u32, u32)>,
    pub rate_hz: Option<f64>,
}

/// Reads a size such as `1280x720`.
pub(super) fn read_size(text: &str) -> Result<(u32, u32), Error> {
    let both = text.split_once(['x', '×']);
    let length = |text: &str| text.trim().parse::<u32>().ok().filter(|length| (1..=MOST).contains(length));
    both.and_then(|(columns, rows)| length(columns).zip(length(rows))).ok_or_else(|| {
        let shown = check::shown(text);
        Error::new(format!(
            "`size` is `{shown}`: write columns and rows, each from 1 to {MOST}, such as \"1280x720\""
        ))
    })
}

/// Whether two rates in hertz are the same, as far as drivers tell.
pub(super) fn is_same_rate(a_hz: f64, b_hz: f64) -> bool {
    (a_hz - b_hz).abs() <= SAME_RATE * a_hz.max(b_hz)
}

/// Chooses the pixel format. The error is for users; the caller adds the device.
pub(super) fn choose(device: &VideoDevice, asked: &CameraRequest) -> Result<CameraPixels, String> {
    let offered = device.formats();
    let has = |pixels: CameraPixels| offered.iter().any(|(code, _)| *code == pixels.code());
    if let Some(pixels) = asked.pixels {
        let code = pixels.code();
        let fix = "give another one as `pixels`, or leave it out";
        return if has(pixels) {
            Ok(pixels)
        } else {
            Err(format!(
                "it does not offer `pixels = \"{}\"` ({code}); it offers {}: {fix}",
                pixels.name(),
                formats(&offered)
            ))
        };
    }
    let order = match asked.format {
        VideoFormat::Grey => CameraPixels::FOR_GREY,
        VideoFormat::Rgb => CameraPixels::FOR_RGB,
    };
    let known: Vec<CameraPixels> = order.into_iter().filter(|&pixels| has(pixels)).collect();
    let size = asked.size.or_else(|| device.layout().ok().map(|layout| layout.size));
    let has_size = |pixels: CameraPixels| {
        let sizes = device.sizes(pixels.code());
        sizes.is_empty() || size.is_none_or(|size| sizes.iter().any(|range| range.has(size)))
    };
    let has_rate = |pixels: CameraPixels| {
        let (Some(rate_hz), Some(size)) = (asked.rate_hz, size) else { return true };
        let rates = device.rates_hz(pixels.code(), size);
        let fits = |&(least, most): &(f64, f64)| {
            (least..=most).contains(&rate_hz) || is_same_rate(least, rate_hz) || is_same_rate(most, rate_hz)
        };
        rates.is_empty() || rates.iter().any(fits)
    };
    let find = |fits: &dyn Fn(CameraPixels) -> bool| known.iter().copied().find(|&pixels| fits(pixels));
    let best = find(&|pixels| has_size(pixels) && has_rate(pixels)).or_else(|| find(&has_size));
    best.or_else(|| known.first().copied()).ok_or_else(|| {
        let readable: Vec<&str> = order.iter().map(|pixels| pixels.name()).collect();
        format!(
            "it offers {}, and onbeat reads {}: set the device to one of these, if it can",
            formats(&offered),
            readable.join(", ")
        )
    })
}

/// Lists pixel formats.
fn formats(offered: &[(PixelCode, String)]) -> String {
    shown(offered.iter().map(|(code, name)| format!("{code} ({name})")), "no pixel format")
}

/// The begin of a list.
fn shown(entries: impl Iterator<Item = String>, none: &str) -> String {
    let mut all: Vec<String> = entries.collect();
    if all.is_empty() {
        return none.to_string();
    }
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    if more > 0 { format!("{} and {more} more", all.join(", ")) } else { all.join(", ") }
}

/// Says which sizes a device offers.
pub(super) fn sizes_in_words(device: &VideoDevice, pixels: CameraPixels) -> String {
    let text = |range: SizeRange| {
        let [least, most] = [0, 1].map(|at| format!("{}x{}", range.columns[at], range.rows[at]));
        if least == most { least } else { format!("{least} to {most}") }
    };
    let sizes = shown(device.sizes(pixels.code()).into_iter().map(text), "other sizes only");
    format!("as `{}` it offers {sizes}", pixels.name())
}

/// Says which rates a device offers for a size.
pub(super) fn rates_in_words(device: &VideoDevice, pixels: CameraPixels, size: (u32, u32)) -> String {
    let text = |(least, most): (f64, f64)| {
        let [least, most] = [least, most].map(rate_text);
        if least == most { least } else { format!("{least} to {most}") }
    };
    let rates = shown(device.rates_hz(pixels.code(), size).into_iter().map(text), "no other rate");
    format!("at {}x{} as `{}` it offers {rates}", size.0, size.1, pixels.name())
}

/// A frame rate as users read it.
pub(super) fn rate_text(rate_hz: f64) -> String {
    let text = format!("{rate_hz:.3}");
    format!("{} Hz", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Checks the number of buffers.
pub(super) fn check_buffers(buffers: u32) -> Result<(), Error> {
    check::within("buffers", buffers.into(), 2.0, 32.0, "4 are usual; more let the worker be late for longer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, size) in [("1280x720", (1280, 720)), ("1 x 65535", (1, 65535)), ("640×480", (640, 480))] {
            assert_eq!(read_size(text).unwrap(), size);
        }
        for text in ["", "x", "1280", "0x5", "65536x1", "-1x4", "1x2x3", "1.5x2", "99999999999x1"] {
            let error = read_size(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`size` is `{text}`: write columns and rows")), "{error}");
        }
    }

    #[test]
    fn rates_are_shown_and_compared() {
        assert_eq!(rate_text(60.0), "60 Hz");
        assert_eq!(rate_text(60000.0 / 1001.0), "59.94 Hz");
        assert_eq!(rate_text(12.5), "12.5 Hz");
        assert!(is_same_rate(59.94, 60000.0 / 1001.0));
        assert!(!is_same_rate(60.0, 59.9));
    }
}
