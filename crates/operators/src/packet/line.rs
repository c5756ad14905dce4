//! The line of JSON that a frame of AX.25 becomes.

use super::aprs::{AprsPosition, read_position};
use super::ax25::{Ax25Frame, Station};
use serde::Serialize;

/// One line of JSON. Fields that the frame does not have are left out.
#[derive(Debug, Serialize)]
struct PacketLine<'d> {
    time_s: f64,
    from: &'d str,
    to: &'d str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    via: Vec<String>,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<bool>,
    #[serde(skip_serializing_if = "is_false")]
    poll: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    send_number: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receive_number: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    info_hex: Option<String>,
    #[serde(flatten)]
    position: Option<AprsPosition>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A text of bytes, in which those that are not UTF-8 are written as `\xNN`, and whether there are such.
pub(super) fn text_of(bytes: &[u8]) -> (String, bool) {
    let mut text = String::with_capacity(bytes.len());
    let mut is_changed = false;
    for part in bytes.utf8_chunks() {
        text += part.valid();
        for byte in part.invalid() {
            text += &format!("\\x{byte:02x}");
            is_changed = true;
        }
    }
    (text, is_changed)
}

/// A number with at most six decimals, with a step of `1 / unit`.
pub(super) fn rounded(value: f64, unit: f64) -> f64 {
    (value * unit).round() / unit
}

/// Writes a frame that began at this time as a line, if its addresses are valid.
pub(super) fn line_of(bytes: &[u8], time_s: f64) -> Option<String> {
    let frame = Ax25Frame::read(bytes)?;
    let (text, is_changed) = text_of(frame.info);
    let has_info = frame.pid.is_some() || !frame.info.is_empty();
    let hex = || frame.info.iter().map(|byte| format!("{byte:02x}")).collect();
    let is_aprs = frame.kind() == "UI" && frame.pid == Some(0xf0);
    let position = is_aprs.then(|| read_position(&frame.to.name, frame.info)).flatten();
    let via = |station: &Station| format!("{}{}", station.name, if station.is_marked { "*" } else { "" });
    let line = PacketLine {
        time_s: rounded(time_s, 1e6),
        from: &frame.from.name,
        to: &frame.to.name,
        via: frame.via.iter().map(via).collect(),
        kind: frame.kind(),
        command: (frame.to.is_marked != frame.from.is_marked).then_some(frame.to.is_marked),
        poll: frame.control & 0x10 != 0,
        send_number: frame.send_number(),
        receive_number: frame.receive_number(),
        pid: frame.pid.map(|pid| format!("{pid:02x}")),
        info: has_info.then_some(text),
        info_hex: is_changed.then(hex),
        position,
    };
    serde_json::to_string(&line).ok()
}
