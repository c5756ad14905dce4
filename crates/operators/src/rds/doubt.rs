//! Blocks whose check word is right by chance.
//!
//! One of 1024 wrong blocks has a right check word. It differs from the block that was sent in symbols that
//! noise has turned, and these are weak. So a block is taken only if every other block that could have been
//! sent would need strong symbols to be turned.

use super::code::{BLOCK, remainder};

/// Symbols of a block: the first bit is a difference, too.
pub(super) const SYMBOLS: usize = BLOCK + 1;

/// Most symbols by which another block is thought to differ.
const MOST: u32 = 5;

/// Least logarithm of how much likelier a block must be than any other one, in noise with a normal
/// distribution: 22,000 times.
const LIKELIER: f32 = 10.0;

/// Least sum of the symbols by which any other block differs, as a share of the mean symbol, since noise may
/// come in bursts.
const LEAST: f32 = 0.5;

/// The bits that a turned symbol changes, by the number of symbols after it.
pub(super) fn bits_of(symbol: usize) -> u32 {
    (0b11 << symbol >> 1) & ((1 << BLOCK) - 1)
}

/// Sets of symbols, as bits, each of which turns a block into another one with a right check word.
#[derive(Debug)]
pub(super) struct Alternatives(Vec<u32>);

impl Alternatives {
    pub fn new() -> Self {
        let changes: Vec<u32> = (0..SYMBOLS).map(|symbol| remainder(bits_of(symbol))).collect();
        let mut all = Vec::new();
        add(&changes, 0, 0, 0, &mut all);
        Alternatives(all)
    }

    /// Whether another block would explain these symbols nearly as well. Symbols that disagree with the block
    /// are negative. `mean` and `variance` are those of the sizes of the last symbols.
    pub fn is_doubtful(&self, symbols: &[f32; SYMBOLS], mean: f32, variance: f32) -> bool {
        let least = (LEAST * mean).max(LIKELIER / 2.0 * variance / mean);
        let sum = |set: u32| (0..SYMBOLS).filter(|at| set >> at & 1 == 1).map(|at| symbols[at]).sum::<f32>();
        self.0.iter().any(|set| sum(*set) < least)
    }
}

/// Adds the sets that begin with `set`, which changes the remainder by `rest`.
fn add(changes: &[u32], from: usize, set: u32, rest: u32, all: &mut Vec<u32>) {
    if rest == 0 && set != 0 {
        all.push(set);
    }
    if set.count_ones() < MOST {
        for symbol in from..changes.len() {
            add(changes, symbol + 1, set | 1 << symbol, rest ^ changes[symbol], all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_blocks_and_few() {
        let Alternatives(all) = Alternatives::new();
        let changed =
            |set: u32| (0..SYMBOLS).filter(|at| set >> at & 1 == 1).fold(0, |bits, at| bits ^ bits_of(at));
        assert!(all.iter().all(|set| remainder(changed(*set)) == 0 && changed(*set) != 0));
        // As many as there must be on average: one of 1024 sets.
        let sets: u32 = [27, 351, 2_925, 17_550, 80_730].iter().sum();
        assert!((sets / 1024 / 2..sets / 1024 * 2).contains(&(all.len() as u32)), "{}", all.len());
    }

    #[test]
    fn blocks_are_doubtful_where_the_symbols_of_another_one_are_weak() {
        let alternatives = Alternatives::new();
        let with =
            |set: u32, size: f32| std::array::from_fn(|at| if set >> at & 1 == 1 { size } else { 1.0 });
        assert!(!alternatives.is_doubtful(&[1.0; SYMBOLS], 1.0, 0.25));
        for &set in &alternatives.0 {
            let count = set.count_ones() as f32;
            assert!(alternatives.is_doubtful(&with(set, 0.45 / count), 1.0, 0.0));
            assert!(alternatives.is_doubtful(&with(set, 1.2 / count), 1.0, 0.25));
            // One of them was turned back: it speaks against the block.
            let mut symbols = with(set, 0.4);
            symbols[set.trailing_zeros() as usize] = -0.4 * (count - 1.0);
            assert!(alternatives.is_doubtful(&symbols, 1.0, 0.0));
        }
        // No other block differs in these two.
        assert!(!alternatives.is_doubtful(&with(0b11, 0.1), 1.0, 0.1));
    }
}
