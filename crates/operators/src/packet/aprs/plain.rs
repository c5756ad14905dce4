//! Positions in degrees and minutes: `4916.45N/12311.12W-`.

use super::{AprsPosition, comment_of, degrees, number};

/// Bytes of a position with its symbol.
const LENGTH: usize = 19;

pub(super) fn read(bytes: &[u8]) -> Option<AprsPosition> {
    let (place, mut comment) = bytes.split_at_checked(LENGTH)?;
    let (latitude, ambiguity) = angle(&place[..7], 2)?;
    let (longitude, _) = angle(&place[9..17], 3)?;
    let latitude_deg = match place[7] {
        b'N' | b'n' => latitude,
        b'S' | b's' => -latitude,
        _ => return None,
    };
    let longitude_deg = match place[17] {
        b'E' | b'e' => longitude,
        b'W' | b'w' => -longitude,
        _ => return None,
    };
    let (table, code) = (place[8], place[18]);
    if !is_table(table) || !code.is_ascii_graphic() {
        return None;
    }
    let symbol = [table, code].map(char::from).iter().collect();
    let mut position =
        AprsPosition { latitude_deg, longitude_deg, ambiguity, symbol, ..AprsPosition::default() };
    // In a weather report these are the wind's.
    if code != b'_'
        && let Some((course, speed)) = motion(comment)
    {
        (position.course_deg, position.speed_kt) = (Some(course), Some(speed.into()));
        comment = &comment[7..];
    }
    comment_of(comment, &mut position);
    Some(position)
}

/// Whether this is a table of symbols, or a character over one.
pub(super) fn is_table(table: u8) -> bool {
    matches!(table, b'/' | b'\\') || table.is_ascii_uppercase() || table.is_ascii_digit()
}

/// Degrees of digits such as `4916.45`. Digits replaced by spaces stand for the middle of their range.
fn angle(text: &[u8], whole: usize) -> Option<(f64, u8)> {
    let minutes = [text[whole], text[whole + 1], text[whole + 3], text[whole + 4]];
    let known = minutes.iter().take_while(|digit| **digit != b' ').count();
    if text[whole + 2] != b'.' || minutes[known..].iter().any(|digit| *digit != b' ') {
        return None;
    }
    let step = [60.0, 10.0, 1.0, 0.1, 0.0][known];
    let scale = [0.0, 10.0, 1.0, 0.1, 0.01][known];
    let minutes = f64::from(number(&minutes[..known])?) * scale + step / 2.0;
    (minutes < 60.0).then_some(())?;
    Some((degrees(number(&text[..whole])?, minutes), 4 - known as u8))
}

/// Course and speed: `088/036`.
fn motion(comment: &[u8]) -> Option<(u16, u16)> {
    let text = comment.get(..7).filter(|text| text[3] == b'/')?;
    let course = number(&text[..3]).filter(|course| *course <= 360)?;
    Some((course as u16, number(&text[4..])? as u16))
}
