//! Words whose check bits are right by chance.
//!
//! Noise can turn a word into another one that a receiver would take, or correct. The two differ in symbols
//! that noise has turned, and these are weak. So a word is taken only if every other word that could have
//! been sent would need strong symbols to be turned.

/// Least logarithm of how much likelier a word must be than any other one, in noise with a normal
/// distribution: 22,000 times.
const LIKELIER: f32 = 10.0;

/// Least sum of the symbols by which any other word differs, as a share of the mean symbol, since noise may
/// come in bursts.
const LEAST: f32 = 0.5;

/// Sets of symbols, as bits, each of which turns a word into another one with right check bits.
#[derive(Debug)]
pub(crate) struct Alternatives(Vec<u32>);

impl Alternatives {
    /// All sets of up to `most` symbols. `changes` has what each symbol changes in the check bits.
    pub fn new(changes: &[u32], most: u32) -> Self {
        let mut all = Vec::new();
        add(changes, most, 0, 0, &mut all);
        Alternatives(all)
    }

    /// Whether another word would explain these symbols nearly as well. Symbols that disagree with the word
    /// are negative. `mean` is that of the sizes of the symbols, and `variance` that around it.
    pub fn is_doubtful(&self, symbols: &[f32], mean: f32, variance: f32) -> bool {
        let least = (LEAST * mean).max(LIKELIER / 2.0 * variance / mean);
        self.0.iter().any(|set| members(*set).map(|at| symbols[at]).sum::<f32>() < least)
    }
}

/// The symbols of a set.
fn members(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = set.trailing_zeros() as usize;
        let member = (set != 0).then_some(at);
        set &= set.wrapping_sub(1);
        member
    })
}

/// Adds the sets that begin with `set`, which changes the check bits by `rest`, and have up to `more` others.
fn add(changes: &[u32], more: u32, set: u32, rest: u32, all: &mut Vec<u32>) {
    if rest == 0 && set != 0 {
        all.push(set);
    }
    let next = (32 - set.leading_zeros()) as usize;
    match more {
        0 => (),
        // Only one symbol can be the last.
        1 => all.extend((next..changes.len()).filter(|at| changes[*at] == rest).map(|at| set | 1 << at)),
        _ => {
            for at in next..changes.len() {
                add(changes, more - 1, set | 1 << at, rest ^ changes[at], all);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code with three check bits: the first four symbols are those of the Hamming code (7, 4).
    const HAMMING: [u32; 7] = [0b011, 0b101, 0b110, 0b111, 0b001, 0b010, 0b100];

    #[test]
    fn alternatives_are_all_words_with_that_many_ones() {
        // The words of the code have 0, 3, 4 or 7 ones: 1, 7, 7 and 1 of them.
        for (most, count) in [(2, 0), (3, 7), (4, 14), (6, 14), (7, 15)] {
            let Alternatives(all) = Alternatives::new(&HAMMING, most);
            assert_eq!(all.len(), count, "{most}");
            assert!(all.iter().all(|set| members(*set).fold(0, |rest, at| rest ^ HAMMING[at]) == 0));
        }
    }

    #[test]
    fn words_are_doubtful_where_the_symbols_of_another_one_are_weak() {
        let alternatives = Alternatives::new(&HAMMING, 4);
        let with = |set: u32, size: f32| -> [f32; 7] {
            std::array::from_fn(|at| if set >> at & 1 == 1 { size } else { 1.0 })
        };
        assert!(!alternatives.is_doubtful(&[1.0; 7], 1.0, 0.25));
        for &set in &alternatives.0 {
            let count = set.count_ones() as f32;
            assert!(alternatives.is_doubtful(&with(set, 0.45 / count), 1.0, 0.0));
            assert!(alternatives.is_doubtful(&with(set, 1.2 / count), 1.0, 0.25));
            // One of them was turned back: it speaks against the word.
            let mut symbols = with(set, 0.4);
            symbols[set.trailing_zeros() as usize] = -0.4 * (count - 1.0);
            assert!(alternatives.is_doubtful(&symbols, 1.0, 0.0));
        }
        // No other word differs in these two.
        assert!(!alternatives.is_doubtful(&with(0b11, 0.1), 1.0, 0.1));
    }
}
