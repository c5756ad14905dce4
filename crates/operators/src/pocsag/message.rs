//! Messages of code words.

use serde::Serialize;

/// The code word between messages.
pub(super) const IDLE: u32 = 0x7a89_c197;

/// Most words of a message that are kept: more than 9000 characters.
const MOST_WORDS: usize = 3200;

/// Digits of numeric messages, by the value of their four bits.
const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '*', 'U', ' ', '-', ']', '['];

/// Bits of a message in a word.
const PAYLOAD: usize = 20;

/// How the bits of messages are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PageCoding {
    /// Function 0 as digits, all others as characters.
    #[default]
    Function,
    /// As digits.
    Numeric,
    /// As characters.
    Text,
    /// Both ways.
    Both,
}

/// A message whose words come.
#[derive(Debug, Clone)]
struct OpenPage {
    time_s: f64,
    address: u32,
    function: u32,
    /// The bits of each word; `None` for those that had too many errors.
    words: Vec<Option<u32>>,
    corrected: u32,
    /// Whether words may be missing at the end.
    is_cut: bool,
}

/// One line of JSON.
#[derive(Debug, Serialize)]
struct PageLine {
    time_s: f64,
    baud: u32,
    #[serde(skip_serializing_if = "is_false")]
    inverted: bool,
    address: u32,
    function: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    numeric: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    corrected_bits: u32,
    #[serde(skip_serializing_if = "is_none")]
    lost_words: usize,
    #[serde(skip_serializing_if = "is_false")]
    cut: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(value: &usize) -> bool {
    *value == 0
}

/// Puts words together to messages.
#[derive(Debug)]
pub(super) struct PageAssembly {
    baud: u32,
    coding: PageCoding,
    open: Option<OpenPage>,
    /// Words of messages whose address was lost.
    pub orphans: u64,
}

/// A line, and the time of the address in seconds.
pub(super) type TimedLine = (f64, String);

impl PageAssembly {
    pub fn new(baud: u32, coding: PageCoding) -> Self {
        PageAssembly { baud, coding, open: None, orphans: 0 }
    }

    /// Takes a word of a batch: its number, its time, and what it was corrected to. Returns the message that
    /// it ends.
    pub fn push(
        &mut self,
        number: u32,
        time_s: f64,
        word: Option<(u32, u32)>,
        inverted: bool,
    ) -> Option<TimedLine> {
        let is_message = word.is_none_or(|(word, _)| word >> 31 == 1);
        if is_message {
            match &mut self.open {
                Some(page) if page.words.len() < MOST_WORDS => {
                    page.words.push(word.map(|(word, _)| word >> 11 & 0xf_ffff));
                    page.corrected += word.map_or(0, |(_, corrected)| corrected);
                }
                Some(page) => page.is_cut = true,
                None => self.orphans += u64::from(word.is_some()),
            }
            return None;
        }
        let (word, corrected) = word?;
        let ended = self.end(inverted);
        if word != IDLE {
            self.open = Some(OpenPage {
                time_s,
                address: ((word >> 13 & 0x3_ffff) << 3) | (number / 2),
                function: word >> 11 & 3,
                words: Vec::new(),
                corrected,
                is_cut: false,
            });
        }
        ended
    }

    /// Ends the message, although no word came that ends it.
    pub fn break_off(&mut self, inverted: bool) -> Option<TimedLine> {
        self.open.as_mut()?.is_cut = true;
        self.end(inverted)
    }

    /// Ends the message.
    fn end(&mut self, inverted: bool) -> Option<TimedLine> {
        let page = self.open.take()?;
        let (numeric, text) = match (self.coding, page.function) {
            _ if page.words.is_empty() => (None, None),
            (PageCoding::Numeric, _) | (PageCoding::Function, 0) => (Some(digits(&page.words)), None),
            (PageCoding::Text | PageCoding::Function, _) => (None, Some(characters(&page.words))),
            (PageCoding::Both, _) => (Some(digits(&page.words)), Some(characters(&page.words))),
        };
        let line = PageLine {
            time_s: (page.time_s * 1e6).round() / 1e6,
            baud: self.baud,
            inverted,
            address: page.address,
            function: page.function,
            numeric,
            text,
            corrected_bits: page.corrected,
            lost_words: page.words.iter().filter(|word| word.is_none()).count(),
            cut: page.is_cut,
        };
        Some((page.time_s, serde_json::to_string(&line).ok()?))
    }
}

/// The bits of all words in the order in which they came.
fn bits(words: &[Option<u32>]) -> impl Iterator<Item = Option<u32>> {
    words.iter().flat_map(|word| (0..PAYLOAD).rev().map(move |bit| word.map(|word| word >> bit & 1)))
}

/// Numbers of `count` bits, the lowest first. `None` where a bit is lost.
fn numbers(words: &[Option<u32>], count: usize) -> Vec<Option<u32>> {
    let bits: Vec<_> = bits(words).collect();
    let number = |bits: &[Option<u32>]| bits.iter().rev().try_fold(0, |sum, bit| Some(sum << 1 | (*bit)?));
    bits.chunks_exact(count).map(number).collect()
}

fn digits(words: &[Option<u32>]) -> String {
    let digit =
        |value: Option<u32>| value.map_or(char::REPLACEMENT_CHARACTER, |value| DIGITS[value as usize]);
    let text: String = numbers(words, 4).into_iter().map(digit).collect();
    text.trim_end_matches(' ').to_string()
}

fn characters(words: &[Option<u32>]) -> String {
    let character =
        |value: Option<u32>| value.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
    let text: String = numbers(words, 7).into_iter().map(character).collect();
    // Nothing, end of text, end of transmission: they fill the last word.
    text.trim_end_matches(['\0', '\u{3}', '\u{4}']).to_string()
}
