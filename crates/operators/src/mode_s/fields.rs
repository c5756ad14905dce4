//! The line of JSON that a frame becomes.

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

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        #[derive(Debug, Default, PartialEq, Serialize)]
        pub(super) struct Fields {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$kind>,)*
        }
    };
}

fields! {
    call_sign: String,
    /// Emitter category, such as A3.
    category: String,
    /// Four octal digits.
    squawk: String,
    on_ground: bool,
    /// The pilot has changed the identity code, or set one of an emergency.
    alert: bool,
    /// The pilot has pressed "ident".
    ident: bool,
    emergency: &'static str,
    /// Of the barometer at standard pressure.
    altitude_ft: i32,
    /// Of satellites, above the ellipsoid.
    altitude_m: u32,
    /// Parity of the position, even or odd.
    cpr: &'static str,
    /// Position within a zone, of 131072 steps.
    cpr_latitude: u32,
    cpr_longitude: u32,
    latitude_deg: f64,
    longitude_deg: f64,
    ground_speed_kt: f64,
    /// Direction of motion over ground, clockwise from north.
    track_deg: f64,
    air_speed_kt: f64,
    /// True or indicated.
    air_speed_kind: &'static str,
    /// Where the nose points, clockwise from north.
    heading_deg: f64,
    vertical_rate_ft_per_min: i32,
    /// Source of the vertical rate.
    vertical_rate_source: &'static str,
    /// By how much the altitude of satellites is above that of the barometer.
    satellite_minus_barometer_ft: i32,
    selected_altitude_ft: u32,
    selected_altitude_source: &'static str,
    selected_heading_deg: f64,
    barometer_setting_hpa: f64,
    /// Modes of the autopilot that are on.
    modes: Vec<&'static str>,
    /// Version of the standard: 0, 1 or 2.
    version: u32,
    /// Category of the position's accuracy (NACp).
    position_accuracy: u32,
    /// Source integrity level (SIL).
    integrity_level: u32,
}

/// Rounds to a multiple of `1 / per`.
pub(super) fn rounded(value: f64, per: f64) -> f64 {
    (value * per).round() / per
}
