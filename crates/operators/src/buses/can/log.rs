//! The log format of candump: `(1436509052.249713) vcan0 044#2A366C2BBA`.

use super::frame::CanFrame;
use onbeat_os::can::ERROR_FLAG;
use std::fmt::Write;

/// Why a line is not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogError {
    /// It is not a line of a log.
    NotLog,
    /// It is a frame that tells of an error on the bus.
    ErrorFrame,
}

/// A line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogLine<'a> {
    pub interface: &'a str,
    /// With its time.
    pub frame: CanFrame,
}

/// Writes a frame as a line, with a time in nanoseconds, of which the line has the microseconds.
pub(super) fn line(interface: &str, time_ns: u64, frame: &CanFrame) -> String {
    let mut text = String::with_capacity(48 + 2 * frame.length());
    let (seconds, micros) = (time_ns / 1_000_000_000, time_ns / 1_000 % 1_000_000);
    // Writing to a string does not fail.
    let _ = write!(text, "({seconds:010}.{micros:06}) {interface} {frame}");
    text
}

/// Reads a line.
pub(super) fn read(line: &str) -> Result<LogLine<'_>, LogError> {
    let mut words = line.split_ascii_whitespace();
    let (Some(time), Some(interface), Some(text)) = (words.next(), words.next(), words.next()) else {
        return Err(LogError::NotLog);
    };
    // Newer versions add the direction: received or sent.
    if !matches!((words.next(), words.next()), (None | Some("R" | "T"), None)) {
        return Err(LogError::NotLog);
    }
    let time_unix_ns = time_ns(time).ok_or(LogError::NotLog)?;
    Ok(LogLine { interface, frame: frame(text)?.received_at(time_unix_ns) })
}

/// Nanoseconds of a time such as `(1436509052.249713)`, with 1 to 9 digits after the point.
fn time_ns(text: &str) -> Option<u64> {
    let (seconds, part) = text.strip_prefix('(')?.strip_suffix(')')?.split_once('.')?;
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(seconds) || !is_number(part) || part.len() > 9 {
        return None;
    }
    let part_ns = part.parse::<u64>().ok()? * 10u64.pow(9 - part.len() as u32);
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part_ns)
}

/// Reads a frame, as cansend takes it: an identifier of 3 or 8 digits, `#`, and data; `#R` for a remote
/// frame, `##` and a digit of flags for CAN FD.
pub(super) fn frame(text: &str) -> Result<CanFrame, LogError> {
    let (id, rest) = text.split_once('#').ok_or(LogError::NotLog)?;
    let extended = match id.len() {
        3 => false,
        8 => true,
        _ => return Err(LogError::NotLog),
    };
    let id = hex(id).ok_or(LogError::NotLog)?;
    if extended && id & ERROR_FLAG != 0 {
        return Err(LogError::ErrorFrame);
    }
    let mut data = [0; 64];
    let found = if let Some(length) = rest.strip_prefix('R') {
        let length = if length.is_empty() { Some(0) } else { hex(length).filter(|_| length.len() == 1) };
        length.and_then(|length| CanFrame::remote(id, extended, length as usize))
    } else if let Some(rest) = rest.strip_prefix('#') {
        let flags = rest.get(..1).and_then(hex);
        let length = rest.get(1..).and_then(|rest| bytes(rest, &mut data));
        flags.zip(length).and_then(|(flags, length)| CanFrame::fd(id, extended, flags as u8, &data[..length]))
    } else {
        // The length code of a frame with 8 bytes can be up to F; that is not kept.
        let rest = rest.split_once('_').map_or(rest, |(rest, _)| rest);
        bytes(rest, &mut data).and_then(|length| CanFrame::classic(id, extended, &data[..length]))
    };
    found.ok_or(LogError::NotLog)
}

fn hex(digits: &str) -> Option<u32> {
    // `from_str_radix` would take a sign.
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// Reads bytes of two digits each, with or without points between them. Returns their number.
fn bytes(text: &str, data: &mut [u8; 64]) -> Option<usize> {
    let (mut rest, mut count) = (text, 0);
    while !rest.is_empty() {
        *data.get_mut(count)? = hex(rest.get(..2)?)? as u8;
        count += 1;
        rest = &rest[2..];
        rest = rest.strip_prefix('.').filter(|rest| !rest.is_empty()).unwrap_or(rest);
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lines that python-can 4.6.1 (`CanutilsLogWriter`) wrote, and what is in them.
    #[test]
    fn lines_of_python_can_are_read_and_written() {
        for (text, id, extended, fd, data) in REFERENCE {
            let found = read(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            let got = (found.frame.id(), found.frame.is_extended(), found.frame.is_fd());
            assert_eq!((got, found.frame.data()), ((*id, *extended, *fd), *data), "{text}");
            let again = line(found.interface, found.frame.time_unix_ns, &found.frame);
            assert_eq!(again, text.strip_suffix(" R").unwrap_or(text), "{text}");
        }
    }

    type Reference = (&'static str, u32, bool, bool, &'static [u8]);
    const REFERENCE: &[Reference] = &include!("log_reference.in");

    #[test]
    fn what_is_not_a_frame_is_refused() {
        for text in [
            "",
            "x",
            "(1.5) can0",
            "(1.5) can0 12#00",
            "(1.5) can0 123#0",
            "(1.5) can0 FFF#00",
            "(x.5) can0 123#",
            "(1.5) can0 123#000102030405060708",
            "(1.5) can0 123##1000000000000000000",
            "(1.5) can0 123##",
            "(1.5) can0 123#R9",
            "(1.5) can0 123#00 X",
            "(1.5) can0 123#+1",
            "(1.1234567890) can0 123#",
            "(99999999999999999999.0) can0 123#",
            "(1.5) can0 1ö#",
            "(1.5) can0 123##1ö",
        ] {
            assert_eq!(read(text), Err(LogError::NotLog), "{text}");
        }
        assert_eq!(read("(1.5) can0 20000004#0001000000000000"), Err(LogError::ErrorFrame));
        assert_eq!(frame("123#11.22.33"), frame("123#112233"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_line_or_not(text in "[(0-9.) a-f#R_]{0,60}|\\PC{0,60}") {
            let _no_panic = read(&text);
        }
    }
}
