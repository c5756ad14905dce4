//! The code of POCSAG: BCH (31, 21) and a bit for even parity.

use crate::symbols::Alternatives;
use std::sync::LazyLock;

/// `x¹⁰ + x⁹ + x⁸ + x⁶ + x⁵ + x³ + 1`.
const POLYNOMIAL: u32 = 0x769;

/// Bits of a word.
pub(super) const WORD: usize = 32;

/// Most bits that are corrected.
const MOST: u32 = 2;

/// Most bits by which another word is thought to differ: no other one differs by fewer.
const NEAREST: u32 = 6;

/// Corrects code words.
#[derive(Debug, Clone)]
pub(super) struct WordCorrector {
    /// For each remainder of the division by the polynomial, the error of up to two bits that leaves it; 0
    /// for others.
    errors: Vec<u32>,
}

/// A code word that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CorrectedWord {
    pub word: u32,
    /// Number of bits that were wrong.
    pub corrected: u32,
}

/// Remainder of the upper 31 bits of a word.
fn remainder(word: u32) -> u32 {
    (10..31).rev().fold(
        word >> 1,
        |rest, bit| if rest >> bit & 1 == 1 { rest ^ POLYNOMIAL << (bit - 10) } else { rest },
    )
}

/// The sets of bits that turn a word into another one. Finding them takes milliseconds.
pub(super) static ALTERNATIVES: LazyLock<Alternatives> = LazyLock::new(|| {
    // Each bit turns the parity, too.
    let changes: Vec<u32> = (0..WORD).map(|bit| remainder(1 << bit) << 1 | 1).collect();
    Alternatives::new(&changes, NEAREST)
});

impl WordCorrector {
    pub fn new() -> Self {
        let mut errors = vec![0; 1024];
        for first in 1..32 {
            errors[remainder(1 << first) as usize] = 1 << first;
            for second in 1..first {
                let error = 1 << first | 1 << second;
                errors[remainder(error) as usize] = error;
            }
        }
        WordCorrector { errors }
    }

    /// Corrects a word with up to two wrong bits. `None` if more are wrong.
    pub fn correct(&self, received: u32) -> Option<CorrectedWord> {
        let rest = remainder(received);
        let error = self.errors[rest as usize];
        if rest != 0 && error == 0 {
            return None;
        }
        let word = received ^ error;
        let word = word ^ (word.count_ones() & 1);
        let corrected = (word ^ received).count_ones();
        (corrected <= MOST).then_some(CorrectedWord { word, corrected })
    }
}
