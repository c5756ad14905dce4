//! Batches in a stream of symbols: a sync word and sixteen code words.

use super::bch::{ALTERNATIVES, CorrectedWord, WORD, WordCorrector};
use super::message::{IDLE, PageAssembly, PageCoding, TimedLine};
use std::collections::VecDeque;

/// The word at which a batch begins.
const SYNC: u32 = 0x7cd2_15d8;

/// Wrong bits of a sync word that is searched.
const MOST_WRONG: u32 = 2;

/// Wrong bits of a sync word where one must be.
const MOST_WRONG_LATER: u32 = 4;

/// Symbols of the words of a batch.
const BATCH: usize = 512;

/// Wrong bits up to which a word is taken for the idle word. There is one in most gaps, so it is likelier
/// than another word that would have two wrong bits.
const MOST_WRONG_IDLE: u32 = 4;

/// Wrong bits up to which a word that would be lost is taken for the idle word. One of 3700 others looks so.
const MOST_WRONG_IDLE_OR_LOST: u32 = 6;

/// How much the words of a first batch must tell, in bits; see [`evidence`].
const EVIDENCE: i32 = 16;

/// What a sync word tells: the level between 0 and 1, and which of them is higher.
#[derive(Debug, Clone, Copy, Default)]
struct SyncLevels {
    middle: f32,
    /// From the middle to either of them.
    swing: f32,
    inverted: bool,
}

/// A symbol and its time.
#[derive(Debug, Clone, Copy, Default)]
struct TimedSymbol {
    value: f32,
    time_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchState {
    /// Looking for a sync word.
    Search,
    /// Taking the words of a batch that may not be one.
    First,
    /// Taking the words of a batch after another one.
    Later,
    /// Taking the sync word between two batches.
    Between,
}

/// Finds batches, and the messages in them.
#[derive(Debug)]
pub(super) struct BatchSearch {
    corrector: WordCorrector,
    pages: PageAssembly,
    state: BatchState,
    /// Signs of the last symbols.
    signs: u32,
    /// The last symbols of a sync word, or those of a batch.
    symbols: VecDeque<TimedSymbol>,
    levels: SyncLevels,
    /// Wrong bits of the sync word of a first batch.
    wrong: u32,
    pub batches: u64,
    /// Words with too many errors or weak symbols, in batches.
    pub lost: u64,
}

impl BatchSearch {
    pub fn new(baud: u32, coding: PageCoding) -> Self {
        BatchSearch {
            corrector: WordCorrector::new(),
            pages: PageAssembly::new(baud, coding),
            state: BatchState::Search,
            signs: 0,
            symbols: VecDeque::with_capacity(BATCH + WORD),
            levels: SyncLevels::default(),
            wrong: 0,
            batches: 0,
            lost: 0,
        }
    }

    /// Words of messages whose address was lost.
    pub fn orphans(&self) -> u64 {
        self.pages.orphans
    }

    /// Takes a symbol, whose mean is removed, and its time. Calls `found` with each message that is complete.
    pub fn push(&mut self, value: f32, time_s: f64, found: impl FnMut(TimedLine)) {
        // A 1 is the lower frequency.
        self.signs = self.signs << 1 | u32::from(value < 0.0);
        self.symbols.push_back(TimedSymbol { value, time_s });
        let wrong = (self.signs ^ SYNC).count_ones();
        let (inverted, wrong) = (wrong > 16, wrong.min(32 - wrong));
        let is_start = match self.state {
            BatchState::Search => wrong <= MOST_WRONG,
            // A first batch is not confirmed, and a better sync word takes its place.
            BatchState::First => wrong < self.wrong,
            _ => false,
        };
        match self.state {
            _ if is_start => {
                self.keep_last(WORD);
                self.wrong = wrong;
                self.begin(inverted, BatchState::First);
            }
            BatchState::Search => self.keep_last(WORD - 1),
            BatchState::First | BatchState::Later if self.symbols.len() == BATCH => self.end_batch(found),
            BatchState::Between if self.symbols.len() == WORD => self.go_on(found),
            _ => (),
        }
    }

    /// Ends a message that was not ended.
    pub fn finish(&mut self, mut found: impl FnMut(TimedLine)) {
        self.state = BatchState::Search;
        self.pages.break_off(self.levels.inverted).into_iter().for_each(&mut found);
    }

    fn keep_last(&mut self, count: usize) {
        let more = self.symbols.len().saturating_sub(count);
        self.symbols.drain(..more);
    }

    /// Begins a batch after the sync word in the symbols.
    fn begin(&mut self, inverted: bool, state: BatchState) {
        let mut sums = [0.0f32; 2];
        for (symbol, bit) in self.symbols.iter().zip((0..32).rev()) {
            sums[(SYNC >> bit & 1) as usize] += symbol.value;
        }
        let ones = SYNC.count_ones() as f32;
        let [zero, one] = [sums[0] / (32.0 - ones), sums[1] / ones];
        let (middle, swing) = ((zero + one) / 2.0, (one - zero).abs() / 2.0);
        // A sync word of a batch after another one corrects the level that is known.
        let mean = |new: f32, old: f32| if state == BatchState::Later { (new + old) / 2.0 } else { new };
        let (middle, swing) = (mean(middle, self.levels.middle), mean(swing, self.levels.swing));
        self.levels = SyncLevels { middle, swing, inverted };
        self.symbols.clear();
        self.state = state;
    }

    /// Reads a word of a batch: what it is, and how many bits of it were wrong. `None` if it is lost.
    fn read_word(&self, number: usize, variance: f32) -> Option<(u32, u32)> {
        let SyncLevels { middle, swing, inverted } = self.levels;
        let symbols = self.symbols.range(number * WORD..(number + 1) * WORD).rev();
        // By the bits, the lowest first; those that are 1 are positive.
        let mut values = [0.0; WORD];
        for (value, symbol) in values.iter_mut().zip(symbols) {
            *value = if inverted { symbol.value - middle } else { middle - symbol.value };
        }
        let received = (0..WORD).fold(0u32, |word, bit| word | u32::from(values[bit] > 0.0) << bit);
        let is_clear = |word: u32| {
            let agreeing: [f32; WORD] =
                std::array::from_fn(|bit| if word >> bit & 1 == 1 { values[bit] } else { -values[bit] });
            !ALTERNATIVES.is_doubtful(&agreeing, swing, variance)
        };
        let wrong = (received ^ IDLE).count_ones();
        match self.corrector.correct(received) {
            _ if wrong <= MOST_WRONG_IDLE => Some((IDLE, wrong)),
            Some(CorrectedWord { word, corrected }) if is_clear(word) => Some((word, corrected)),
            _ => (wrong <= MOST_WRONG_IDLE_OR_LOST).then_some((IDLE, wrong)),
        }
    }

    /// Mean square by which the sizes of the symbols of a batch deviate from the level.
    fn variance(&self) -> f32 {
        let SyncLevels { middle, swing, .. } = self.levels;
        let square = |symbol: &TimedSymbol| ((symbol.value - middle).abs() - swing).powi(2);
        self.symbols.iter().map(square).sum::<f32>() / self.symbols.len() as f32
    }

    /// Reads the words of a batch, if it is one.
    fn end_batch(&mut self, mut found: impl FnMut(TimedLine)) {
        let inverted = self.levels.inverted;
        let variance = self.variance();
        let words: [_; BATCH / WORD] = std::array::from_fn(|number| self.read_word(number, variance));
        if self.state == BatchState::First && words.iter().map(|word| evidence(*word)).sum::<i32>() < EVIDENCE
        {
            self.keep_last(WORD - 1);
            self.state = BatchState::Search;
            return;
        }
        self.batches += 1;
        for (number, word) in words.into_iter().enumerate() {
            self.lost += u64::from(word.is_none());
            let time_s = self.symbols[number * WORD].time_s;
            self.pages.push(number as u32, time_s, word, inverted).into_iter().for_each(&mut found);
        }
        self.symbols.clear();
        self.state = BatchState::Between;
    }

    /// Goes on with another batch if a sync word has come.
    fn go_on(&mut self, found: impl FnMut(TimedLine)) {
        let SyncLevels { middle, inverted, .. } = self.levels;
        let signs =
            self.symbols.iter().fold(0u32, |signs, symbol| signs << 1 | u32::from(symbol.value < middle));
        let expected = if inverted { !SYNC } else { SYNC };
        if (signs ^ expected).count_ones() <= MOST_WRONG_LATER {
            self.begin(inverted, BatchState::Later);
        } else {
            self.finish(found);
        }
    }
}

/// How much a word tells for a batch, in bits. Of random words, one in 2048 has no error, one in 64 has one,
/// and one in 4 seems to have two, if no symbol is weak.
fn evidence(word: Option<(u32, u32)>) -> i32 {
    match word {
        Some((_, 0)) => 11,
        Some((_, 1)) => 6,
        Some(_) => 2,
        None => -2,
    }
}
