//! Text forms of numbers and times.

use onbeat_trace::words;
use onbeat_trace::words::digits;

/// Formats a time as everywhere, with narrow spaces that do not break.
pub(crate) fn time(ns: f64) -> String {
    words::time(ns).replace(' ', "\u{202f}")
}

/// Formats a count, with spaces between thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digits.len() > 4 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        value if value != 0.0 && value.abs() < 0.1 => format!("{value:.2}\u{202f}%"),
        value if value < 10.0 => format!("{value:.1}\u{202f}%"),
        value => format!("{value:.0}\u{202f}%"),
    }
}

pub(crate) fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..1_024 => format!("{bytes}\u{202f}B"),
        1_024..1_048_576 => format!("{}\u{202f}KiB", digits(value / 1024.0)),
        1_048_576..1_073_741_824 => format!("{}\u{202f}MiB", digits(value / 1_048_576.0)),
        _ => format!("{}\u{202f}GiB", digits(value / 1_073_741_824.0)),
    }
}

/// Shortens a text to `most` characters, with an ellipsis at the end.
pub(crate) fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Formats a date from the time since 1970: year, month and day by counting days in eras of 400 years (Howard
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms").
pub(crate) fn date(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let days = (seconds / 86_400) as i64 + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * from_march + 2) / 5 + 1, from_march % 12 + 3);
    let (month, next) = if month > 12 { (month - 12, 1) } else { (month, 0) };
    let year = year_of_era + era * 400 + next;
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let times = [
            (0.0, "0 ns"),
            (999.0, "999 ns"),
            (12_345.0, "12.3 µs"),
            (999_600.0, "1 ms"),
            (2_500_000_000.0, "2.5 s"),
            (3_723e9, "62 min 03 s"),
            (-40_000.0, "-40 µs"),
        ];
        for (ns, text) in times {
            assert_eq!(time(ns).replace('\u{202f}', " "), text);
        }
        assert_eq!(
            (count(1_000), count(1_234_567)),
            ("1000".to_string(), "1\u{202f}234\u{202f}567".to_string())
        );
        assert_eq!(short("abcdef", 4), "abc…");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let dates = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (1_795_300_000, "2026-11-21 22:26:40 UTC"),
        ];
        for (seconds, text) in dates {
            assert_eq!(date(seconds * 1_000_000_000), text);
        }
        assert_eq!(date(u64::MAX), "2554-07-21 23:34:33 UTC");
    }
}
