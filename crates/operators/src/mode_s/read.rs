//! Reads the bits of a frame: fields with units.

use super::Frame;
use super::bits::{altitude_12, altitude_13, bit, bits, squawk};
use super::cpr::CprReport;
use super::fields::{Fields, rounded};

/// Returns the kind of message, its fields, and its position if it has one.
pub(super) fn read(frame: &Frame) -> (&'static str, Fields, Option<CprReport>) {
    let mut fields = Fields::default();
    let mut position = None;
    let about = match frame.downlink_format() {
        0 | 16 => {
            fields.altitude_ft = altitude_13(bits(frame, 20, 32));
            fields.on_ground = Some(bit(frame, 6));
            "air-air surveillance"
        }
        4 | 20 => {
            fields.altitude_ft = altitude_13(bits(frame, 20, 32));
            flight_status(frame, &mut fields);
            "altitude reply"
        }
        5 | 21 => {
            fields.squawk = Some(squawk(bits(frame, 20, 32)));
            flight_status(frame, &mut fields);
            "identity reply"
        }
        11 => "all-call reply",
        17 | 18 => squitter(frame, &mut fields, &mut position),
        _ => "unknown",
    };
    (about, fields, position)
}

fn flight_status(frame: &Frame, fields: &mut Fields) {
    let status = bits(frame, 6, 8);
    fields.on_ground = match status {
        0 | 2 => Some(false),
        1 | 3 => Some(true),
        _ => None,
    };
    if status <= 5 {
        fields.alert = Some(matches!(status, 2..=4));
        fields.ident = Some(matches!(status, 4 | 5));
    }
}

/// Decodes the 56 bits of an extended squitter, from bit 33 on; the first 5 give its type.
fn squitter(frame: &Frame, fields: &mut Fields, position: &mut Option<CprReport>) -> &'static str {
    match bits(frame, 33, 37) {
        0 => "no position",
        kind @ 1..=4 => {
            identification(frame, kind, fields);
            "identification"
        }
        5..=8 => {
            surface(frame, fields);
            *position = Some(report(frame, true, fields));
            "surface position"
        }
        9..=18 => {
            fields.altitude_ft = altitude_12(bits(frame, 41, 52));
            *position = Some(report(frame, false, fields));
            "airborne position"
        }
        19 => {
            velocity(frame, fields);
            "velocity"
        }
        20..=22 => {
            fields.altitude_m = Some(bits(frame, 41, 52)).filter(|metres| *metres > 0);
            *position = Some(report(frame, false, fields));
            "airborne position, satellite altitude"
        }
        28 => {
            status(frame, fields);
            "status"
        }
        29 => {
            target_state(frame, fields);
            "target state"
        }
        31 => {
            fields.version = Some(bits(frame, 73, 75));
            if bits(frame, 73, 75) > 0 {
                fields.position_accuracy = Some(bits(frame, 77, 80));
                fields.integrity_level = Some(bits(frame, 83, 84));
            }
            "operational status"
        }
        _ => "other",
    }
}

fn identification(frame: &Frame, kind: u32, fields: &mut Fields) {
    let letter = |code: u32| match code {
        1..=26 => Some(char::from(b'A' + code as u8 - 1)),
        32 => Some(' '),
        48..=57 => Some(char::from(b'0' + code as u8 - 48)),
        _ => None,
    };
    let text: Option<String> = (0..8).map(|n| letter(bits(frame, 41 + 6 * n, 46 + 6 * n))).collect();
    fields.call_sign = text.map(|text| text.trim().to_string()).filter(|text| !text.is_empty());
    let set = ['D', 'C', 'B', 'A'][kind as usize - 1];
    fields.category = Some(format!("{set}{}", bits(frame, 38, 40)));
}

fn report(frame: &Frame, is_surface: bool, fields: &mut Fields) -> CprReport {
    let is_odd = bit(frame, 54);
    let (latitude, longitude) = (bits(frame, 55, 71), bits(frame, 72, 88));
    fields.cpr = Some(if is_odd { "odd" } else { "even" });
    (fields.cpr_latitude, fields.cpr_longitude) = (Some(latitude), Some(longitude));
    CprReport { is_odd, is_surface, latitude, longitude }
}

/// Speed and direction on the ground.
fn surface(frame: &Frame, fields: &mut Fields) {
    // First code, speed and step of each range.
    const RANGES: [(u32, f64, f64); 7] = [
        (2, 0.125, 0.125),
        (9, 1.0, 0.25),
        (13, 2.0, 0.5),
        (39, 15.0, 1.0),
        (94, 70.0, 2.0),
        (109, 100.0, 5.0),
        (124, 175.0, 0.0),
    ];
    let code = bits(frame, 38, 44);
    let range = RANGES.iter().rev().find(|(first, ..)| *first <= code);
    fields.ground_speed_kt = match (code, range) {
        (1, _) => Some(0.0),
        (..=124, Some((first, speed, step))) => Some(speed + f64::from(code - first) * step),
        _ => None,
    };
    fields.track_deg = bit(frame, 45).then(|| f64::from(bits(frame, 46, 52)) * 360.0 / 128.0);
    fields.on_ground = Some(true);
}

fn velocity(frame: &Frame, fields: &mut Fields) {
    let kind = bits(frame, 38, 40);
    // Speeds are sent plus one, 0 for none. Above the speed of sound, the steps are four times as large.
    let speed = |first: usize, last: usize| {
        let steps = bits(frame, first, last).checked_sub(1)?;
        Some(f64::from(steps) * if matches!(kind, 2 | 4) { 4.0 } else { 1.0 })
    };
    match kind {
        1 | 2 => {
            if let (Some(east), Some(north)) = (speed(47, 56), speed(58, 67)) {
                let east = if bit(frame, 46) { -east } else { east };
                let north = if bit(frame, 57) { -north } else { north };
                fields.ground_speed_kt = Some(rounded(east.hypot(north), 10.0));
                let track = east.atan2(north).to_degrees();
                fields.track_deg = Some(rounded(track.rem_euclid(360.0), 100.0).rem_euclid(360.0));
            }
        }
        3 | 4 => {
            let heading = || rounded(f64::from(bits(frame, 47, 56)) * 360.0 / 1024.0, 100.0);
            fields.heading_deg = bit(frame, 46).then(heading);
            fields.air_speed_kt = speed(58, 67);
            let kind = if bit(frame, 57) { "true" } else { "indicated" };
            fields.air_speed_kind = fields.air_speed_kt.map(|_| kind);
        }
        _ => return,
    }
    let signed = |sign: usize, steps: i32, step: i32| steps * step * if bit(frame, sign) { -1 } else { 1 };
    if let Some(steps) = bits(frame, 70, 78).checked_sub(1) {
        fields.vertical_rate_ft_per_min = Some(signed(69, steps as i32, 64));
        fields.vertical_rate_source = Some(if bit(frame, 68) { "barometer" } else { "satellites" });
    }
    if let steps @ 1..=126 = bits(frame, 82, 88) {
        fields.satellite_minus_barometer_ft = Some(signed(81, steps as i32 - 1, 25));
    }
}

fn status(frame: &Frame, fields: &mut Fields) {
    const EMERGENCIES: [&str; 7] = [
        "none",
        "general",
        "medical",
        "minimum fuel",
        "no communications",
        "unlawful interference",
        "downed",
    ];
    if bits(frame, 38, 40) == 1 {
        fields.emergency = EMERGENCIES.get(bits(frame, 41, 43) as usize).copied();
        fields.squawk = Some(squawk(bits(frame, 44, 56)));
    }
}

/// Target state of version 2 of the standard; older ones have other bits.
fn target_state(frame: &Frame, fields: &mut Fields) {
    if bits(frame, 38, 39) != 1 {
        return;
    }
    if let Some(steps) = bits(frame, 42, 52).checked_sub(1) {
        fields.selected_altitude_ft = Some(steps * 32);
        let source = if bit(frame, 41) { "flight management" } else { "control panel" };
        fields.selected_altitude_source = Some(source);
    }
    if let Some(steps) = bits(frame, 53, 61).checked_sub(1) {
        fields.barometer_setting_hpa = Some(rounded(800.0 + f64::from(steps) * 0.8, 10.0));
    }
    if bit(frame, 62) {
        fields.selected_heading_deg = Some(rounded(f64::from(bits(frame, 63, 71)) * 180.0 / 256.0, 100.0));
    }
    if bit(frame, 79) {
        let modes = [
            (80, "autopilot"),
            (81, "vertical navigation"),
            (82, "altitude hold"),
            (84, "approach"),
            (86, "lateral navigation"),
        ];
        fields.modes =
            Some(modes.into_iter().filter(|(at, _)| bit(frame, *at)).map(|(_, name)| name).collect());
    }
    fields.position_accuracy = Some(bits(frame, 72, 75));
    fields.integrity_level = Some(bits(frame, 77, 78));
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
