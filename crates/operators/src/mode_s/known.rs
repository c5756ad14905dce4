//! The aircraft heard recently.

/// A bounded set of addresses with the time each was last heard.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// Sorted by address; the space is reserved once.
    heard: Vec<(u32, u64)>,
    age: u64,
}

/// More aircraft than one antenna can receive at a time.
const MOST: usize = 4096;

impl Known {
    /// Creates a set in which an address counts as known for `age` samples after it was last heard.
    pub fn new(age: u64) -> Self {
        Known { heard: Vec::with_capacity(MOST), age }
    }

    /// Records that this aircraft was heard at this sample.
    pub fn hear(&mut self, address: u32, now: u64) {
        match self.heard.binary_search_by_key(&address, |(address, _)| *address) {
            Ok(at) => self.heard[at].1 = now,
            Err(mut at) => {
                if self.heard.len() == MOST {
                    // Replace the aircraft that was silent for the longest time.
                    let oldest = (0..MOST).min_by_key(|at| self.heard[*at].1).unwrap_or(0);
                    self.heard.remove(oldest);
                    at -= usize::from(oldest < at);
                }
                self.heard.insert(at, (address, now));
            }
        }
    }

    /// Whether the aircraft was heard recently enough.
    pub fn has(&self, address: u32, now: u64) -> bool {
        let found = self.heard.binary_search_by_key(&address, |(address, _)| *address);
        found.is_ok_and(|at| now - self.heard[at].1 < self.age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_silent_ones_are_forgotten() {
        let mut known = Known::new(1000);
        known.hear(7, 0);
        assert!(known.has(7, 999) && !known.has(7, 1000) && !known.has(8, 0));
        known.hear(7, 900);
        assert!(known.has(7, 1000));
        let all = 0..2 * MOST as u32;
        all.clone().for_each(|address| known.hear(address * 3, 1000 + u64::from(address)));
        let mut young = Known { age: u64::MAX, ..known };
        let kept: Vec<_> = all.filter(|address| young.has(address * 3, 20_000)).collect();
        assert_eq!(kept, (MOST as u32..2 * MOST as u32).collect::<Vec<_>>());
        assert_eq!(young.heard.capacity(), MOST);
        young.hear(0, 0);
        assert!(young.heard.is_sorted());
    }
}
