//! Position reports of APRS, after the APRS Protocol Reference 1.0.1 (2000).

mod mic_e;
mod plain;
mod squeezed;

use super::line::{rounded, text_of};
use serde::Serialize;

/// A position report. Fields that it does not have are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct AprsPosition {
    /// Name of the object or item whose position it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Degrees, north above 0.
    pub latitude_deg: f64,
    /// Degrees, east above 0.
    pub longitude_deg: f64,
    /// Digits that the sender has left out of the latitude and of the longitude.
    #[serde(skip_serializing_if = "is_zero")]
    pub ambiguity: u8,
    /// Table and code of the symbol, two characters.
    pub symbol: String,
    /// Direction of motion, clockwise from north.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub course_deg: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_kt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub altitude_ft: Option<f64>,
    pub comment: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &u8) -> bool {
    *value == 0
}

/// Reads the position in the information of a frame to this address, if there is one.
pub(super) fn read_position(to: &str, info: &[u8]) -> Option<AprsPosition> {
    let (&kind, rest) = info.split_first()?;
    let found = match kind {
        b'!' | b'=' => stated(rest),
        b'/' | b'@' => stated(after_time(rest)?),
        b';' => {
            let (name, rest) = rest.split_at_checked(9)?;
            let (state, rest) = rest.split_first()?;
            let position = matches!(state, b'*' | b'_').then(|| stated(after_time(rest)?)).flatten()?;
            Some(AprsPosition { object: Some(text_of(name.trim_ascii_end()).0), ..position })
        }
        b')' => {
            let end = rest.iter().take(10).position(|byte| matches!(byte, b'!' | b'_'))?;
            let position = stated(&rest[end + 1..])?;
            Some(AprsPosition { object: Some(text_of(&rest[..end]).0), ..position })
        }
        b'`' | b'\'' | 0x1c | 0x1d => mic_e::read(to, rest),
        _ => None,
    };
    found.filter(|found| found.latitude_deg.abs() <= 90.0 && found.longitude_deg.abs() <= 180.0)
}

/// What follows a time of seven characters.
fn after_time(bytes: &[u8]) -> Option<&[u8]> {
    let (time, rest) = bytes.split_at_checked(7)?;
    let is_time = time[..6].iter().all(u8::is_ascii_digit) && matches!(time[6], b'z' | b'/' | b'h');
    is_time.then_some(rest)
}

/// A position in either of the two forms that begin with no type of their own.
fn stated(bytes: &[u8]) -> Option<AprsPosition> {
    if bytes.first()?.is_ascii_digit() || bytes.starts_with(b" ") {
        plain::read(bytes)
    } else {
        squeezed::read(bytes)
    }
}

/// Digits as a number.
fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit - b'0')))
}

/// The value of a character of base 91.
fn digit_91(character: u8) -> Option<u32> {
    (b'!'..=b'{').contains(&character).then(|| u32::from(character - b'!'))
}

/// Takes an altitude such as `/A=001234` out of a comment, and makes a text of the rest.
fn comment_of(bytes: &[u8], position: &mut AprsPosition) {
    let altitude = |at: &usize| bytes[at + 3..].get(..6).and_then(number);
    let found = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(b"/A="))
        .find_map(|at| Some((at, altitude(&at)?)));
    let text = match found {
        Some((at, feet)) => {
            position.altitude_ft = Some(feet.into());
            [&bytes[..at], &bytes[at + 9..]].concat()
        }
        None => bytes.to_vec(),
    };
    position.comment = text_of(text.trim_ascii()).0;
}

/// Degrees of degrees and minutes, to a millionth.
fn degrees(degrees: u32, minutes: f64) -> f64 {
    rounded(f64::from(degrees) + minutes / 60.0, 1e6)
}
