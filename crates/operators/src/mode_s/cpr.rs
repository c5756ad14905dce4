//! Compact position reports: a place within a zone, which becomes a position with a second report, or with a
//! place that is near (ICAO document 9871, appendix C).

use std::f64::consts::PI;
use std::sync::LazyLock;

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

/// The position of the later one of two reports of different parity; `None` if they do not belong together,
/// or, on the ground, without a place that is near.
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
    let latitude = |zones: f64, place: f64| circle / zones * (zone.rem_euclid(zones) + place);
    let (mut even_lat, mut odd_lat) = (latitude(60.0, even_lat), latitude(59.0, odd_lat));
    if let Some((near, _)) = near {
        let own = if later.is_odd { odd_lat } else { even_lat };
        if (own - 90.0 - near).abs() < (own - near).abs() {
            // The same place in the other hemisphere is nearer.
            (even_lat, odd_lat) = (even_lat - 90.0, odd_lat - 90.0);
        }
    } else {
        let south = |latitude: f64| if latitude >= 270.0 { latitude - 360.0 } else { latitude };
        (even_lat, odd_lat) = (south(even_lat), south(odd_lat));
    }
    let zones = zones_around(even_lat);
    if zones_around(odd_lat) != zones {
        return None;
    }
    let (latitude, place, own) = match later.is_odd {
        true => (odd_lat, odd_lon, (zones - 1.0).max(1.0)),
        false => (even_lat, even_lon, zones),
    };
    if latitude.abs() > 90.0 {
        return None;
    }
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

/// Latitudes from which on there is one zone less around the globe: 58, 57, and so on down to 2.
static BORDERS: LazyLock<[f64; 57]> = LazyLock::new(|| {
    let side = 1.0 - (PI / 30.0).cos();
    std::array::from_fn(|n| {
        let zones = 59.0 - n as f64;
        (side / (1.0 - (2.0 * PI / zones).cos())).sqrt().acos().to_degrees()
    })
});

/// Number of zones around the globe at a latitude, for even reports.
fn zones_around(latitude: f64) -> f64 {
    let latitude = latitude.abs();
    if latitude > 87.0 {
        return 1.0;
    }
    59.0 - BORDERS.partition_point(|border| *border <= latitude) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(is_surface: bool, places: [(u32, u32); 2]) -> [CprReport; 2] {
        [false, true].map(|is_odd| {
            let (latitude, longitude) = places[usize::from(is_odd)];
            CprReport { is_odd, is_surface, latitude, longitude }
        })
    }

    fn near(found: Option<(f64, f64)>, expected: (f64, f64)) {
        let found = found.unwrap();
        let apart = (found.0 - expected.0).abs().max((found.1 - expected.1).abs());
        assert!(apart < 1e-9, "{found:?} for {expected:?}");
    }

    /// Values of pyModeS 3.6; the whole globe is compared with it in `ci/formats`.
    #[test]
    fn positions_in_the_air() {
        for (places, by_even, by_odd) in [
            (
                [(65536, 1893), (46967, 125_829)],
                (51.0, 19.59998053473395),
                (50.99997827562235, 19.599990844726562),
            ),
            (
                [(65536, 0), (77551, 76022)],
                (-33.0, 151.20000000000002),
                (-32.99999689651747, 151.2000134526467),
            ),
            (
                [(4369, 67684), (4296, 2112)],
                (0.1999969482421875, -179.9000057931674),
                (0.19998841366525422, -179.8999865301724),
            ),
            (
                [(63351, 87381), (31712, 43691)],
                (86.89997863769531, 119.99954223632812),
                (86.89999337923729, 120.00091552734375),
            ),
            ([(120_149, 114_688), (87563, 114_688)], (89.49998474121094, -45.0), (89.49998241359904, -45.0)),
        ] {
            let [even, odd] = reports(false, places);
            near(position(&odd, &even, None), by_even);
            near(position(&even, &odd, None), by_odd);
        }
    }

    #[test]
    fn positions_on_the_ground_are_near_the_receiver() {
        for (places, receiver, expected) in [
            ([(115_343, 116_916), (39147, 110_028)], (51.99, 4.375), (52.320001893124335, 4.730006626674111)),
            ([(48934, 40516), (98362, 82488)], (-33.9, 151.2), (-33.94000295865334, 151.18000030517578)),
            // Over the equator and the date line.
            ([(122_334, 4296), (122_480, 4223)], (0.2, 179.8), (-0.09999420683263338, -179.95000510380186)),
        ] {
            let [even, odd] = reports(true, places);
            near(position(&even, &odd, Some(receiver)), expected);
            assert_eq!(position(&even, &odd, None), None);
        }
    }
}
