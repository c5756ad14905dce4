//! A Mode S frame and its parity.

use onbeat_runtime::Message;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A frame as the demodulator found it, without error correction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    bytes: [u8; 14],
    short: bool,
    /// Start of the preamble's first pulse, in seconds since the first sample of the stream. It is known to
    /// about a quarter of a sample, 125 ns.
    pub time_s: f64,
    /// Mean power over the frame, including its gaps, in dB of full scale (a magnitude of 1).
    pub level_db: f32,
}

impl Message for Frame {}
onbeat_link::carry_values!(Frame: "frames");

impl Frame {
    /// Creates a frame of 56 or 112 bits; `None` for other lengths.
    ///
    /// ```
    /// use onbeat_operators::mode_s::Frame;
    /// let frame = Frame::new(&[0x5d, 0x4d, 0x20, 0x23, 0x7a, 0x55, 0xa6], 0.0, 0.0).unwrap();
    /// assert_eq!((frame.downlink_format(), frame.address(), frame.remainder()), (11, 0x4d2023, 0));
    /// assert_eq!(frame.hex(), "5d4d20237a55a6");
    /// ```
    pub fn new(bytes: &[u8], time_s: f64, level_db: f32) -> Option<Self> {
        let mut all = [0; 14];
        all.get_mut(..bytes.len())?.copy_from_slice(bytes);
        matches!(bytes.len(), 7 | 14).then_some(Frame {
            bytes: all,
            short: bytes.len() == 7,
            time_s,
            level_db,
        })
    }

    /// The 7 or 14 bytes of the frame, in the order sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..if self.short { 7 } else { 14 }]
    }

    /// The downlink format (DF): the first 5 bits, which give the type of the frame.
    pub fn downlink_format(&self) -> u8 {
        self.bytes[0] >> 3
    }

    /// The aircraft's 24-bit address: a field of DF 11, 17 and 18, overlaid on the parity in all others.
    pub fn address(&self) -> u32 {
        if matches!(self.downlink_format(), 11 | 17 | 18) {
            u32::from_be_bytes([0, self.bytes[1], self.bytes[2], self.bytes[3]])
        } else {
            self.remainder()
        }
    }

    /// The remainder of the parity check: 0 for a correct DF 17 or 18, an interrogator's code below 128 for a
    /// correct DF 11, the address for all others.
    pub fn remainder(&self) -> u32 {
        remainder(self.bytes())
    }

    /// The bytes in hexadecimal.
    pub fn hex(&self) -> String {
        let mut text = String::with_capacity(28);
        for byte in self.bytes() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

/// The parity polynomial without its first bit: x²⁴ + x²³ + … + 1 (ICAO Annex 10, volume IV, 3.1.2.3.3).
const POLYNOMIAL: u32 = 0xff_f409;

/// Change of the remainder when one byte is shifted in.
const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = (byte as u32) << 16;
        let mut bit = 0;
        while bit < 8 {
            rest = (rest << 1) ^ if rest & 0x80_0000 != 0 { POLYNOMIAL | 0x100_0000 } else { 0 };
            bit += 1;
        }
        table[byte] = rest & 0xff_ffff;
        byte += 1;
    }
    table
}

/// Remainder of a frame: the parity of all but its last three bytes, XORed with those three.
pub(super) fn remainder(bytes: &[u8]) -> u32 {
    let (data, sent) = bytes.split_at(bytes.len() - 3);
    let step = |rest: u32, byte: &u8| {
        let index = (rest >> 16) as u8 ^ byte;
        ((rest << 8) & 0xff_ffff) ^ TABLE[usize::from(index)]
    };
    let parity = data.iter().fold(0, step);
    parity ^ u32::from_be_bytes([0, sent[0], sent[1], sent[2]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remainder by its definition: a division of polynomials, bit by bit.
    fn divided(bytes: &[u8]) -> u32 {
        let mut bits: Vec<bool> =
            bytes.iter().flat_map(|b| (0..8).rev().map(move |n| b >> n & 1 == 1)).collect();
        for at in 0..bits.len() - 24 {
            if bits[at] {
                for n in 0..25 {
                    bits[at + n] ^= (POLYNOMIAL | 0x100_0000) >> (24 - n) & 1 == 1;
                }
            }
        }
        bits[bits.len() - 24..].iter().fold(0, |rest, bit| rest << 1 | u32::from(*bit))
    }

    #[test]
    fn the_remainder_is_that_of_the_division() {
        for seed in 0..200u32 {
            let bytes: Vec<u8> = (0..14u32)
                .map(|n| (seed.wrapping_mul(2_654_435_761).wrapping_add(n * 40_503) >> 7) as u8)
                .collect();
            assert_eq!(remainder(&bytes), divided(&bytes));
            assert_eq!(remainder(&bytes[..7]), divided(&bytes[..7]));
        }
    }
}
