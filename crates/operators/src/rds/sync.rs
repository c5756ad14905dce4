//! Blocks and groups in a stream of symbols.

use super::code::{BLOCK, SYMBOLS, alternatives, bits_of, offsets_at, place_of, remainder};
use super::group::{RdsBlock, RdsGroup};
use crate::symbols::Alternatives;

/// Blocks of a group.
const BLOCKS: usize = 4;

/// Bits that are kept: those of four blocks.
const KEPT: usize = BLOCKS * BLOCK;

/// Right ones among four blocks in a row that begin a group. Noise has three in some ten hours.
const BEGIN: usize = 3;

/// Right blocks of the next group that confirm it. Noise does not have them.
const CONFIRM: usize = 2;

/// Wrong blocks in a row after which the synchronisation is lost.
const MOST_WRONG: u32 = 12;

/// Blocks over which the share of wrong ones is taken.
const RECENT: u32 = 40;

/// Fewest blocks of a group that is worth a message.
const LEAST: usize = 2;

/// Largest symbol that may be corrected, as a share of the mean of its block.
const WEAK: f32 = 0.6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SyncState {
    /// Looking for blocks in a row.
    Search,
    /// In a group after a search, which may have been wrong.
    Trial,
    /// In a group.
    Locked,
}

/// A symbol before the differential decoding, and its time.
#[derive(Debug, Clone, Copy, Default)]
struct RdsSymbol {
    value: f32,
    time_s: f64,
    /// Place in a group of the block that ends here, if its check word is right.
    place: Option<usize>,
}

/// Counts of the stream so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SyncCounts {
    pub groups: u64,
    /// Blocks in groups, those of them that were wrong, and those of these that were corrected.
    pub blocks: u64,
    pub wrong: u64,
    pub corrected: u64,
    /// Groups of which fewer than two blocks were right.
    pub lost: u64,
    /// How many times a group was found after a search.
    pub times: u64,
}

/// Finds groups.
#[derive(Debug)]
pub(super) struct GroupSearch {
    can_correct: bool,
    alternatives: Alternatives,
    state: SyncState,
    bits: u32,
    /// The last symbols; the one numbered `n` is at `n % KEPT`.
    symbols: Vec<RdsSymbol>,
    taken: usize,
    /// Bits of the block so far, and its place.
    filled: usize,
    place: usize,
    group: RdsGroup,
    /// The first group after a search, until the next one confirms it.
    waiting: Option<RdsGroup>,
    wrong_in_a_row: u32,
    /// Whether each of the last blocks was wrong, the newest at the right.
    recent: u64,
    pub counts: SyncCounts,
}

impl GroupSearch {
    pub fn new(can_correct: bool) -> Self {
        GroupSearch {
            can_correct,
            alternatives: alternatives(),
            state: SyncState::Search,
            bits: 0,
            symbols: vec![RdsSymbol::default(); KEPT + 1],
            taken: 0,
            filled: 0,
            place: 0,
            group: RdsGroup::default(),
            waiting: None,
            wrong_in_a_row: 0,
            recent: 0,
            counts: SyncCounts::default(),
        }
    }

    /// Whether groups are being received.
    pub fn is_locked(&self) -> bool {
        self.state == SyncState::Locked
    }

    /// The symbol that came `ago` symbols before the newest one.
    fn symbol(&self, ago: usize) -> &RdsSymbol {
        &self.symbols[(self.taken + self.symbols.len() - 1 - ago) % self.symbols.len()]
    }

    /// Takes a symbol and the time of its middle. Calls `found` with each group that is complete.
    pub fn push(&mut self, value: f32, time_s: f64, found: impl FnMut(RdsGroup)) {
        let at = self.taken % self.symbols.len();
        self.taken += 1;
        let bit = (value > 0.0) != (self.symbol(1).value > 0.0);
        self.bits = (self.bits << 1 | u32::from(bit)) & ((1 << BLOCK) - 1);
        self.symbols[at] = RdsSymbol { value, time_s, place: place_of(remainder(self.bits)) };
        if self.state == SyncState::Search {
            self.search();
            return;
        }
        self.filled += 1;
        if self.filled == BLOCK {
            self.end_block(found);
        }
    }

    /// Looks whether the last blocks are those of groups.
    fn search(&mut self) {
        let Some(place) = self.symbol(0).place.filter(|_| self.taken > KEPT) else { return };
        let before = |ago: usize| self.symbol(ago * BLOCK).place == Some((place + BLOCKS - ago) % BLOCKS);
        if (0..BLOCKS).filter(|ago| before(*ago)).count() < BEGIN {
            return;
        }
        // The blocks of this group that have come.
        let mut group = RdsGroup::default();
        for ago in 0..=place {
            let end = self.symbol(ago * BLOCK);
            if before(ago) && !self.is_doubtful(ago * BLOCK, None) {
                group.blocks[place - ago] = Some(RdsBlock { word: self.word(ago * BLOCK), corrected: 0 });
            }
            group.time_s = end.time_s;
        }
        group.time_s = self.symbol((place + 1) * BLOCK - 1).time_s;
        self.group = group;
        self.state = SyncState::Trial;
        (self.filled, self.place, self.wrong_in_a_row, self.recent) = (0, place, 0, 0);
        self.waiting = None;
        self.next_block(|_| ());
    }

    /// The information of the block that ended `ago` symbols before the newest one.
    fn word(&self, ago: usize) -> u16 {
        let bit = |before: usize| {
            u16::from((self.symbol(ago + before).value > 0.0) != (self.symbol(ago + before + 1).value > 0.0))
        };
        (10..BLOCK).rev().fold(0, |word, before| word << 1 | bit(before))
    }

    fn end_block(&mut self, found: impl FnMut(RdsGroup)) {
        if self.place == 0 {
            self.group = RdsGroup { time_s: self.symbol(BLOCK - 1).time_s, ..RdsGroup::default() };
        }
        let block = self.read_block();
        let is_wrong = block.is_none_or(|block| block.corrected > 0);
        self.recent = self.recent << 1 | u64::from(is_wrong);
        self.wrong_in_a_row = if is_wrong { self.wrong_in_a_row + 1 } else { 0 };
        self.counts.blocks += 1;
        self.counts.wrong += u64::from(is_wrong);
        self.counts.corrected += u64::from(is_wrong && block.is_some());
        self.group.blocks[self.place] = block;
        self.next_block(found);
    }

    /// Ends the group if this was its last block.
    fn next_block(&mut self, mut found: impl FnMut(RdsGroup)) {
        self.filled = 0;
        self.place = (self.place + 1) % BLOCKS;
        if self.wrong_in_a_row >= MOST_WRONG {
            self.state = SyncState::Search;
            return;
        }
        if self.place != 0 {
            return;
        }
        let recent = self.recent & ((1 << RECENT) - 1);
        self.group.wrong_share = f64::from(recent.count_ones()) / f64::from(RECENT);
        let right = self.group.blocks.iter().flatten().count();
        match (self.state, self.waiting.take()) {
            (SyncState::Trial, None) => self.waiting = Some(self.group),
            (SyncState::Trial, Some(_)) if right < CONFIRM => self.state = SyncState::Search,
            (_, waiting) => {
                self.counts.times += u64::from(self.state == SyncState::Trial);
                self.state = SyncState::Locked;
                for group in waiting.into_iter().chain([self.group]) {
                    if group.blocks.iter().flatten().count() >= LEAST {
                        self.counts.groups += 1;
                        found(group);
                    } else {
                        self.counts.lost += 1;
                    }
                }
            }
        }
    }

    /// Reads the block that ends with the newest symbol.
    fn read_block(&self) -> Option<RdsBlock> {
        let offsets = offsets_at(self.place);
        let rest = remainder(self.bits);
        let word = (self.bits >> 10) as u16;
        if offsets.contains(&rest) {
            return (!self.is_doubtful(0, None)).then_some(RdsBlock { word, corrected: 0 });
        }
        if !self.can_correct || self.state != SyncState::Locked {
            return None;
        }
        // Which version of the third block there is has been told by the second one.
        let offset = match self.group.blocks[1] {
            _ if self.place != 2 => offsets[0],
            Some(second) => offsets[usize::from(second.word >> 11 & 1)],
            None => return None,
        };
        let weak = self.weak_symbol(rest ^ offset).filter(|weak| !self.is_doubtful(0, Some(*weak)))?;
        let pattern = bits_of(weak);
        let corrected = pattern.count_ones();
        Some(RdsBlock { word: ((self.bits ^ pattern) >> 10) as u16, corrected })
    }

    /// Whether the block that ended `ago` symbols before the newest one, with one symbol turned, may be right
    /// by chance.
    fn is_doubtful(&self, ago: usize, turned: Option<usize>) -> bool {
        let mut symbols: [f32; SYMBOLS] = std::array::from_fn(|at| self.symbol(ago + at).value.abs());
        turned.into_iter().for_each(|at| symbols[at] = -symbols[at]);
        let count = self.symbols.len() as f32;
        let mean = self.symbols.iter().map(|symbol| symbol.value.abs()).sum::<f32>() / count;
        let variance =
            self.symbols.iter().map(|symbol| (symbol.value.abs() - mean).powi(2)).sum::<f32>() / count;
        self.alternatives.is_doubtful(&symbols, mean, variance)
    }

    /// The symbol to turn so that the remainder changes by `rest`: the weakest one, or one of the next two. A
    /// wrong symbol makes two neighbouring bits wrong, or one at an end of the block.
    fn weak_symbol(&self, rest: u32) -> Option<usize> {
        let size = |ago: usize| self.symbol(ago).value.abs();
        let mean = (0..BLOCK).map(size).sum::<f32>() / BLOCK as f32;
        let mut weakest = [(f32::INFINITY, 0); 3];
        for ago in 0..=BLOCK {
            let new = (size(ago), ago);
            if let Some(at) = weakest.iter().position(|old| new.0 < old.0) {
                weakest.copy_within(at..2, at + 1);
                weakest[at] = new;
            }
        }
        let mut candidates = weakest.iter().filter(|(size, _)| *size < WEAK * mean).map(|(_, ago)| *ago);
        candidates.find(|symbol| remainder(bits_of(*symbol)) == rest)
    }
}
