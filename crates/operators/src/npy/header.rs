//! The header of an NPY file: a magic number, a version, and a Python dictionary with type, order and shape.

use crate::format::{ArraySample, Coding, Number};
use std::fmt::Write;
use std::io::{self, Read};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longest dictionary, in bytes. By default NumPy reads no more than 10000.
const MOST_BYTES: usize = 64 << 10;
/// Bytes of a written header: room for the largest shape, and a multiple of 64 like NumPy's.
pub(super) const WRITTEN: usize = 192;

/// Contents of a header.
#[derive(Debug, PartialEq)]
pub(crate) struct NpyHeader {
    pub coding: Coding,
    /// Components of a sample: 2 for a complex one.
    pub parts: usize,
    /// Whether the first axis is the fastest in the file, and not the last one.
    pub is_fortran: bool,
    /// Length of each axis.
    pub shape: Vec<u64>,
}

impl NpyHeader {
    /// Reads a header; the samples follow it. The error is for users; the caller adds the file name.
    pub fn read(file: &mut impl Read) -> Result<Self, String> {
        let cut = |error: io::Error| format!("its header cannot be read: {error}");
        let mut begin = [0; 8];
        file.read_exact(&mut begin).map_err(cut)?;
        if begin[..6] != *MAGIC {
            return Err("it is not an NPY file: create it with `numpy.save`".into());
        }
        let bytes = match begin[6] {
            1 => {
                let mut length = [0; 2];
                file.read_exact(&mut length).map_err(cut)?;
                usize::from(u16::from_le_bytes(length))
            }
            2 | 3 => {
                let mut length = [0; 4];
                file.read_exact(&mut length).map_err(cut)?;
                u32::from_le_bytes(length) as usize
            }
            other => return Err(format!("its version is {other}: NPY files have version 1, 2 or 3")),
        };
        if bytes > MOST_BYTES {
            return Err(format!("its header has {bytes} bytes: {MOST_BYTES} is the limit"));
        }
        let mut text = vec![0; bytes];
        file.read_exact(&mut text).map_err(cut)?;
        let text = String::from_utf8(text).map_err(|_| "its header is not text".to_string())?;
        parse(&text)
    }
}

/// Creates a header, [`WRITTEN`] bytes long.
pub(super) fn write<T: ArraySample>(frames: u64, axes: &[u32]) -> Vec<u8> {
    let descr = match (T::IS_BYTE, T::PARTS) {
        (true, _) => "|u1",
        (_, 2) => "<c8",
        _ => "<f4",
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({frames},");
    for length in axes {
        let _ = write!(text, " {length},");
    }
    text.push_str("), }");
    let mut bytes = [MAGIC, &[1, 0][..], &((WRITTEN - 10) as u16).to_le_bytes()].concat();
    bytes.extend(text.as_bytes());
    bytes.resize(WRITTEN - 1, b' ');
    bytes.push(b'\n');
    bytes
}

fn parse(text: &str) -> Result<NpyHeader, String> {
    let mut at = Scan(text.trim());
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    at.expect("{")?;
    while !at.take("}") {
        let key = at.string()?;
        at.expect(":")?;
        match key {
            "descr" if at.sees("[") => {
                return Err(
                    "its samples are structures: save a single field, `numpy.save(name, a[\"field\"])`"
                        .into(),
                );
            }
            "descr" => descr = Some(at.string()?),
            "fortran_order" => fortran = Some(at.boolean()?),
            "shape" => shape = Some(at.tuple()?),
            other => return Err(format!("its header has the unknown key `{other}`")),
        }
        if !at.take(",") && !at.sees("}") {
            return Err(at.odd());
        }
    }
    let (Some(descr), Some(fortran), Some(shape)) = (descr, fortran, shape) else {
        return Err("its header lacks one of `descr`, `fortran_order` and `shape`".into());
    };
    let (coding, parts) = coding(descr)?;
    Ok(NpyHeader { coding, parts, is_fortran: fortran && shape.len() > 1, shape })
}

fn coding(descr: &str) -> Result<(Coding, usize), String> {
    let number = match descr.trim_start_matches(['<', '>', '|', '=']) {
        "f2" => Number::F16,
        "f4" | "c8" => Number::F32,
        "f8" | "c16" => Number::F64,
        "u1" => Number::U8,
        "b1" => Number::Bool,
        "i1" => Number::I8,
        "u2" => Number::U16,
        "i2" => Number::I16,
        "u4" => Number::U32,
        "i4" => Number::I32,
        "u8" => Number::U64,
        "i8" => Number::I64,
        _ => {
            return Err(format!(
                "its samples are `{descr}`, which is not supported: save `a.astype(\"<f4\")`, or \"<c8\" for \
                 complex samples"
            ));
        }
    };
    let coding = Coding::plain(number);
    let coding = if descr.starts_with('>') { coding.high_first() } else { coding };
    Ok((coding, if descr.contains('c') { 2 } else { 1 }))
}

/// The unread part of a dictionary.
struct Scan<'t>(&'t str);

impl<'t> Scan<'t> {
    fn odd(&self) -> String {
        let near: String = self.0.chars().take(20).collect();
        format!("its header cannot be parsed near `{near}`")
    }

    fn sees(&mut self, what: &str) -> bool {
        self.0 = self.0.trim_start();
        self.0.starts_with(what)
    }

    fn take(&mut self, what: &str) -> bool {
        let sees = self.sees(what);
        if sees {
            self.0 = &self.0[what.len()..];
        }
        sees
    }

    fn expect(&mut self, what: &str) -> Result<(), String> {
        if self.take(what) { Ok(()) } else { Err(self.odd()) }
    }

    fn string(&mut self) -> Result<&'t str, String> {
        let Some(quote) = ["'", "\""].into_iter().find(|quote| self.take(quote)) else {
            return Err(self.odd());
        };
        let (text, rest) = self.0.split_once(quote).ok_or_else(|| self.odd())?;
        self.0 = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        if self.take("True") {
            return Ok(true);
        }
        if self.take("False") { Ok(false) } else { Err(self.odd()) }
    }

    fn tuple(&mut self) -> Result<Vec<u64>, String> {
        let mut lengths = Vec::new();
        self.expect("(")?;
        while !self.take(")") {
            self.0 = self.0.trim_start();
            let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
            lengths.push(self.0[..end].parse().map_err(|_| self.odd())?);
            self.0 = &self.0[end..];
            // Suffix of long integers written by Python 2.
            self.take("L");
            if !self.take(",") && !self.sees(")") {
                return Err(self.odd());
            }
        }
        Ok(lengths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    #[test]
    fn what_is_written_is_read() {
        let long = [u32::MAX; 3];
        for (bytes, coding, parts, axes) in [
            (write::<f32>(u64::MAX, &[]), Coding::F32, 1, &[][..]),
            (write::<Complex<f32>>(u64::MAX, &[5]), Coding::F32, 2, &[5]),
            (write::<u8>(u64::MAX, &long), Coding::plain(Number::U8), 1, &long),
        ] {
            assert_eq!(bytes.len(), WRITTEN);
            let header = NpyHeader::read(&mut &bytes[..]).unwrap();
            assert_eq!((header.coding, header.parts), (coding, parts));
            assert_eq!(header.shape[0], u64::MAX);
            assert!(header.shape[1..].iter().eq(&axes.iter().map(|&n| u64::from(n)).collect::<Vec<_>>()));
        }
    }

    #[test]
    fn dictionaries_are_read_however_they_are_spaced() {
        for text in [
            "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 4), }   \n",
            "{\"shape\":(3L,4L),\"descr\":\"<i2\",\"fortran_order\":False}",
        ] {
            let header = parse(text).unwrap();
            assert_eq!((header.coding, header.shape), (Coding::plain(Number::I16), vec![3, 4]), "{text}");
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let with = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}")
        };
        for (text, expected) in [
            (with("'<U8'", "False", "(3,)"), "`<U8`, which is not supported"),
            (with("[('a', '<f4')]", "False", "(3,)"), "structures"),
            (with("'<f4'", "Perhaps", "(3,)"), "near `Perhaps"),
            (with("'<f4'", "False", "(-3,)"), "near `-3"),
            (with("'<f4'", "False", "(99999999999999999999,)"), "near `9999"),
            (with("'<f4'", "False", "(3"), "cannot be parsed"),
            ("{'descr': '<f4'}".into(), "lacks one of"),
            ("{'colour': 1}".into(), "`colour`"),
            (String::new(), "cannot be parsed"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
