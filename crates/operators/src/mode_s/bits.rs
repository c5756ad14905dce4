//! Bits of a frame, and the codes that several kinds of frames share.
//!
//! Bits are counted from 1, as in the standards (ICAO Annex 10, volume IV, 3.1.2, and ICAO document 9871,
//! appendix A).

use super::Frame;

/// Returns bits `first` to `last` of a frame.
pub(super) fn bits(frame: &Frame, first: usize, last: usize) -> u32 {
    let bit = |n: usize| u32::from(frame.bytes()[(n - 1) / 8] >> (7 - (n - 1) % 8) & 1);
    (first..=last).fold(0, |value, n| value << 1 | bit(n))
}

/// Whether a bit is set.
pub(super) fn bit(frame: &Frame, at: usize) -> bool {
    bits(frame, at, at) == 1
}

/// The altitude of a code of 13 bits in feet; `None` if there is none, it is in metres, for which the
/// standard has no code yet, or the code is not valid.
pub(super) fn altitude_13(code: u32) -> Option<i32> {
    let (metres, q) = (code >> 6 & 1, code >> 4 & 1);
    if code == 0 || metres == 1 {
        return None;
    }
    if q == 1 {
        let steps = code >> 7 << 5 | (code >> 5 & 1) << 4 | code & 15;
        return Some(steps as i32 * 25 - 1000);
    }
    hundreds(code)
}

/// The altitude of a code of 12 bits, which is that of 13 bits without the one for metres.
pub(super) fn altitude_12(code: u32) -> Option<i32> {
    altitude_13(code >> 6 << 7 | code & 63)
}

/// The old code in steps of 100 ft: two Gray codes, of 500 ft and of 100 ft.
fn hundreds(code: u32) -> Option<i32> {
    // In the order of the code: C1 A1 C2 A2 C4 A4 - B1 - B2 D2 B4 D4.
    let at = |n: u32| code >> (12 - n) & 1;
    let order = [10, 12, 1, 3, 5, 7, 9, 11];
    let five = of_gray(order.iter().fold(0, |value, n| value << 1 | at(*n)));
    let one = match of_gray(at(0) << 2 | at(2) << 1 | at(4)) {
        0 | 5 | 6 => return None,
        7 => 5,
        one => one,
    };
    let one = if five % 2 == 1 { 6 - one } else { one };
    Some((five * 500 + one * 100) as i32 - 1300)
}

/// The number of a Gray code.
fn of_gray(code: u32) -> u32 {
    (0..8).fold(0, |number, shift| number ^ code >> shift)
}

/// The identity code of 13 bits as four octal digits.
pub(super) fn squawk(code: u32) -> String {
    // In the order of the code: C1 A1 C2 A2 C4 A4 - B1 D1 B2 D2 B4 D4.
    let at = |n: u32| code >> (12 - n) & 1;
    let digit = |four: u32, two: u32, one: u32| at(four) << 2 | at(two) << 1 | at(one);
    format!("{}{}{}{}", digit(5, 3, 1), digit(11, 9, 7), digit(4, 2, 0), digit(12, 10, 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every altitude in steps of 100 ft has one code, and neighbours differ in one bit.
    #[test]
    fn the_old_code_is_a_gray_code() {
        let mut codes: Vec<(i32, u32)> = (0..1 << 13)
            // D1 is the bit that says "25 ft", and is always 0.
            .filter(|code| code & (1 << 6 | 1 << 4) == 0)
            .filter_map(|code| Some((altitude_13(code)?, code)))
            .collect();
        codes.sort_unstable();
        let altitudes: Vec<i32> = codes.iter().map(|(altitude, _)| *altitude).collect();
        assert_eq!(altitudes, (-12..=1267).map(|n| n * 100).collect::<Vec<_>>());
        for pair in codes.windows(2) {
            assert_eq!((pair[0].1 ^ pair[1].1).count_ones(), 1, "{pair:?}");
        }
    }
}
