//! Checks of parameters. Every message names the parameter, its value, the limit and the fix.

use onbeat_runtime::Error;
use std::path::Path;

/// Accepts a finite number.
pub(crate) fn finite(name: &str, value: f64) -> Result<(), Error> {
    if value.is_finite() {
        return Ok(());
    }
    Err(Error::new(format!("`{name}` is {value}: it must be a finite number")))
}

/// Accepts a number that is finite as an `f32`.
pub(crate) fn single(name: &str, value: f64) -> Result<(), Error> {
    if (value as f32).is_finite() {
        return Ok(());
    }
    let most = f32::MAX;
    Err(Error::new(format!("`{name}` is {value}: it must be a number from -{most:e} to {most:e}")))
}

/// Accepts a finite number above zero.
pub(crate) fn positive(name: &str, value: f64) -> Result<(), Error> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(Error::new(format!("`{name}` is {value}: it must be a finite number above 0")))
}

/// Accepts a number from `low` to `high`, both included.
pub(crate) fn within(name: &str, value: f64, low: f64, high: f64, fix: &str) -> Result<(), Error> {
    if value >= low && value <= high {
        return Ok(());
    }
    Err(Error::new(format!("`{name}` is {value}: it must be from {low} to {high}; {fix}")))
}

/// Accepts a frequency whose magnitude is below half of the sample rate, both in hertz.
pub(crate) fn below_half(
    name: &str,
    value_hz: f64,
    rate_hz: f64,
    which: &str,
    fix: &str,
) -> Result<(), Error> {
    let half = rate_hz / 2.0;
    if value_hz.abs() < half {
        return Ok(());
    }
    Err(Error::new(format!(
        "`{name}` is {value_hz} Hz: it must be below {half} Hz, half of the {which} rate; {fix}"
    )))
}

/// Accepts a name that a file can have.
pub(crate) fn file_name(name: &str, path: &Path, example: &str) -> Result<(), Error> {
    let text = path.to_string_lossy();
    let wrong = match text.as_ref() {
        "" => "is empty",
        text if text.contains('\0') => "has a 0 byte, which no file name can have",
        _ => return Ok(()),
    };
    Err(Error::new(format!("`{name}`, {text:?}, {wrong}: give a path such as {example:?}")))
}

/// Accepts the sample rate of the input, in hertz.
pub(crate) fn rate(rate_hz: f64) -> Result<(), Error> {
    if rate_hz.is_finite() && rate_hz > 0.0 {
        return Ok(());
    }
    if rate_hz == 0.0 {
        return Err(Error::new(
            "needs a sample rate, and its input has none: give `sample_rate` at the source",
        ));
    }
    Err(Error::new(format!(
        "the sample rate of its input is {rate_hz}: it must be a finite number above 0; correct \
         `sample_rate` at the source"
    )))
}

/// A text of a user or a file in messages: without control characters, and cut where it is long.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 80;
    let more = if text.chars().nth(MOST).is_some() { "…" } else { "" };
    text.chars().take(MOST).flat_map(char::escape_debug).chain(more.chars()).collect()
}
