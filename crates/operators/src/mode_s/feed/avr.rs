//! The text format of AVR receivers: a line of hexadecimal digits for each frame.

use super::ticks::ticks;
use super::unit::{FeedUnit, Skipped};
use crate::mode_s::Frame;
use std::io::Write;

/// Most digits of a message: counter, level and a long frame.
const DIGITS: usize = 12 + 2 + 28;

/// Reads messages byte by byte: `*` and the frame, `@` or `%` with the counter before it, `<` with counter
/// and level. `;` ends a message.
#[derive(Debug, Default)]
pub(super) struct AvrReader {
    /// First character of the message that has begun.
    begin: Option<u8>,
    digits: Vec<u8>,
}

impl AvrReader {
    /// Takes a byte. Returns a message if it was its last one.
    pub fn take(&mut self, byte: u8, skipped: &mut Skipped) -> Option<FeedUnit> {
        match (byte, self.begin) {
            (b'*' | b':' | b'@' | b'%' | b'<', before) => {
                skipped.cut += u64::from(before.is_some());
                self.digits.clear();
                self.begin = Some(byte);
            }
            (b'\r' | b'\n' | b' ' | b'\t' | 0, None) => {}
            (_, None) => skipped.bytes += 1,
            (b';', Some(begin)) => {
                self.begin = None;
                return Some(self.message(begin));
            }
            (_, Some(_)) => match char::from(byte).to_digit(16) {
                Some(digit) if self.digits.len() < DIGITS => self.digits.push(digit as u8),
                _ => {
                    skipped.cut += 1;
                    self.begin = None;
                }
            },
        }
        None
    }

    /// Whether a message has begun.
    pub fn is_inside(&self) -> bool {
        self.begin.is_some()
    }

    fn message(&self, begin: u8) -> FeedUnit {
        let head = match begin {
            b'@' | b'%' => 12,
            b'<' => 14,
            _ => 0,
        };
        let Some((head, frame)) = self.digits.split_at_checked(head) else { return FeedUnit::Odd };
        let number = |digits: &[u8]| digits.iter().fold(0, |number, digit| number << 4 | u64::from(*digit));
        if frame.len() == 4 {
            return FeedUnit::Other;
        }
        if !frame.len().is_multiple_of(2) {
            return FeedUnit::Odd;
        }
        let mut bytes = [0; 14];
        for (byte, pair) in bytes.iter_mut().zip(frame.chunks(2)) {
            *byte = number(pair) as u8;
        }
        let Some(bytes) = bytes.get(..frame.len() / 2) else { return FeedUnit::Odd };
        let ticks = head.get(..12).map(number);
        FeedUnit::frame(
            bytes,
            ticks,
            head.get(12..).filter(|level| !level.is_empty()).map(|d| number(d) as u8),
        )
    }
}

/// Appends a frame as a line, with or without the counter.
pub(super) fn write(frame: &Frame, with_ticks: bool, out: &mut Vec<u8>) {
    // Writing to a `Vec` cannot fail.
    let _ = match with_ticks {
        true => write!(out, "@{:012X}", ticks(frame.time_s)),
        false => write!(out, "*"),
    };
    for byte in frame.bytes() {
        let _ = write!(out, "{byte:02X}");
    }
    out.extend_from_slice(b";\n");
}
