//! Sets of operators by number. They have two levels of bits, so picking costs the same for 10 and for 4,096
//! operators.

/// A set of numbers below a fixed limit. Adding, removing and finding the highest take a few instructions.
#[derive(Debug)]
pub(crate) struct ReadyList {
    words: Box<[u64]>,
    /// Bit `w` says that `words[w]` is not zero. It is stored here, not behind a pointer: nearly all graphs
    /// have fewer than 4,096 operators, so one load tells whether the set is empty.
    summary: u64,
    /// Summaries of the words from 64 on, one for 64 words each.
    more: Box<[u64]>,
}

/// Number of words that [`ReadyList::summary`] covers.
const NEAR: usize = 64;

impl ReadyList {
    pub fn new(limit: usize) -> Self {
        let words = limit.div_ceil(64).max(1);
        let more = words.saturating_sub(NEAR).div_ceil(64);
        ReadyList { words: vec![0; words].into(), summary: 0, more: vec![0; more].into() }
    }

    #[inline]
    pub fn set(&mut self, number: u32) {
        let word = number as usize / 64;
        self.words[word] |= 1 << (number % 64);
        *self.summary_of(word) |= 1 << (word % 64);
    }

    #[inline]
    pub fn clear(&mut self, number: u32) {
        let word = number as usize / 64;
        self.words[word] &= !(1 << (number % 64));
        if self.words[word] == 0 {
            *self.summary_of(word) &= !(1 << (word % 64));
        }
    }

    #[inline]
    fn summary_of(&mut self, word: usize) -> &mut u64 {
        match word.checked_sub(NEAR) {
            None => &mut self.summary,
            Some(word) => &mut self.more[word / 64],
        }
    }

    pub fn contains(&self, number: u32) -> bool {
        self.words[number as usize / 64] & (1 << (number % 64)) != 0
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.summary == 0 && self.more.iter().all(|&word| word == 0)
    }

    /// Whether the set contains this number and no other.
    #[inline]
    pub fn is_only(&self, number: u32) -> bool {
        let ReadyList { words, summary, more } = self;
        let word = number as usize / 64;
        words[word] == 1 << (number % 64)
            && *summary == if word < NEAR { 1 << word } else { 0 }
            && more.iter().map(|word| word.count_ones()).sum::<u32>() == u32::from(word >= NEAR)
    }

    /// Removes and returns the highest number up to `most`: the operator furthest down the graph.
    #[inline]
    pub fn take_highest(&mut self, most: u32) -> Option<u32> {
        if most != u32::MAX {
            return self.take_up_to(most);
        }
        let word = match (self.more.is_empty(), self.summary) {
            (true, 0) => return None,
            (true, summary) => 63 - summary.leading_zeros() as usize,
            (false, _) => self.highest_word()?,
        };
        let number = word as u32 * 64 + 63 - self.words[word].leading_zeros();
        self.clear(number);
        Some(number)
    }

    #[cold]
    fn take_up_to(&mut self, most: u32) -> Option<u32> {
        let number = self.up_to(most)?;
        self.clear(number);
        Some(number)
    }

    /// Returns the highest number up to `most`.
    fn up_to(&self, most: u32) -> Option<u32> {
        let last = (most as usize / 64).min(self.words.len() - 1);
        let cut = |word: usize| match (most as usize).checked_sub(word * 64) {
            Some(above @ 0..63) => self.words[word] & ((2 << above) - 1),
            _ => self.words[word],
        };
        let word = (0..=last).rfind(|&word| cut(word) != 0)?;
        Some(word as u32 * 64 + 63 - cut(word).leading_zeros())
    }

    /// Whether the set contains a number up to `most`.
    #[inline]
    pub fn has(&self, most: u32) -> bool {
        if most == u32::MAX { !self.is_empty() } else { self.up_to(most).is_some() }
    }

    #[cold]
    fn highest_word(&self) -> Option<usize> {
        let far = self.more.iter().rposition(|&summary| summary != 0);
        let (at, summary) = far.map_or((0, self.summary), |at| (at + 1, self.more[at]));
        (summary != 0).then(|| at * 64 + 63 - summary.leading_zeros() as usize)
    }

    /// Returns the first word from `word` on that is not zero.
    fn word_from(&self, word: usize) -> Option<usize> {
        let summaries = std::iter::once(self.summary).chain(self.more.iter().copied());
        let (first, within) = (word / 64, u64::MAX << (word % 64));
        let cut = |(at, summary)| (at, if at == first { summary & within } else { summary });
        let (at, summary) = summaries.enumerate().skip(first).map(cut).find(|&(_, summary)| summary != 0)?;
        Some(at * 64 + summary.trailing_zeros() as usize)
    }
}

/// Sources that want a turn. They get it round robin: each once, by rising number, before any gets another
/// turn.
#[derive(Debug)]
pub(crate) struct TurnList {
    wanted: ReadyList,
    /// Word that the current round has reached.
    word: usize,
    /// Mask of the bits in that word that the round has not reached. It is a mask, not an index, because each
    /// turn depends on the store of the turn before, and a mask keeps that dependency short.
    ahead: u64,
}

impl TurnList {
    pub fn new(limit: usize) -> Self {
        TurnList { wanted: ReadyList::new(limit), word: 0, ahead: u64::MAX }
    }

    #[inline]
    pub fn set(&mut self, number: u32) {
        self.wanted.set(number);
    }

    #[inline]
    pub fn clear(&mut self, number: u32) {
        self.wanted.clear(number);
    }

    pub fn contains(&self, number: u32) -> bool {
        self.wanted.contains(number)
    }

    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Whether this source wants a turn, and no other.
    #[inline]
    pub fn is_only(&self, number: u32) -> bool {
        self.wanted.is_only(number)
    }

    /// Returns the source whose turn is next. It stays in the list until it is cleared.
    #[inline(always)]
    pub fn next(&mut self) -> Option<u32> {
        let mut here = self.wanted.words[self.word] & self.ahead;
        if here == 0 {
            // All sources of this word had their turn.
            if self.wanted.words.len() > 1 {
                self.word = self.wanted.word_from(self.word + 1).or_else(|| self.wanted.word_from(0))?;
            }
            here = self.wanted.words[self.word];
            if here == 0 {
                return None;
            }
        }
        // The bits above the lowest.
        self.ahead = !(here ^ (here - 1));
        Some(self.word as u32 * 64 + here.trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::{ReadyList, TurnList};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn behaves_like_a_plain_set(steps in prop::collection::vec((0u8..4, 0u32..10_000), 0..400)) {
            let mut ready = ReadyList::new(10_000);
            let mut plain = BTreeSet::new();
            for (what, number) in steps {
                match what {
                    0 => { ready.set(number); plain.insert(number); }
                    1 => { ready.clear(number); plain.remove(&number); }
                    2 => prop_assert_eq!(ready.take_highest(u32::MAX), plain.pop_last()),
                    _ => {
                        let highest = plain.range(..=number).next_back().copied();
                        prop_assert_eq!(ready.has(number), highest.is_some());
                        prop_assert_eq!(ready.take_highest(number), highest);
                        highest.map(|highest| plain.remove(&highest));
                    }
                }
                prop_assert_eq!(ready.is_empty(), plain.is_empty());
                prop_assert_eq!(ready.is_only(number), plain.iter().eq([&number]));
                prop_assert_eq!(ready.contains(number), plain.contains(&number));
                let next = plain.range(number / 64 * 64..).next().map(|next| *next as usize / 64);
                prop_assert_eq!(ready.word_from(number as usize / 64), next);
            }
        }

        /// No source gets two turns while another waits for one.
        #[test]
        fn turns_go_round(
            limit in prop_oneof![1u32..70, 1u32..10_000],
            steps in prop::collection::vec((0u8..6, 0u32..10_000), 0..400),
        ) {
            let mut turns = TurnList::new(limit as usize);
            // By number: the sources that had a turn since this one came in or had its own.
            let mut waiting: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
            for (what, number) in steps {
                let number = number % limit;
                match what {
                    0 | 1 => { turns.set(number); waiting.entry(number).or_default(); }
                    2 => { turns.clear(number); waiting.remove(&number); }
                    _ => {
                        let next = turns.next();
                        prop_assert_eq!(next.is_some(), !waiting.is_empty());
                        let Some(next) = next else { continue };
                        prop_assert!(waiting.contains_key(&next), "{}", next);
                        for (&other, had) in waiting.iter_mut().filter(|(other, _)| **other != next) {
                            prop_assert!(had.insert(next), "{} again before {}", next, other);
                        }
                        waiting.insert(next, BTreeSet::new());
                    }
                }
                prop_assert_eq!(turns.is_empty(), waiting.is_empty());
                prop_assert_eq!(turns.is_only(number), waiting.keys().eq([&number]));
            }
        }
    }
}
