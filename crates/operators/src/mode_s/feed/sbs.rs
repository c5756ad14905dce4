//! Lines of decoded fields, as the program BaseStation of SBS receivers sends them: 22 fields with commas.
//!
//! Source: "Socket Data and BST Files", homepages.mcb.net/bones/SBS/Article/Barebones42_Socket_Data.htm.

use crate::check;
use crate::mode_s::Frame;
use crate::mode_s::bits::bits;
use crate::mode_s::fields::Fields;
use crate::mode_s::position::Positions;
use crate::mode_s::read::read;
use onbeat_runtime::Error;
use std::fmt::Display;
use std::io::Write;

/// Writes lines; positions need a memory of earlier frames.
#[derive(Debug, Default)]
pub(super) struct SbsWriter {
    positions: Positions,
}

impl SbsWriter {
    /// Makes a writer that knows the place of the receiver in degrees, for positions on the ground.
    pub fn new(receiver: Option<(f64, f64)>) -> Result<Self, Error> {
        if let Some((latitude, longitude)) = receiver {
            let fix = "write degrees, north and east above 0";
            check::within("latitude", latitude, -90.0, 90.0, fix)?;
            check::within("longitude", longitude, -180.0, 180.0, fix)?;
        }
        let mut writer = SbsWriter::default();
        writer.positions.receiver = receiver;
        Ok(writer)
    }

    /// Appends the line of a frame; frames without fields for it give none. The time of day is in
    /// nanoseconds since 1970.
    pub fn write(&mut self, frame: &Frame, unix_ns: u64, out: &mut Vec<u8>) {
        let (_, fields, report) = read(frame);
        let is_surface = report.is_some_and(|report| report.is_surface);
        let place = report.and_then(|report| self.positions.take(frame.address(), frame.time_s, report));
        let Some(kind) = kind(frame, is_surface) else { return };
        let [date, time] = date_and_time(unix_ns);
        // Writing to a `Vec` cannot fail.
        let _ = write!(out, "MSG,{kind},1,1,{:06X},1,{date},{time},{date},{time}", frame.address());
        let latitude = place.map(|(latitude, _)| format!("{latitude:.5}"));
        let longitude = place.map(|(_, longitude)| format!("{longitude:.5}"));
        field(out, fields.call_sign.as_deref());
        field(out, fields.altitude_ft);
        field(out, fields.ground_speed_kt);
        field(out, fields.track_deg);
        field(out, latitude);
        field(out, longitude);
        field(out, fields.vertical_rate_ft_per_min);
        field(out, fields.squawk.as_deref());
        field(out, fields.alert.map(flag));
        field(out, is_emergency(&fields).map(flag));
        field(out, fields.ident.map(flag));
        field(out, is_on_ground(frame, &fields, report.is_some() && !is_surface).map(flag));
        out.extend_from_slice(b"\r\n");
    }
}

/// Returns the type of the line.
fn kind(frame: &Frame, is_surface: bool) -> Option<u8> {
    match frame.downlink_format() {
        4 | 20 => Some(5),
        5 | 21 => Some(6),
        0 | 16 => Some(7),
        11 => Some(8),
        17 | 18 => match bits(frame, 33, 37) {
            1..=4 => Some(1),
            5..=18 | 20..=22 => Some(if is_surface { 2 } else { 3 }),
            19 => Some(4),
            28 if bits(frame, 38, 40) == 1 => Some(6),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the aircraft has an emergency, from its identity code or its status.
fn is_emergency(fields: &Fields) -> Option<bool> {
    let by_code = fields.squawk.as_deref().map(|code| matches!(code, "7500" | "7600" | "7700"));
    let by_status = fields.emergency.map(|emergency| emergency != "none");
    match (by_code, by_status) {
        (None, None) => None,
        (code, status) => Some(code == Some(true) || status == Some(true)),
    }
}

/// Whether the aircraft is on the ground; capability 4 says so, 5 says that it flies.
fn is_on_ground(frame: &Frame, fields: &Fields, is_airborne: bool) -> Option<bool> {
    let by_capability = match (frame.downlink_format(), bits(frame, 6, 8)) {
        (11 | 17, 4) => Some(true),
        (11 | 17, 5) => Some(false),
        _ => None,
    };
    fields.on_ground.or(is_airborne.then_some(false)).or(by_capability)
}

fn flag(is_set: bool) -> &'static str {
    if is_set { "-1" } else { "0" }
}

fn field(out: &mut Vec<u8>, value: Option<impl Display>) {
    out.push(b',');
    if let Some(value) = value {
        let _ = write!(out, "{value}");
    }
}

/// Returns date and time of day (UTC). The date is by days in eras of 400 years, which begin in March (H.
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn date_and_time(unix_ns: u64) -> [String; 2] {
    let ms = unix_ns / 1_000_000;
    let (days, ms) = (ms / 86_400_000 + 719_468, ms % 86_400_000);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + next;
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    [format!("{year:04}/{month:02}/{day:02}"), format!("{hour:02}:{minute:02}:{second:02}.{:03}", ms % 1_000)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `date --utc --date=@SECONDS +%Y/%m/%d,%T`.
    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970/01/01,00:00:00.000"),
            (951_782_400, "2000/02/29,00:00:00.000"),
            (951_868_799, "2000/02/29,23:59:59.000"),
            (1_735_689_599, "2024/12/31,23:59:59.000"),
            (4_107_542_400, "2100/03/01,00:00:00.000"),
        ] {
            assert_eq!(date_and_time(seconds * 1_000_000_000).join(","), expected);
        }
    }
}
