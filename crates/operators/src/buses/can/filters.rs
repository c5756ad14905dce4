//! Filters of frames, as candump has them.

use crate::check;
use onbeat_os::can::{ERROR_FLAG, EXTENDED_FLAG, INVERTED_FLAG};
use onbeat_runtime::Error;

/// Most filters of a socket (`CAN_RAW_FILTER_MAX`).
const MOST: usize = 512;
/// Digits of an identifier with 29 bits.
const LONG: usize = 8;

/// Reads filters such as `123:7FF`.
pub(super) fn filters(texts: &[String]) -> Result<Vec<(u32, u32)>, Error> {
    if texts.len() > MOST {
        return Err(Error::new(format!("`filters` has {} filters: {MOST} are possible", texts.len())));
    }
    texts.iter().map(|text| filter(text).ok_or_else(|| wrong(text))).collect()
}

fn filter(text: &str) -> Option<(u32, u32)> {
    let at = text.find([':', '~'])?;
    let (id, mask) = (&text[..at], &text[at + 1..]);
    let number = |digits: &str| {
        let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    };
    let mut value = number(id)?;
    if text.as_bytes()[at] == b'~' {
        value |= INVERTED_FLAG;
    } else {
        // The flag means something else in a filter.
        value &= !INVERTED_FLAG;
    }
    if id.len() == LONG {
        value |= EXTENDED_FLAG;
    }
    Some((value, number(mask)? & !ERROR_FLAG))
}

fn wrong(text: &str) -> Error {
    let shown = check::shown(text);
    Error::new(format!(
        "`filters` has `{shown}`: a filter is an identifier and a mask in hexadecimal, such as `123:7FF`, or `123~7FF` \
         for all others"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_those_of_candump() {
        let one = |text: &str| filters(&[text.to_string()]).map(|all| all[0]).map_err(|_| ());
        assert_eq!(one("123:7FF"), Ok((0x123, 0x7ff)));
        assert_eq!(one("12345678:DFFFFFFF"), Ok((0x9234_5678, 0xdfff_ffff)));
        assert_eq!(one("92345678:1FFFFFFF"), Ok((0x9234_5678, 0x1fff_ffff)));
        assert_eq!(one("0~0"), Ok((1 << 29, 0)));
        for text in ["", "123", "123:", ":7FF", "x:7FF", "123:7FFFFFFFF", "+1:7FF", "ö:1"] {
            assert_eq!(one(text), Err(()), "{text}");
        }
    }
}
