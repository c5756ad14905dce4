//! The 64-bit word of a slot. No other module knows its bits.

/// The place of an item: lap `lap` (from 1) over the slots, slot `slot`. Counted up, so that no division is
/// needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotPosition {
    pub(super) lap: u64,
    pub(super) slot: u32,
}

/// A slot: the lap of its last change, its cell, and whether that cell has an item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotWord {
    pub(super) lap: u64,
    pub(super) cell: u32,
    pub(super) full: bool,
}

/// The bits of a word: `full` in bit 0, `cell` above it, `lap` in the rest. With one slot the lap has 61
/// bits, with 2^24 slots 38; either way there are more than 2^60 positions.
#[derive(Clone, Copy)]
pub(super) struct WordLayout {
    /// Lowest bit of the lap.
    shift: u32,
    slots: u32,
}

impl WordLayout {
    pub(super) fn new(slots: u32) -> Self {
        WordLayout { shift: 1 + (u32::BITS - (slots + 1).leading_zeros()), slots }
    }

    #[inline(always)]
    pub(super) fn slots(self) -> u64 {
        u64::from(self.slots)
    }

    #[inline(always)]
    pub(super) fn pack(self, word: SlotWord) -> u64 {
        word.lap << self.shift | u64::from(word.cell) << 1 | u64::from(word.full)
    }

    #[inline(always)]
    pub(super) fn unpack(self, bits: u64) -> SlotWord {
        let cell = (bits & ((1 << self.shift) - 1)) >> 1;
        SlotWord { lap: bits >> self.shift, cell: cell as u32, full: bits & 1 == 1 }
    }

    #[inline(always)]
    pub(super) fn next(self, at: SlotPosition) -> SlotPosition {
        if at.slot + 1 == self.slots {
            SlotPosition { lap: at.lap + 1, slot: 0 }
        } else {
            SlotPosition { slot: at.slot + 1, ..at }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_what_was_put_in() {
        for slots in [1, 2, 3, 6, 7, 1000, (1 << 24) - 1, 1 << 24] {
            let layout = WordLayout::new(slots);
            let laps = u64::MAX >> layout.shift;
            assert!((laps + 1).saturating_mul(layout.slots()) >= 1 << 60, "{slots} slots wrap too soon");
            for cell in [0, 1, slots / 2, slots, slots + 1] {
                for lap in [0, 1, laps / 3, laps] {
                    for full in [false, true] {
                        let word = SlotWord { lap, cell, full };
                        assert!(layout.unpack(layout.pack(word)) == word, "{slots} slots, cell {cell}");
                    }
                }
            }
        }
    }
}
