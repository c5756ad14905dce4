//! The position of an aircraft, from two of its messages.

use adsb::{CPRFrame, Parity, Position, cpr};

/// The last positions of the aircraft heard. One message gives the position within a zone of about 600 km; an
/// even and an odd one together give the zone (ICAO document 9871, appendix C). The aircraft must not have
/// flown far in between, so both must arrive within 10 s.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// Sorted by address.
    aircraft: Vec<Aircraft>,
}

#[derive(Debug)]
struct Aircraft {
    address: u32,
    heard_s: f64,
    even: Option<(f64, CPRFrame)>,
    odd: Option<(f64, CPRFrame)>,
}

const APART_S: f64 = 10.0;

/// Most aircraft kept; beyond that, the one that was silent for the longest time is dropped.
const MOST: usize = 4096;

impl Positions {
    /// Takes a position. Returns latitude and longitude in degrees if a recent position of the other parity
    /// is known.
    pub fn take(&mut self, address: u32, time_s: f64, position: CPRFrame) -> Option<(f64, f64)> {
        let at = match self.aircraft.binary_search_by_key(&address, |aircraft| aircraft.address) {
            Ok(at) => at,
            Err(at) => {
                let at = self.make_room(at);
                self.aircraft.insert(at, Aircraft { address, heard_s: time_s, even: None, odd: None });
                at
            }
        };
        let aircraft = &mut self.aircraft[at];
        aircraft.heard_s = time_s;
        let (own, other) = match position.parity {
            Parity::Even => (&mut aircraft.even, &aircraft.odd),
            Parity::Odd => (&mut aircraft.odd, &aircraft.even),
        };
        let (_, position) = own.insert((time_s, position));
        let (other_s, other) = other.as_ref()?;
        if (time_s - other_s).abs() > APART_S {
            return None;
        }
        let Position { latitude, longitude } = cpr::get_position((other, position))?;
        let is_there = latitude.abs() <= 90.0 && longitude.abs() <= 180.0;
        is_there.then_some((latitude, longitude))
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

    fn frame(parity: Parity, latitude: u32, longitude: u32) -> CPRFrame {
        CPRFrame { position: Position { latitude: latitude.into(), longitude: longitude.into() }, parity }
    }

    /// The example of ICAO document 9871 and of many books: 52.2572° N, 3.9194° E.
    #[test]
    fn two_positions_make_one() {
        let mut positions = Positions::default();
        let (even, odd) = (frame(Parity::Even, 93_000, 51_372), frame(Parity::Odd, 74_158, 50_194));
        assert_eq!(positions.take(1, 0.0, odd.clone()), None);
        assert_eq!(positions.take(2, 0.5, even.clone()), None);
        let (latitude, longitude) = positions.take(1, 1.0, even.clone()).unwrap();
        assert!((latitude - 52.2572).abs() < 1e-4 && (longitude - 3.91937).abs() < 1e-4);
        assert_eq!(positions.take(1, 12.0, odd), None, "too late");
        for address in 0..2 * MOST as u32 {
            positions.take(address, 20.0 + f64::from(address), even.clone());
        }
        assert_eq!(positions.aircraft.len(), MOST);
        assert!(positions.aircraft.is_sorted_by_key(|aircraft| aircraft.address));
    }
}
