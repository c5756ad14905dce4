//! Positions of Mic-E: the latitude is in the address to which the frame is sent.

use super::plain::is_table;
use super::{AprsPosition, comment_of, degrees, digit_91};
use crate::packet::line::rounded;

/// What a character of the address says.
struct Letter {
    /// Digit of the latitude; `None` if the sender has left it out.
    digit: Option<u32>,
    /// The bit that it carries beside: north, 100 degrees more, west.
    bit: bool,
}

fn letter(character: u8) -> Option<Letter> {
    let (digit, bit) = match character {
        b'0'..=b'9' => (Some(character - b'0'), false),
        b'A'..=b'J' => (Some(character - b'A'), false),
        b'K' | b'L' => (None, false),
        b'P'..=b'Y' => (Some(character - b'P'), true),
        b'Z' => (None, true),
        _ => return None,
    };
    Some(Letter { digit: digit.map(u32::from), bit })
}

pub(super) fn read(to: &str, rest: &[u8]) -> Option<AprsPosition> {
    let letters: Vec<_> = to.split('-').next()?.bytes().map(letter).collect::<Option<_>>()?;
    let letters: [Letter; 6] = letters.try_into().ok()?;
    let (place, comment) = rest.split_at_checked(8)?;
    let ambiguity = letters.iter().rev().take_while(|letter| letter.digit.is_none()).count();
    if ambiguity > 4 || letters[..6 - ambiguity].iter().any(|letter| letter.digit.is_none()) {
        return None;
    }
    let digit = |at: usize| letters[at].digit.unwrap_or(0);
    let hidden = [0.0, 0.1, 1.0, 10.0, 60.0][ambiguity] / 2.0;
    let minutes = f64::from(digit(2) * 1000 + digit(3) * 100 + digit(4) * 10 + digit(5)) / 100.0 + hidden;
    let latitude = degrees(digit(0) * 10 + digit(1), minutes);
    let longitude = longitude(place, letters[4].bit, ambiguity)?;
    let (code, table) = (place[6], place[7]);
    if minutes >= 60.0 || !is_table(table) || !code.is_ascii_graphic() {
        return None;
    }
    let mut position = AprsPosition {
        latitude_deg: if letters[3].bit { latitude } else { -latitude },
        longitude_deg: if letters[5].bit { -longitude } else { longitude },
        ambiguity: ambiguity as u8,
        symbol: [table, code].map(char::from).iter().collect(),
        ..AprsPosition::default()
    };
    if let Some((course, speed)) = motion(&place[3..6]) {
        (position.course_deg, position.speed_kt) = (Some(course), Some(speed.into()));
    }
    comment_of(without_altitude(comment, &mut position), &mut position);
    Some(position)
}

/// A number that is sent as a character from 28 on.
fn plus_28(byte: u8) -> Option<u32> {
    u32::from(byte).checked_sub(28).filter(|value| *value < 100)
}

fn longitude(place: &[u8], plus_100: bool, ambiguity: usize) -> Option<f64> {
    let whole = match plus_28(place[0])? + if plus_100 { 100 } else { 0 } {
        degrees @ 180..190 => degrees - 80,
        degrees @ 190..200 => degrees - 190,
        degrees => degrees,
    };
    let minutes = match plus_28(place[1])? {
        minutes @ 60.. => minutes - 60,
        minutes => minutes,
    };
    let hundredths = f64::from(minutes * 100 + plus_28(place[2])?);
    let (step, hidden) =
        [(1.0, 0.0), (10.0, 5.0), (100.0, 50.0), (1000.0, 500.0), (6000.0, 3000.0)][ambiguity];
    let minutes = (hundredths / step).floor() * step + hidden;
    (minutes < 6000.0).then(|| degrees(whole, minutes / 100.0))
}

/// Course in degrees and speed in knots.
fn motion(bytes: &[u8]) -> Option<(u16, u16)> {
    let [tens, both, units] = [plus_28(bytes[0])?, plus_28(bytes[1])?, plus_28(bytes[2])?];
    let speed = tens * 10 + both / 10;
    let course = both % 10 * 100 + units;
    let (speed, course) = (speed % 800, if course >= 400 { course - 400 } else { course });
    (course <= 360).then_some((course as u16, speed as u16))
}

/// Reads an altitude such as `"4T}` near the start of a comment, and returns the comment after it.
fn without_altitude<'d>(comment: &'d [u8], position: &mut AprsPosition) -> &'d [u8] {
    for start in 0..2 {
        let Some([a, b, c, b'}', rest @ ..]) = comment.get(start..) else { continue };
        if let (Some(a), Some(b), Some(c)) = (digit_91(*a), digit_91(*b), digit_91(*c)) {
            let metres = f64::from((a * 91 + b) * 91 + c) - 10_000.0;
            position.altitude_ft = Some(rounded(metres / 0.3048, 1.0));
            return rest;
        }
    }
    comment
}
