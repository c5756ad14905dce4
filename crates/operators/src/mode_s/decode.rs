//! Decodes frames to text.

use super::Frame;
use super::fields::{JsonLine, rounded};
use super::position::Positions;
use super::read::read;
use crate::check;
use onbeat_runtime::{Context, Error, Input, Operator, Output, Ports, Step};

/// Decodes frames, each to a line of JSON.
///
/// Every line has `time_s` (seconds since the first sample, to 10 ns), `hex`, `df`, `address`, `level_db` (dB
/// of full scale) and `about`. Further fields depend on the frame; their names contain their units.
///
/// | frames | fields |
/// |---|---|
/// | surveillance replies (DF 0, 4, 5, 16, 20, 21) | `altitude_ft` or `squawk`, `on_ground`, `alert`, `ident` |
/// | identification | `call_sign`, `category` |
/// | positions | `altitude_ft` (barometer) or `altitude_m` (satellites), `cpr`, `cpr_latitude`, `cpr_longitude`; on the ground `ground_speed_kt`, `track_deg` |
/// | velocity | `ground_speed_kt`, `track_deg`, or `air_speed_kt`, `air_speed_kind`, `heading_deg`; `vertical_rate_ft_per_min`, `vertical_rate_source`, `satellite_minus_barometer_ft` |
/// | status | `emergency`, `squawk` |
/// | target state | `selected_altitude_ft`, `selected_altitude_source`, `selected_heading_deg`, `barometer_setting_hpa`, `modes` |
/// | operational status | `version`, `position_accuracy`, `integrity_level` |
///
/// `latitude_deg` and `longitude_deg` are present if an even and an odd position arrived within 10 s from an
/// aircraft in flight. On the ground, they must arrive within 25 s, and the place of the receiver must be
/// given.
#[derive(Default)]
pub struct Decode {
    /// Frames to decode.
    pub input: Input<Frame>,
    /// One line per frame, without a line break.
    pub out: Output<String>,
    positions: Positions,
}

impl Decode {
    /// Sets the place of the receiver in degrees, for positions on the ground: it must be within 45 degrees
    /// of them.
    ///
    /// # Errors
    /// If there is no such place.
    pub fn receiver(mut self, latitude_deg: f64, longitude_deg: f64) -> Result<Self, Error> {
        let fix = "write degrees, north and east above 0";
        check::within("latitude", latitude_deg, -90.0, 90.0, fix)?;
        check::within("longitude", longitude_deg, -180.0, 180.0, fix)?;
        self.positions.receiver = Some((latitude_deg, longitude_deg));
        Ok(self)
    }

    fn line(&mut self, frame: &Frame) -> Result<String, Error> {
        let (about, mut fields, position) = read(frame);
        let found = position.and_then(|p| self.positions.take(frame.address(), frame.time_s, p));
        if let Some((latitude_deg, longitude_deg)) = found {
            // Aircraft send positions to about 5 m, 0.00005°.
            fields.latitude_deg = Some(rounded(latitude_deg, 1e5));
            fields.longitude_deg = Some(rounded(longitude_deg, 1e5));
        }
        let line = JsonLine {
            time_s: rounded(frame.time_s, 1e8),
            hex: frame.hex(),
            df: frame.downlink_format(),
            address: format!("{:06x}", frame.address()),
            level_db: rounded(f64::from(frame.level_db), 10.0),
            about,
            fields,
        };
        serde_json::to_string(&line).map_err(|error| Error::with_source("cannot write a line", error))
    }
}

impl Operator for Decode {
    fn ports(&mut self, p: &mut Ports) {
        p.input("in", &mut self.input);
        p.output("out", &mut self.out);
    }

    fn step(&mut self, cx: &mut Context) -> Result<Step, Error> {
        if let Some(frame) = self.input.pop(cx) {
            let line = self.line(&frame)?;
            self.out.push(cx, line)?;
        }
        Ok(Step::Wait)
    }
}
