//! Taps of a filter from a text or NumPy file, or from a list.

use super::design::MOST_TAPS;
use crate::format::{open, read_text};
use crate::npy::NpyHeader;
use num_complex::Complex;
use onbeat_runtime::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::Path;

/// A tap in a list.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a tap is a number, or `[real part, imaginary part]`")]
pub(super) enum ListedTap {
    /// A real tap.
    Real(f64),
    /// Real and imaginary part.
    Complex([f64; 2]),
}

impl From<ListedTap> for Complex<f64> {
    fn from(tap: ListedTap) -> Self {
        match tap {
            ListedTap::Real(re) => Complex::new(re, 0.0),
            ListedTap::Complex([re, im]) => Complex::new(re, im),
        }
    }
}

/// Accepts 1 to 16383 finite taps.
pub(super) fn check(taps: &[Complex<f64>], can_be_complex: bool) -> Result<(), Error> {
    if taps.is_empty() || taps.len() > MOST_TAPS {
        return Err(Error::new(format!(
            "`taps` has {} values: it must have from 1 to {MOST_TAPS}",
            taps.len()
        )));
    }
    for (at, tap) in taps.iter().enumerate() {
        // The filter computes with 32 bits.
        if [tap.re, tap.im].iter().any(|part| !(*part as f32).is_finite()) {
            return Err(Error::new(format!(
                "`taps[{at}]` is {tap}: it must be a finite number below 3.4e38"
            )));
        }
        if tap.im != 0.0 && !can_be_complex {
            return Err(Error::new(format!(
                "`taps[{at}]` is {tap}, and the samples are real: give real taps, or use `fir.taps`"
            )));
        }
    }
    Ok(())
}

/// Reads taps from a file: NPY, or text.
pub(super) fn read(path: &Path) -> Result<Vec<Complex<f64>>, Error> {
    let wrong = |text: String| Error::new(format!("{}: {text}", path.display()));
    let mut begin = [0; 6];
    let is_npy = open(path)?.0.read_exact(&mut begin).is_ok() && begin == *b"\x93NUMPY";
    let taps = if is_npy { read_array(path)? } else { parse(&read_text(path)?).map_err(wrong)? };
    if taps.is_empty() {
        return Err(wrong("there is no number in it: give a tap per line".into()));
    }
    Ok(taps)
}

fn read_array(path: &Path) -> Result<Vec<Complex<f64>>, Error> {
    let wrong = |text: String| Error::new(format!("{}: {text}", path.display()));
    let (mut file, _, _use) = open(path)?;
    let header = NpyHeader::read(&mut file).map_err(wrong)?;
    let &[count] = &header.shape[..] else {
        return Err(wrong(format!("its shape is {:?}: taps have one axis; save `a.ravel()`", header.shape)));
    };
    if count > MOST_TAPS as u64 {
        return Err(wrong(format!("it has {count} taps: {MOST_TAPS} is the limit; is it the right file?")));
    }
    let numbers = count as usize * header.parts;
    let mut bytes = vec![0; numbers * header.coding.number.bytes()];
    file.read_exact(&mut bytes).map_err(|error| wrong(format!("its taps cannot be read: {error}")))?;
    let mut values = vec![0.0; numbers];
    header.coding.unpack(&bytes, &mut values);
    let tap = |parts: &[f32]| Complex::new(parts[0].into(), parts.get(1).copied().unwrap_or(0.0).into());
    Ok(values.chunks(header.parts).map(tap).collect())
}

/// Parses numbers between white space, commas and semicolons; `#` begins a comment.
fn parse(text: &str) -> Result<Vec<Complex<f64>>, String> {
    let mut taps = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("");
        let words = line.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
        for word in words.filter(|word| !word.is_empty()) {
            let tap = number(word).ok_or_else(|| {
                let word: String = word.chars().take(40).flat_map(char::escape_default).collect();
                format!("line {}: `{word}` is not a number like 0.25, 1e-3 or 0.5-0.25j", at + 1)
            })?;
            if taps.len() == MOST_TAPS {
                return Err(format!("it has more than {MOST_TAPS} taps: is it the right file?"));
            }
            taps.push(tap);
        }
    }
    Ok(taps)
}

/// Parses a real number, or a complex one as NumPy writes it.
fn number(word: &str) -> Option<Complex<f64>> {
    let word = word.strip_prefix('(').and_then(|word| word.strip_suffix(')')).unwrap_or(word);
    let Some(parts) = word.strip_suffix(['j', 'i']) else {
        return word.parse().ok().map(|re| Complex::new(re, 0.0));
    };
    // The sign of the imaginary part is the last one that does not belong to an exponent.
    let bytes = parts.as_bytes();
    let is_sign = |at: &usize| matches!(bytes[*at], b'+' | b'-') && !matches!(bytes[at - 1], b'e' | b'E');
    let (re, im) = parts.split_at((1..bytes.len()).rev().find(is_sign).unwrap_or(0));
    // NumPy writes `1+-2j` for some formats.
    let re = re.strip_suffix('+').filter(|_| im.starts_with('-')).unwrap_or(re);
    let re = if re.is_empty() { 0.0 } else { re.parse().ok()? };
    Some(Complex::new(re, im.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_numpy_writes_them() {
        for (word, re, im) in [
            ("0.25", 0.25, 0.0),
            ("-1e-3", -1e-3, 0.0),
            ("(1.5e+00-2.5e-01j)", 1.5, -0.25),
            ("1e-2+3E+1j", 0.01, 30.0),
            ("2j", 0.0, 2.0),
            ("-2i", 0.0, -2.0),
            ("1+-2j", 1.0, -2.0),
        ] {
            assert_eq!(number(word), Some(Complex::new(re, im)), "{word}");
        }
        for word in ["", "j", "x", "1+j2", "(1", "1e", "+", "0x10", "é", "1é+2j", "--1"] {
            assert_eq!(number(word), None, "{word}");
        }
    }

    #[test]
    fn texts_are_read_by_word() {
        let taps = parse("# a filter\n0.25, 0.5;0.25\n\n 1e-3\t2 # and more\n").unwrap();
        assert_eq!(taps.iter().map(|tap| tap.re).collect::<Vec<_>>(), [0.25, 0.5, 0.25, 1e-3, 2.0]);
        let error = parse("1\n2, two").unwrap_err();
        assert!(error.starts_with("line 2: `two` is not a number"), "{error}");
        assert!(parse(&"1 ".repeat(20_000)).unwrap_err().contains("more than 16383"));
    }
}
