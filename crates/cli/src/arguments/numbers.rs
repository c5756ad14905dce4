//! Error messages for invalid numbers. Those of the standard library say what went wrong, but not what to
//! write.

use std::error::Error;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// Returns `text`, which contains the message of `answer`, with that message replaced by the fix.
pub fn in_words(answer: &clap::Error, text: &str) -> String {
    let Some(source) = answer.source() else { return text.to_owned() };
    let fix = if let Some(error) = source.downcast_ref::<ParseIntError>() {
        match error.kind() {
            IntErrorKind::PosOverflow => "it is too large",
            IntErrorKind::NegOverflow => "it is too small",
            _ => "write a whole number: only digits, no sign, decimal point or unit",
        }
    } else if source.is::<ParseFloatError>() {
        "write a number without a unit, e.g. 30 or 0.5"
    } else {
        return text.to_owned();
    };
    text.replace(&source.to_string(), fix)
}
