//! Decodes the bits of a frame to fields with units.
//!
//! The crate adsb reads most fields. Where it would return a number for bits that mean "not available", we
//! check those bits first. Bits are counted from 1, as in the standards (ICAO Annex 10, volume IV, 3.1.2, and
//! ICAO document 9871, appendix A).

use super::Frame;
use adsb::{ADSBMessageKind, CPRFrame, MessageKind, ModeSMessageKind, Parity};
use serde::Serialize;

/// One line of JSON. Fields that the frame does not have, or marks as "not available", are left out.
#[derive(Debug, Default, Serialize)]
pub(super) struct JsonLine {
    /// Start of the preamble, in seconds since the first sample.
    pub time_s: f64,
    /// The frame.
    pub hex: String,
    /// Downlink format.
    pub df: u8,
    /// The aircraft's address, in hexadecimal.
    pub address: String,
    /// Mean power over the frame, dB of full scale.
    pub level_db: f64,
    /// Kind of message.
    pub about: &'static str,
    #[serde(flatten)]
    pub fields: Fields,
}

#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_sign: Option<String>,
    /// Emitter category, such as A3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Four octal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub squawk: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub altitude_ft: Option<i32>,
    /// Parity of the position, even or odd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpr: Option<&'static str>,
    /// Position within a zone, of 131072 steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpr_latitude: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpr_longitude: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latitude_deg: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longitude_deg: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ground_speed_kt: Option<f64>,
    /// Direction of flight over ground, clockwise from north.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub track_deg: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vertical_rate_ft_per_min: Option<i32>,
    /// Source of the vertical rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vertical_rate_source: Option<&'static str>,
}

/// Returns the kind of message, its fields, and its position if it has one.
pub(super) fn read(frame: &Frame) -> (&'static str, Fields, Option<CPRFrame>) {
    let mut fields = Fields::default();
    let mut position = None;
    let about = match frame.downlink_format() {
        0 | 16 => {
            fields.altitude_ft = altitude_13(frame);
            "air-air surveillance"
        }
        4 | 20 => {
            fields.altitude_ft = altitude_13(frame);
            "altitude reply"
        }
        5 | 21 => {
            fields.squawk = squawk(frame);
            "identity reply"
        }
        11 => "all-call reply",
        17 | 18 => squitter(frame, &mut fields, &mut position),
        _ => "unknown",
    };
    (about, fields, position)
}

/// Decodes the 56 bits of an extended squitter, from bit 33 on; the first 5 give its type.
fn squitter(frame: &Frame, fields: &mut Fields, position: &mut Option<CPRFrame>) -> &'static str {
    let about = match bits(frame, 33, 37) {
        0 => "no position",
        1..=4 => "identification",
        5..=8 => "surface position",
        9..=18 => "airborne position",
        19 => "velocity",
        20..=22 => "airborne position, satellite altitude",
        28 => "status",
        29 => "target state",
        31 => "operational status",
        _ => "other",
    };
    let Ok((adsb::Message { kind: MessageKind::ADSBMessage { kind, .. }, .. }, _)) =
        adsb::parse_binary(frame.bytes())
    else {
        return about;
    };
    match kind {
        ADSBMessageKind::AircraftIdentification { emitter_category, callsign } => {
            // Invalid letters are returned as `#`.
            let text = callsign.trim_end();
            fields.call_sign = (!text.is_empty() && !text.contains('#')).then(|| text.to_string());
            let set = ['D', 'C', 'B', 'A'][bits(frame, 33, 37) as usize - 1];
            fields.category = Some(format!("{set}{emitter_category}"));
        }
        ADSBMessageKind::AirbornePosition { altitude, cpr_frame } => {
            // Without the Q bit, the altitude is in steps of 100 ft with a code of its own, which the crate
            // does not read.
            fields.altitude_ft = (bits(frame, 48, 48) == 1).then_some(altitude.into());
            fields.cpr = Some(if cpr_frame.parity == Parity::Even { "even" } else { "odd" });
            fields.cpr_latitude = Some(cpr_frame.position.latitude as u32);
            fields.cpr_longitude = Some(cpr_frame.position.longitude as u32);
            *position = Some(cpr_frame);
        }
        ADSBMessageKind::AirborneVelocity { heading, ground_speed, vertical_rate, .. } => {
            // Speeds are sent plus one, 0 for none.
            if bits(frame, 47, 56) > 0 && bits(frame, 58, 67) > 0 {
                fields.ground_speed_kt = Some(rounded(ground_speed, 10.0));
                fields.track_deg = Some(rounded(heading, 100.0).rem_euclid(360.0));
            }
            fields.vertical_rate_ft_per_min = Some(vertical_rate.into());
            // The crate has these two swapped.
            fields.vertical_rate_source =
                Some(if bits(frame, 68, 68) == 1 { "barometer" } else { "satellites" });
        }
    }
    about
}

/// The altitude in bits 20 to 32 of a reply, if it is in steps of 25 ft, as nearly all are. Metres and the
/// old steps of 100 ft are left out.
fn altitude_13(frame: &Frame) -> Option<i32> {
    let (metres, q) = (bits(frame, 26, 26), bits(frame, 28, 28));
    let steps = bits(frame, 20, 25) << 5 | bits(frame, 27, 27) << 4 | bits(frame, 29, 32);
    (metres == 0 && q == 1).then_some(steps as i32 * 25 - 1000)
}

/// The identity in bits 20 to 32. The crate reads it only from the short reply; the long one begins in the
/// same way.
fn squawk(frame: &Frame) -> Option<String> {
    let mut short = [0; 7];
    short.copy_from_slice(frame.bytes().get(..7)?);
    short[0] = 5 << 3 | short[0] & 7;
    match adsb::parse_binary(&short).ok()?.0.kind {
        MessageKind::ModeSMessage { kind: ModeSMessageKind::SurveillanceIdentity { squawk }, .. } => {
            Some(squawk.to_string())
        }
        _ => None,
    }
}

/// Returns bits `first` to `last` of a frame, counted from 1.
fn bits(frame: &Frame, first: usize, last: usize) -> u32 {
    let bit = |n: usize| u32::from(frame.bytes()[(n - 1) / 8] >> (7 - (n - 1) % 8) & 1);
    (first..=last).fold(0, |value, n| value << 1 | bit(n))
}

/// Rounds to a multiple of `1 / per`.
pub(super) fn rounded(value: f64, per: f64) -> f64 {
    (value * per).round() / per
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: u128, len: usize) -> (&'static str, Fields) {
        let frame = Frame::new(&bytes.to_be_bytes()[16 - len..], 0.0, 0.0).unwrap();
        let (about, fields, _) = read(&frame);
        (about, fields)
    }

    /// Example frames from books on the subject.
    #[test]
    fn known_frames_say_what_they_say() {
        let (about, got) = fields(0x8D4840D6202CC371C32CE0576098, 14);
        assert_eq!(
            (about, got.call_sign.as_deref(), got.category.as_deref()),
            ("identification", Some("KLM1023"), Some("A0"))
        );

        let (about, got) = fields(0x8D40621D58C382D690C8AC2863A7, 14);
        assert_eq!((about, got.altitude_ft, got.cpr), ("airborne position", Some(38_000), Some("even")));
        assert_eq!((got.cpr_latitude, got.cpr_longitude), (Some(93_000), Some(51_372)));

        let (about, got) = fields(0x8D485020994409940838175B284F, 14);
        assert_eq!((about, got.ground_speed_kt, got.track_deg), ("velocity", Some(159.2), Some(182.88)));
        assert_eq!(
            (got.vertical_rate_ft_per_min, got.vertical_rate_source),
            (Some(-832), Some("satellites"))
        );

        let (about, got) = fields(0x2A00516D492B80, 7);
        assert_eq!((about, got.squawk.as_deref()), ("identity reply", Some("0356")));
        let (about, got) = fields(0x0020_0018_38CA_3804, 7);
        assert_eq!((about, got.altitude_ft), ("altitude reply", Some(38_000)));
    }

    #[test]
    fn no_bits_are_too_wild() {
        let mut state = 1u64;
        for _ in 0..200_000 {
            let mut bytes = [0; 14];
            for byte in &mut bytes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8;
            }
            for format in [0, 4, 5, 11, 16, 17, 18, 20, 21, 31] {
                bytes[0] = format << 3 | bytes[0] & 7;
                let len = if format < 16 { 7 } else { 14 };
                read(&Frame::new(&bytes[..len], 0.0, 0.0).unwrap());
            }
        }
    }
}
