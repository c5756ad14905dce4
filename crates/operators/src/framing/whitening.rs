//! What senders add to their bits, so that there are no long runs of equal ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A sequence that is added to the bits of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Whitening {
    /// None.
    #[default]
    None,
    /// That of many radio chips: x⁹ + x⁵ + 1, which begins with nine ones; FF E1 1D 9A ...
    Pn9,
    /// That of spacecraft (CCSDS 131.0-B-4): x⁸ + x⁷ + x⁵ + x³ + 1; FF 48 0E C0 ...
    Ccsds,
}

/// The bytes of a sequence.
#[derive(Debug, Clone)]
pub(super) struct WhiteBytes {
    kind: Whitening,
    register: u16,
}

impl WhiteBytes {
    pub fn new(kind: Whitening) -> Self {
        WhiteBytes { kind, register: 0x1ff }
    }

    /// The next byte, the bit that is sent first at the top.
    pub fn next(&mut self) -> u8 {
        let register = self.register;
        match self.kind {
            Whitening::None => 0,
            Whitening::Pn9 => {
                for _ in 0..8 {
                    let bit = (self.register ^ self.register >> 5) & 1;
                    self.register = self.register >> 1 | bit << 8;
                }
                register as u8
            }
            Whitening::Ccsds => (0..8).fold(0, |byte, _| {
                let r = self.register;
                let bit = (r ^ r >> 3 ^ r >> 5 ^ r >> 7) & 1;
                let out = r & 1;
                self.register = (r & 0xff) >> 1 | bit << 7;
                byte << 1 | out as u8
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{WhiteBytes, Whitening};

    /// Texas Instruments, *DN509: Data Whitening and Random TX Mode*, and CCSDS 131.0-B-4, 10.4.1.
    #[test]
    fn sequences_are_those_of_their_standards() {
        for (kind, expected) in [
            (Whitening::None, [0; 8]),
            (Whitening::Pn9, [0xff, 0xe1, 0x1d, 0x9a, 0xed, 0x85, 0x33, 0x24]),
            (Whitening::Ccsds, [0xff, 0x48, 0x0e, 0xc0, 0x9a, 0x0d, 0x70, 0xbc]),
        ] {
            let mut bytes = WhiteBytes::new(kind);
            assert_eq!(std::array::from_fn::<u8, 8, _>(|_| bytes.next()), expected, "{kind:?}");
        }
    }
}
