//! The bytes of the rtl_tcp protocol.

use super::tuners::Tuner;

/// Bytes of the header.
pub(super) const HEADER: usize = 12;
/// First bytes of the header.
const MAGIC: &[u8] = b"RTL0";

/// A command: its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum TunerCommand {
    /// Centre frequency in hertz.
    Frequency = 0x01,
    /// Samples per second.
    SampleRate = 0x02,
    /// 1: the gain is set by hand. 0: the tuner chooses it.
    GainMode = 0x03,
    /// Gain in tenths of a decibel.
    Gain = 0x04,
    /// Correction of the crystal in parts per million.
    Correction = 0x05,
    /// Automatic gain of the digital part.
    Agc = 0x08,
    /// Supply voltage on the antenna's cable.
    BiasTee = 0x0e,
}

impl TunerCommand {
    /// Returns the five bytes: the number, and the value with its high byte first.
    pub fn bytes(self, value: u32) -> [u8; 5] {
        let [a, b, c, d] = value.to_be_bytes();
        [self as u8, a, b, c, d]
    }
}

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerHeader {
    /// Number of the tuner.
    pub tuner: u32,
    /// Number of its gains.
    pub gains: u32,
}

impl ServerHeader {
    /// Whether these first bytes can begin a header.
    pub fn begins(bytes: &[u8]) -> bool {
        bytes.iter().zip(MAGIC).all(|(byte, expected)| byte == expected)
    }

    /// Reads a whole header.
    pub fn read(bytes: &[u8; HEADER]) -> ServerHeader {
        let number =
            |at: usize| bytes[at..].first_chunk().map_or(0, |bytes: &[u8; 4]| u32::from_be_bytes(*bytes));
        ServerHeader { tuner: number(4), gains: number(8) }
    }

    /// Returns the tuner, if it is known and has as many gains as the server says.
    pub fn known(&self) -> Option<&'static Tuner> {
        Tuner::of(self.tuner).filter(|tuner| tuner.gains.len() == self.gains as usize)
    }
}
