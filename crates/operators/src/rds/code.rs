//! The code of a block: 16 bits of information, and a check word of 10 bits plus an offset word.

use crate::symbols::Alternatives;

/// Bits of a block.
pub(super) const BLOCK: usize = 26;

/// Symbols of a block: the first bit is a difference, too.
pub(super) const SYMBOLS: usize = BLOCK + 1;

/// Most symbols by which another block is thought to differ.
const MOST: u32 = 5;

/// The generator polynomial, x¹⁰ + x⁸ + x⁷ + x⁵ + x⁴ + x³ + 1.
const GENERATOR: u32 = 0b101_1011_1001;

/// Offset words of the blocks A, B, C and D.
const OFFSETS: [u32; 4] = [0x0fc, 0x198, 0x168, 0x1b4];

/// Offset word of the third block in groups of version B.
const OFFSET_C2: u32 = 0x350;

/// The remainder of a block, divided by the generator. That of a right block is its offset word.
pub(super) fn remainder(block: u32) -> u32 {
    (10..BLOCK).rev().fold(
        block,
        |rest, bit| {
            if rest >> bit & 1 == 1 { rest ^ GENERATOR << (bit - 10) } else { rest }
        },
    )
}

/// Place in a group of the block that has this remainder.
pub(super) fn place_of(remainder: u32) -> Option<usize> {
    if remainder == OFFSET_C2 {
        return Some(2);
    }
    OFFSETS.iter().position(|offset| *offset == remainder)
}

/// Offset words that a block at this place can have.
pub(super) fn offsets_at(place: usize) -> [u32; 2] {
    [OFFSETS[place], if place == 2 { OFFSET_C2 } else { OFFSETS[place] }]
}

/// The bits that a turned symbol changes, by the number of symbols after it.
pub(super) fn bits_of(symbol: usize) -> u32 {
    (0b11 << symbol >> 1) & ((1 << BLOCK) - 1)
}

/// The sets of symbols that turn a block into another one with a right check word.
pub(super) fn alternatives() -> Alternatives {
    let changes: Vec<u32> = (0..SYMBOLS).map(|symbol| remainder(bits_of(symbol))).collect();
    Alternatives::new(&changes, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator matrix of the standard gives the check word of each single bit.
    #[test]
    fn check_words_are_those_of_the_standard() {
        let rows = [
            0b00_0111_0111,
            0b10_1110_0111,
            0b11_1010_1111,
            0b11_0000_1011,
            0b11_0101_1001,
            0b11_0111_0000,
            0b01_1011_1000,
            0b00_1101_1100,
            0b00_0110_1110,
            0b00_0011_0111,
            0b10_1100_0111,
            0b11_1011_1111,
            0b11_0000_0011,
            0b11_0101_1101,
            0b11_0111_0010,
            0b01_1011_1001,
        ];
        for (row, check) in rows.iter().enumerate() {
            assert_eq!(remainder(1 << (25 - row)), *check, "row {row}");
        }
        for place in 0..4 {
            for offset in offsets_at(place) {
                assert_eq!(place_of(remainder(0x5a17 << 10 | remainder(0x5a17 << 10) ^ offset)), Some(place));
            }
        }
    }
}
