//! Compressed positions: `/5L!!<*e7>7P[`.

use super::plain::is_table;
use super::{AprsPosition, comment_of, digit_91};
use crate::packet::line::rounded;

/// Bytes of a position.
const LENGTH: usize = 13;

pub(super) fn read(bytes: &[u8]) -> Option<AprsPosition> {
    let (place, comment) = bytes.split_at_checked(LENGTH)?;
    // Digits over a symbol are written as a to j here.
    let table = match place[0] {
        letter @ b'a'..=b'j' => letter - b'a' + b'0',
        table if is_table(table) && !table.is_ascii_digit() => table,
        _ => return None,
    };
    let code = place[9];
    if !code.is_ascii_graphic() {
        return None;
    }
    let latitude_deg = 90.0 - f64::from(value(&place[1..5])?) / 380_926.0;
    let longitude_deg = -180.0 + f64::from(value(&place[5..9])?) / 190_463.0;
    let mut position = AprsPosition {
        latitude_deg: rounded(latitude_deg, 1e6),
        longitude_deg: rounded(longitude_deg, 1e6),
        symbol: [table, code].map(char::from).iter().collect(),
        ..AprsPosition::default()
    };
    extend(&place[10..], &mut position);
    comment_of(comment, &mut position);
    Some(position)
}

fn value(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, digit| Some(sum * 91 + digit_91(*digit)?))
}

/// Course and speed, or altitude, in two characters and a type.
fn extend(bytes: &[u8], position: &mut AprsPosition) {
    let (Some(first), Some(second), Some(kind)) =
        (digit_91(bytes[0]), digit_91(bytes[1]), digit_91(bytes[2]))
    else {
        return;
    };
    if kind & 0x18 == 0x10 {
        position.altitude_ft = Some(rounded(1.002f64.powf(f64::from(first * 91 + second)), 10.0));
    } else if first < 90 {
        position.course_deg = Some(first as u16 * 4);
        position.speed_kt = Some(rounded(1.08f64.powf(f64::from(second)) - 1.0, 100.0));
    }
}
