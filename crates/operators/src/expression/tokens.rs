//! Words, numbers and signs of a formula.

use onbeat_runtime::Error;

/// Longest formula in bytes.
const LONGEST: usize = 10_000;

/// A part of a formula.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FormulaToken<'f> {
    Number(f64),
    Name(&'f str),
    Sign(&'static str),
    End,
}

/// Signs, the longer of two with the same begin first.
const SIGNS: [&str; 18] =
    ["<=", ">=", "==", "!=", "&&", "||", "<", ">", "!", "+", "-", "*", "/", "%", "^", "(", ")", ","];

/// Makes an error at a byte of a formula.
pub(super) fn wrong(formula: &str, byte: usize, why: &str) -> Error {
    let place = formula.get(..byte).map_or(0, |before| before.chars().count()) + 1;
    let rest: String = formula.get(byte..).unwrap_or("").chars().take(12).collect();
    if rest.is_empty() {
        return Error::new(format!("`formula` ends after character {}: {why}", place - 1));
    }
    Error::new(format!("`formula`, character {place}, {rest:?}: {why}"))
}

/// Reads the token at a byte, after white space. Returns it with the bytes at which it begins and ends.
pub(super) fn token(formula: &str, from: usize) -> Result<(FormulaToken<'_>, usize, usize), Error> {
    if formula.len() > LONGEST {
        return Err(Error::new(format!(
            "`formula` has {} bytes: it must have {LONGEST} or less",
            formula.len()
        )));
    }
    let rest = formula[from..].trim_start();
    let begin = formula.len() - rest.len();
    let Some(first) = rest.chars().next() else { return Ok((FormulaToken::End, begin, begin)) };
    if first.is_ascii_digit() || first == '.' {
        let length = number_length(rest.as_bytes());
        let number: f64 = rest[..length].parse().map_err(|_| wrong(formula, begin, "not a number"))?;
        if !number.is_finite() {
            return Err(wrong(formula, begin, "the number is too large"));
        }
        return Ok((FormulaToken::Number(number), begin, begin + length));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let length = rest.find(is_end).unwrap_or(rest.len());
        return Ok((FormulaToken::Name(&rest[..length]), begin, begin + length));
    }
    if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
        return Ok((FormulaToken::Sign(sign), begin, begin + sign.len()));
    }
    let why = match first {
        '=' => "compare with `==`",
        '&' => "write `&&`",
        '|' => "write `||`",
        '?' | ':' => "write `if(condition, then, else)`",
        _ => "this sign has no meaning here",
    };
    Err(wrong(formula, begin, why))
}

/// Length of the number that a text begins with: digits, a point and an exponent.
fn number_length(text: &[u8]) -> usize {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = digits(0);
    if text.get(at) == Some(&b'.') {
        at += 1 + digits(at + 1);
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits((at + 1 + sign).min(text.len()));
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    at
}
