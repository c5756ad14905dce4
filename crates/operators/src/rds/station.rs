//! What the groups of a station tell together: its name, texts, time and other frequencies.

use super::characters::text;
use super::group::{GroupType, RdsGroup};

/// A text whose parts come in several groups.
#[derive(Debug, Clone, PartialEq)]
struct PartedText {
    codes: Vec<u8>,
    /// Characters of a part.
    part: usize,
    /// Parts of this text that came, and those that came since it was last complete, as bits.
    known: u64,
    seen: u64,
    /// How many parts came in a row before the text began again the last time.
    short: u32,
}

/// Ends a text before its last part.
const END: u8 = 0x0d;

impl PartedText {
    fn new(characters: usize, part: usize) -> Self {
        PartedText { codes: vec![b' '; characters], part, known: 0, seen: 0, short: 0 }
    }

    fn clear(&mut self) {
        self.codes.fill(b' ');
        (self.known, self.seen, self.short) = (0, 0, 0);
    }

    /// Puts a part in its place. If it differs from what was there, it is one of a new text.
    fn put(&mut self, number: usize, codes: &[u8]) {
        let place = number * self.part..(number + 1) * self.part;
        if place.end > self.codes.len() {
            return;
        }
        if self.known >> number & 1 == 1 && self.codes[place.clone()] != *codes {
            self.clear();
        }
        self.codes[place].copy_from_slice(codes);
        self.known |= 1 << number;
        self.seen |= 1 << number;
    }

    /// Number of parts up to the end of the text.
    fn parts(&self) -> usize {
        let end = self.codes.iter().position(|code| *code == END);
        end.map_or(self.codes.len() / self.part, |end| end / self.part + 1)
    }

    /// The text, if all its parts have come. It must then come again.
    fn take(&mut self) -> Option<String> {
        let wanted = self.parts();
        if self.seen.trailing_ones() < wanted as u32 {
            return None;
        }
        self.seen = 0;
        Some(self.up_to_end())
    }

    /// The text, if as many of its first parts have come as the last time, and no others. To be asked when
    /// the text begins again: some stations do not send the blanks behind a short one.
    fn take_short(&mut self) -> Option<String> {
        let count = self.seen.trailing_ones();
        if count != self.seen.count_ones() || count != std::mem::replace(&mut self.short, count) || count < 2
        {
            return None;
        }
        self.codes[count as usize * self.part..].fill(b' ');
        (self.known, self.seen) = (self.seen, 0);
        Some(self.up_to_end())
    }

    fn up_to_end(&self) -> String {
        let end = self.codes.iter().position(|code| *code == END).unwrap_or(self.codes.len());
        text(&self.codes[..end])
    }
}

/// Frequencies of a list that comes in parts.
#[derive(Debug, Clone, Default, PartialEq)]
struct FrequencyList {
    /// How many were announced.
    announced: usize,
    hundred_khz: Vec<u16>,
    /// Whether the next code is one of long or medium wave.
    is_other_band: bool,
}

impl FrequencyList {
    /// Takes a block with two codes. Returns the frequencies in megahertz if all have come.
    fn put(&mut self, word: u16) -> Option<Vec<f64>> {
        for code in word.to_be_bytes() {
            match code {
                // This code before another one says that that one is not on FM.
                _ if std::mem::take(&mut self.is_other_band) => {
                    self.announced = self.announced.saturating_sub(1);
                }
                1..=204 if self.announced > 0 => self.hundred_khz.push(875 + u16::from(code)),
                225..=249 => *self = FrequencyList { announced: usize::from(code - 224), ..Self::default() },
                250 => self.is_other_band = true,
                _ => (),
            }
        }
        if self.announced == 0 || self.hundred_khz.len() < self.announced {
            return None;
        }
        let list = std::mem::take(self);
        Some(list.hundred_khz.iter().map(|hundred_khz| f64::from(*hundred_khz) / 10.0).collect())
    }
}

/// What a group told beyond its own fields.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct StationNews {
    pub name: Option<String>,
    pub text: Option<String>,
    pub type_name: Option<String>,
    pub time: Option<String>,
    pub frequencies_mhz: Option<Vec<f64>>,
    pub traffic_announcement: Option<bool>,
    pub music: Option<bool>,
}

/// Puts the groups of a station together.
#[derive(Debug)]
pub(super) struct RdsStation {
    programme: Option<u16>,
    name: PartedText,
    /// Radio text in groups of version A and of version B.
    text: [PartedText; 2],
    text_flag: Option<bool>,
    type_name: PartedText,
    type_name_flag: Option<bool>,
    frequencies: FrequencyList,
}

impl RdsStation {
    pub fn new() -> Self {
        RdsStation {
            programme: None,
            name: PartedText::new(8, 2),
            text: [PartedText::new(64, 4), PartedText::new(32, 2)],
            text_flag: None,
            type_name: PartedText::new(8, 4),
            type_name_flag: None,
            frequencies: FrequencyList::default(),
        }
    }

    /// Takes a group.
    pub fn take(&mut self, group: &RdsGroup) -> StationNews {
        if let Some(programme) = group.programme()
            && self.programme != Some(programme)
        {
            *self = RdsStation { programme: Some(programme), ..RdsStation::new() };
        }
        let mut news = StationNews::default();
        let (Some(of), Some(second)) = (group.group_type(), group.word(1)) else { return news };
        let (third, fourth) = (group.word(2), group.word(3));
        match of {
            GroupType { number: 0, is_b } => {
                news.traffic_announcement = Some(second >> 4 & 1 == 1);
                news.music = Some(second >> 3 & 1 == 1);
                news.frequencies_mhz = third.filter(|_| !is_b).and_then(|word| self.frequencies.put(word));
                if let Some(word) = fourth {
                    self.name.put(usize::from(second & 3), &word.to_be_bytes());
                    news.name = self.name.take();
                }
            }
            GroupType { number: 2, is_b } => news.text = self.take_text(second, third, fourth, is_b),
            GroupType { number: 4, is_b: false } => {
                news.time = third.zip(fourth).and_then(|(third, fourth)| clock_time(second, third, fourth));
            }
            GroupType { number: 10, is_b: false } => {
                let flag = Some(second >> 4 & 1 == 1);
                if std::mem::replace(&mut self.type_name_flag, flag) != flag {
                    self.type_name.clear();
                }
                if let Some((third, fourth)) = third.zip(fourth) {
                    self.type_name.put(usize::from(second & 1), &four_codes(third, fourth));
                    news.type_name = self.type_name.take();
                }
            }
            GroupType { number: 15, is_b: true } => {
                news.traffic_announcement = Some(second >> 4 & 1 == 1);
                news.music = Some(second >> 3 & 1 == 1);
            }
            _ => (),
        }
        news
    }

    /// Takes a part of the radio text.
    fn take_text(
        &mut self,
        second: u16,
        third: Option<u16>,
        fourth: Option<u16>,
        is_b: bool,
    ) -> Option<String> {
        let flag = Some(second >> 4 & 1 == 1);
        if std::mem::replace(&mut self.text_flag, flag) != flag {
            self.text.iter_mut().for_each(PartedText::clear);
        }
        let number = usize::from(second & 15);
        let text = &mut self.text[usize::from(is_b)];
        let short = if number == 0 { text.take_short() } else { None };
        if is_b {
            text.put(number, &fourth?.to_be_bytes());
        } else {
            text.put(number, &four_codes(third?, fourth?));
        }
        text.take().or(short)
    }
}

fn four_codes(third: u16, fourth: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (third.to_be_bytes(), fourth.to_be_bytes());
    [a, b, c, d]
}

/// Local time as in ISO 8601. `None` if it is not a time.
fn clock_time(second: u16, third: u16, fourth: u16) -> Option<String> {
    let day = i64::from(second & 3) << 15 | i64::from(third >> 1);
    let (hour, minute) = (i64::from(third & 1) << 4 | i64::from(fourth >> 12), i64::from(fourth >> 6 & 63));
    let half_hours = i64::from(fourth & 31) * if fourth >> 5 & 1 == 1 { -1 } else { 1 };
    if hour > 23 || minute > 59 || half_hours.abs() > 28 || day == 0 {
        return None;
    }
    let local = (day * 24 + hour) * 60 + minute + half_hours * 30;
    let (year, month, of_month) = date(local.div_euclid(24 * 60));
    let within = local.rem_euclid(24 * 60);
    let offset = half_hours.abs() * 30;
    let zone = match half_hours {
        0 => "Z".to_string(),
        _ => format!("{}{:02}:{:02}", if half_hours < 0 { '-' } else { '+' }, offset / 60, offset % 60),
    };
    Some(format!("{year:04}-{month:02}-{of_month:02}T{:02}:{:02}:00{zone}", within / 60, within % 60))
}

/// Year, month and day of a modified Julian day, in the Gregorian calendar.
fn date(modified_julian_day: i64) -> (i64, i64, i64) {
    // Days since 1 March of the year 0, in cycles of 400 years.
    let days = modified_julian_day + 678_881;
    let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    // Months from March on.
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    (cycle * 400 + year + i64::from(is_next_year), if is_next_year { month - 9 } else { month + 3 }, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        // 45218 is the example of the standard, 6 September 1982. The others are from Python's datetime.
        let days = [
            (45_218, (1982, 9, 6)),
            (51_544, (2000, 1, 1)),
            (51_603, (2000, 2, 29)),
            (61_372, (2026, 11, 28)),
            (88_127, (2100, 2, 28)),
            (88_128, (2100, 3, 1)),
            (131_071, (2217, 9, 27)),
        ];
        for (day, expected) in days {
            assert_eq!(date(day), expected, "{day}");
        }
    }
}
