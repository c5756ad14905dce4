//! A set of operators, by number: two levels of bits, so that picking costs the same for 10 and for 4,096 of them.

/// Numbers below a fixed limit. Adding, removing and finding the highest are a few instructions.
#[derive(Debug)]
pub(crate) struct Ready {
    words: Box<[u64]>,
    /// Bit `w` of word `w / 64` says that `words[w]` is not zero.
    summary: Box<[u64]>,
}

impl Ready {
    pub fn new(limit: usize) -> Self {
        let words = limit.div_ceil(64).max(1);
        Ready { words: vec![0; words].into(), summary: vec![0; words.div_ceil(64)].into() }
    }

    #[inline]
    pub fn set(&mut self, number: u32) {
        let word = number as usize / 64;
        self.words[word] |= 1 << (number % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    #[inline]
    pub fn clear(&mut self, number: u32) {
        let word = number as usize / 64;
        self.words[word] &= !(1 << (number % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
    }

    pub fn contains(&self, number: u32) -> bool {
        self.words[number as usize / 64] & (1 << (number % 64)) != 0
    }

    pub fn is_empty(&self) -> bool {
        self.summary.iter().all(|&word| word == 0)
    }

    /// Removes and returns the highest number: the operator that is furthest down the graph.
    #[inline]
    pub fn take_highest(&mut self) -> Option<u32> {
        for (at, &summary) in self.summary.iter().enumerate().rev() {
            if summary != 0 {
                let word = at * 64 + 63 - summary.leading_zeros() as usize;
                let number = word as u32 * 64 + 63 - self.words[word].leading_zeros();
                self.clear(number);
                return Some(number);
            }
        }
        None
    }

    /// The first number at or after `from`, else the first of all: the next in turn.
    pub fn next_from(&self, from: u32) -> Option<u32> {
        self.first_from(from).or_else(|| self.first_from(0))
    }

    fn first_from(&self, from: u32) -> Option<u32> {
        let mut word = from as usize / 64;
        if word >= self.words.len() {
            return None;
        }
        let here = self.words[word] & (u64::MAX << (from % 64));
        if here != 0 {
            return Some(word as u32 * 64 + here.trailing_zeros());
        }
        word += 1;
        while word < self.words.len() {
            let summary = self.summary[word / 64] & (u64::MAX << (word % 64));
            if summary == 0 {
                word = (word / 64 + 1) * 64;
                continue;
            }
            word = word / 64 * 64 + summary.trailing_zeros() as usize;
            return Some(word as u32 * 64 + self.words[word].trailing_zeros());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Ready;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_plain_set(steps in prop::collection::vec((0u8..4, 0u32..10_000), 0..400)) {
            let mut ready = Ready::new(10_000);
            let mut plain = BTreeSet::new();
            for (what, number) in steps {
                match what {
                    0 => { ready.set(number); plain.insert(number); }
                    1 => { ready.clear(number); plain.remove(&number); }
                    2 => prop_assert_eq!(ready.take_highest(), plain.pop_last()),
                    _ => {
                        let next = plain.range(number..).next().or(plain.first()).copied();
                        prop_assert_eq!(ready.next_from(number), next);
                    }
                }
                prop_assert_eq!(ready.is_empty(), plain.is_empty());
                prop_assert_eq!(ready.contains(number), plain.contains(&number));
            }
        }
    }
}
