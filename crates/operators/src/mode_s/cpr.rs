//! Compact position reports: a place within a zone, which becomes a position with a second report, or with a
//! place that is near (ICAO document 9871, appendix C).

use std::f64::consts::PI;

/// Steps of a place within a zone.
const STEPS: f64 = 131_072.0;

/// A place within a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CprReport {
    /// Whether the zones are those of odd reports: 59 from pole to pole and back, and not 60.
    pub is_odd: bool,
    /// On the ground, zones are a quarter as wide.
    pub is_surface: bool,
    pub latitude: u32,
    pub longitude: u32,
}

impl CprReport {
    fn place(&self) -> (f64, f64) {
        (f64::from(self.latitude) / STEPS, f64::from(self.longitude) / STEPS)
    }
}

/// The position of the later one of two reports of different parity; `None` if they do not belong together, or,
/// on the ground, without a place that is near.
pub(super) fn position(
    earlier: &CprReport,
    later: &CprReport,
    near: Option<(f64, f64)>,
) -> Option<(f64, f64)> {
    let (even, odd) = if later.is_odd { (earlier, later) } else { (later, earlier) };
    let ((even_lat, even_lon), (odd_lat, odd_lon)) = (even.place(), odd.place());
    let circle = if later.is_surface { 90.0 } else { 360.0 };
    let near = match (later.is_surface, near) {
        (true, None) => return None,
        (true, near) => near,
        (false, _) => None,
    };
    let zone = (59.0 * even_lat - 60.0 * odd_lat + 0.5).floor();
    let latitude = |zones: f64, place: f64| {
        let latitude = circle / zones * (zone.rem_euclid(zones) + place);
        match near {
            // The same place in the other hemisphere, if that is nearer.
            Some((near, _)) if (latitude - 90.0 - near).abs() < (latitude - near).abs() => latitude - 90.0,
            None if latitude >= 270.0 => latitude - 360.0,
            _ => latitude,
        }
    };
    let (even_lat, odd_lat) = (latitude(60.0, even_lat), latitude(59.0, odd_lat));
    let zones = zones_around(even_lat);
    if even_lat.abs() > 90.0 || odd_lat.abs() > 90.0 || zones_around(odd_lat) != zones {
        return None;
    }
    let (latitude, place, own) = match later.is_odd {
        true => (odd_lat, odd_lon, (zones - 1.0).max(1.0)),
        false => (even_lat, even_lon, zones),
    };
    let zone = (even_lon * (zones - 1.0) - odd_lon * zones + 0.5).floor();
    let longitude = circle / own * (zone.rem_euclid(own) + place);
    let longitude = match near {
        // One of four, a quarter of the globe apart.
        Some((_, near)) => {
            let quarters = ((near - longitude) / 90.0).round();
            longitude + 90.0 * quarters
        }
        None => longitude,
    };
    Some((latitude, (longitude + 180.0).rem_euclid(360.0) - 180.0))
}

/// Number of zones around the globe at a latitude, for even reports.
fn zones_around(latitude: f64) -> f64 {
    let latitude = latitude.abs();
    if latitude > 87.0 {
        return 1.0;
    }
    let side = (1.0 - (PI / 30.0).cos()) / latitude.to_radians().cos().powi(2);
    (2.0 * PI / (1.0 - side).acos()).floor().clamp(2.0, 59.0)
}
