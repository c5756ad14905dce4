//! The tuners that an rtl_tcp server can have, and their gains.

/// A tuner chip.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tuner {
    pub name: &'static str,
    /// Its gains in tenths of a decibel, rising, as librtlsdr 0.6 has them.
    pub gains: &'static [i32],
}

const R82XX: &[i32] = &[
    0, 9, 14, 27, 37, 77, 87, 125, 144, 157, 166, 197, 207, 229, 254, 280, 297, 328, 338, 364, 372, 386, 402,
    421, 434, 439, 445, 480, 496,
];

/// By the number in the header, from 1.
const TUNERS: [Tuner; 6] = [
    Tuner { name: "E4000", gains: &[-10, 15, 40, 65, 90, 115, 140, 165, 190, 215, 240, 290, 340, 420] },
    Tuner { name: "FC0012", gains: &[-99, -40, 71, 179, 192] },
    Tuner {
        name: "FC0013",
        gains: &[
            -99, -73, -65, -63, -60, -58, -54, 58, 61, 63, 65, 67, 68, 70, 71, 179, 181, 182, 184, 186, 188,
            191, 197,
        ],
    },
    Tuner { name: "FC2580", gains: &[0] },
    Tuner { name: "R820T", gains: R82XX },
    Tuner { name: "R828D", gains: R82XX },
];

impl Tuner {
    /// Returns the tuner with this number in the header.
    pub fn of(number: u32) -> Option<&'static Tuner> {
        TUNERS.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }

    /// Returns the gain that is nearest, in tenths of a decibel.
    pub fn nearest(&self, tenths: i32) -> i32 {
        self.gains.iter().copied().min_by_key(|gain| gain.abs_diff(tenths)).unwrap_or(tenths)
    }

    /// Lists its gains in decibels.
    pub fn list(&self) -> String {
        let gains: Vec<String> = self.gains.iter().map(|gain| decibels(*gain)).collect();
        gains.join(", ")
    }
}

/// Writes tenths of a decibel as decibels.
pub(super) fn decibels(tenths: i32) -> String {
    (f64::from(tenths) / 10.0).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_rise_and_the_nearest_is_found() {
        assert!(TUNERS.iter().all(|tuner| tuner.gains.is_sorted()));
        let r820t = Tuner::of(5).unwrap();
        assert_eq!((r820t.name, r820t.gains.len(), Tuner::of(1).unwrap().name), ("R820T", 29, "E4000"));
        assert_eq!([-50, 200, 206, 300, 999].map(|gain| r820t.nearest(gain)), [0, 197, 207, 297, 496]);
        assert!(Tuner::of(0).is_none() && Tuner::of(7).is_none() && Tuner::of(u32::MAX).is_none());
    }
}
