//! Video and pictures, compared with Pillow, SciPy and ffmpeg.
//!
//! `reference.txt` has their values, and `reference.py` made them: `python reference.py > reference.txt`,
//! with Pillow 13.0, SciPy 1.17 and ffmpeg 5.1.
#![forbid(unsafe_code)]

mod automatic;
mod filters;
mod pictures;
mod y4m;

use onbeat_operators::registry;
use onbeat_runtime::testing::{Feed, Seen, Trial};

/// Samples of test pictures, as in `reference.py`.
fn samples(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * i * 7 + i * 13 + (i >> 3) * 29) as u8).collect()
}

/// Bytes of the reference under a name.
fn reference(name: &str) -> Vec<u8> {
    let found =
        include_str!("reference.txt").lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let digits = found.unwrap_or_else(|| panic!("no reference {name}"));
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.as_bytes().chunks(2).map(byte).collect()
}

/// Numbers of the reference under a name.
fn numbers(name: &str) -> Vec<u32> {
    let found =
        include_str!("reference.txt").lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" ["));
    found.unwrap().trim_end_matches(']').split(", ").map(|number| number.parse().unwrap()).collect()
}

/// Sends frames through a kind.
fn filtered(kind: &str, parameters: &str, frames: Vec<([u32; 3], Vec<u8>)>) -> Seen {
    Trial::kind(&registry(), kind, parameters).quantum(64 << 10).feed("in", Feed::frames(frames)).run()
}

/// Largest difference of two results.
fn difference(a: &[u8], b: &[u8]) -> u8 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0)
}
