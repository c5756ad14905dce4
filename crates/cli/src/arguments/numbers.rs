//! Numbers that are none: what the standard library says of them tells a programmer what went wrong, and nobody what to write.

use std::error::Error;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// `text`, which shows `answer`, with the fix in the place of that.
pub fn in_words(answer: &clap::Error, text: &str) -> String {
    let Some(source) = answer.source() else { return text.to_owned() };
    let fix = if let Some(error) = source.downcast_ref::<ParseIntError>() {
        match error.kind() {
            IntErrorKind::PosOverflow => "it is too large",
            IntErrorKind::NegOverflow => "it is below what can be counted",
            _ => "write a whole number: digits alone, without sign, point and unit",
        }
    } else if source.is::<ParseFloatError>() {
        "write a number, such as 30 or 0.5, without unit"
    } else {
        return text.to_owned();
    };
    text.replace(&source.to_string(), fix)
}
