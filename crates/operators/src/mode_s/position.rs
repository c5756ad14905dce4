//! The position of an aircraft, from two of its messages.

use super::cpr::{CprReport, position};

/// The last positions of the aircraft heard. One message gives the position within a zone of about 600 km, or
/// a quarter of that on the ground; an even and an odd one together give the zone. The aircraft must not have
/// moved far in between, so both must arrive within 10 s, on the ground within 25 s.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// Latitude and longitude of the receiver in degrees, for positions on the ground.
    pub receiver: Option<(f64, f64)>,
    /// Sorted by address.
    aircraft: Vec<Aircraft>,
}

#[derive(Debug)]
struct Aircraft {
    address: u32,
    heard_s: f64,
    /// The last even and the last odd report, with their times.
    reports: [Option<(f64, CprReport)>; 2],
}

const APART_S: f64 = 10.0;
const SURFACE_APART_S: f64 = 25.0;

/// Most aircraft kept; beyond that, the one that was silent for the longest time is dropped.
const MOST: usize = 4096;

impl Positions {
    /// Takes a position. Returns latitude and longitude in degrees if a recent position of the other parity
    /// is known.
    pub fn take(&mut self, address: u32, time_s: f64, report: CprReport) -> Option<(f64, f64)> {
        let at = match self.aircraft.binary_search_by_key(&address, |aircraft| aircraft.address) {
            Ok(at) => at,
            Err(at) => {
                let at = self.make_room(at);
                self.aircraft.insert(at, Aircraft { address, heard_s: time_s, reports: [None; 2] });
                at
            }
        };
        let aircraft = &mut self.aircraft[at];
        aircraft.heard_s = time_s;
        aircraft.reports[usize::from(report.is_odd)] = Some((time_s, report));
        let (other_s, other) = aircraft.reports[usize::from(!report.is_odd)]?;
        let apart_s = if report.is_surface { SURFACE_APART_S } else { APART_S };
        if (time_s - other_s).abs() > apart_s || other.is_surface != report.is_surface {
            return None;
        }
        position(&other, &report, self.receiver)
    }

    /// Returns the index for a new aircraft that belongs at `at`.
    fn make_room(&mut self, at: usize) -> usize {
        if self.aircraft.len() < MOST {
            return at;
        }
        let by_time = |a: &usize, b: &usize| self.aircraft[*a].heard_s.total_cmp(&self.aircraft[*b].heard_s);
        let oldest = (0..MOST).min_by(by_time).unwrap_or(0);
        self.aircraft.remove(oldest);
        at - usize::from(oldest < at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(is_odd: bool, latitude: u32, longitude: u32) -> CprReport {
        CprReport { is_odd, is_surface: false, latitude, longitude }
    }

    /// The example of ICAO document 9871 and of many books: 52.2572° N, 3.9194° E.
    #[test]
    fn two_positions_make_one() {
        let mut positions = Positions::default();
        let (even, odd) = (report(false, 93_000, 51_372), report(true, 74_158, 50_194));
        assert_eq!(positions.take(1, 0.0, odd), None);
        assert_eq!(positions.take(2, 0.5, even), None);
        let (latitude, longitude) = positions.take(1, 1.0, even).unwrap();
        assert!((latitude - 52.2572).abs() < 1e-4 && (longitude - 3.91937).abs() < 1e-4);
        assert_eq!(positions.take(1, 12.0, odd), None, "too late");
        for address in 0..2 * MOST as u32 {
            positions.take(address, 20.0 + f64::from(address), even);
        }
        assert_eq!(positions.aircraft.len(), MOST);
        assert!(positions.aircraft.is_sorted_by_key(|aircraft| aircraft.address));
    }
}
