//! Core sets in the kernel's notation: lists (`0-3,8`) and masks (`ff,00000003`).

use onbeat_os::CoreSet;
use onbeat_os::cores::CORES_MAX;

/// Parses a list in the grammar of the kernel's command line and files, including `all`, `N` for the last
/// core, and `0-15:2/4`. `last` is the value of `N`. `None` if the kernel would reject it.
#[must_use]
pub fn list(text: &str, last: usize) -> Option<CoreSet> {
    let mut cores = Vec::new();
    for item in text.trim().split(',').map(str::trim) {
        if item == "all" {
            cores.extend(0..=last);
            continue;
        }
        let (range, groups) =
            item.split_once(':').map_or((item, None), |(range, groups)| (range, Some(groups)));
        let (first, end) = range.split_once('-').unwrap_or((range, range));
        let (first, end) = (core(first, last)?, core(end, last)?);
        let (used, size) = match groups {
            None => (1, 1),
            Some(groups) => {
                let (used, size) = groups.split_once('/')?;
                (whole(used)?, whole(size)?)
            }
        };
        if first > end || size == 0 || used > size {
            return None;
        }
        cores.extend((first..=end).filter(|core| (core - first) % size < used));
    }
    CoreSet::from_cores(cores).ok()
}

/// Parses the content of a kernel file: an empty one, or `(null)`, is the empty set.
#[must_use]
pub fn file(text: &str) -> Option<CoreSet> {
    match text.trim() {
        "" | "(null)" => Some(CoreSet::default()),
        text => text.parse().ok(),
    }
}

/// Parses a hexadecimal mask: 32 bits between two commas, the lowest cores last.
#[must_use]
pub fn mask(text: &str) -> Option<CoreSet> {
    let mut cores = Vec::new();
    let words: Vec<&str> = text.trim().split(',').collect();
    if words.len() > CORES_MAX / 32 {
        return None;
    }
    for (place, word) in words.iter().rev().enumerate() {
        let is_hex = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = is_hex.then(|| u32::from_str_radix(word, 16).ok()).flatten()?;
        cores.extend((0..32).filter(|bit| bits & (1 << bit) != 0).map(|bit| place * 32 + bit));
    }
    CoreSet::from_cores(cores).ok()
}

/// Formats a set as a mask.
#[must_use]
pub fn to_mask(cores: &CoreSet) -> String {
    let last = cores.iter().next_back().unwrap_or(0);
    let word = |place: usize| {
        cores.iter().filter(|core| core / 32 == place).fold(0_u32, |bits, core| bits | 1 << (core % 32))
    };
    let mut text = format!("{:x}", word(last / 32));
    for place in (0..last / 32).rev() {
        text += &format!(",{:08x}", word(place));
    }
    text
}

fn core(text: &str, last: usize) -> Option<usize> {
    if text == "N" { Some(last) } else { whole(text).filter(|core| *core < CORES_MAX) }
}

/// Parses digits only; `parse` would also accept a plus sign.
fn whole(text: &str) -> Option<usize> {
    let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_those_of_the_kernel() {
        for (text, cores) in [
            ("2-5", Some("2-5")),
            ("all", Some("0-7")),
            ("3-N", Some("3-7")),
            ("0-7:1/2", Some("0,2,4,6")),
            (" 1 , 3 ", Some("1,3")),
            ("5-2", None),
            ("2-x", None),
            ("", None),
            ("0-3:2/0", None),
            ("9999999", None),
            ("+3", None),
        ] {
            assert_eq!(list(text, 7).map(|cores| cores.to_string()).as_deref(), cores, "{text}");
        }
        assert_eq!(file("(null)\n"), Some(CoreSet::default()));
    }

    #[test]
    fn masks_are_those_of_the_kernel() {
        for (text, cores) in
            [("3", "0-1"), ("ff,00000003", "0-1,32-39"), ("00000000,00000010", "4"), ("0", "")]
        {
            assert_eq!(mask(text).map(|cores| cores.to_string()).as_deref(), Some(cores), "{text}");
        }
        for text in ["", "x", "1,,2", "123456789", "-1"] {
            assert_eq!(mask(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_mask_says_the_set(cores in proptest::collection::btree_set(0_usize..200, 0..20)) {
            let cores = CoreSet::from_cores(cores).unwrap();
            prop_assert_eq!(mask(&to_mask(&cores)), Some(cores));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-fN,:/ \\-]{0,40}") {
            let _ = (list(&text, 3), mask(&text), file(&text));
        }
    }
}
