//! Messages about wrong values, in the words of the people who wrote the values.

/// Turns a message of serde into one for users. Also returns an addition to it, such as the known keys.
pub(crate) fn plain(error: &str) -> (String, Option<String>) {
    for start in ["invalid type: ", "invalid value: "] {
        if let Some((found, expected)) =
            error.strip_prefix(start).and_then(|rest| rest.rsplit_once(", expected "))
        {
            return (format!("expected {}, found {}", expected_words(expected), found_words(found)), None);
        }
    }
    if let Some(rest) = error.strip_prefix("unknown variant `")
        && let Some((found, known)) = rest.rsplit_once("`, expected ")
    {
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        let hint = near(found, known.iter().copied());
        return (format!("{} is none of {}{hint}", quoted(found), list(&known)), None);
    }
    if let Some(rest) = error.strip_prefix("unknown field `")
        && let Some((found, known)) = rest.rsplit_once("`, expected ")
    {
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        let hint = near(found, known.iter().copied());
        return (
            format!("unknown key {}{hint}", quoted(found)),
            Some(format!("its keys are {}", list(&known))),
        );
    }
    match error {
        "integer number overflowed" | "floating-point number overflowed" => {
            ("the number is too large".to_string(), None)
        }
        "wanted string or table" => ("expected a string".to_string(), None),
        other => (other.to_string(), None),
    }
}

/// Returns ": did you mean `x`?" for the nearest of the known names, or "" if none is near.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    known
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|&(distance, known)| {
            distance <= 1 + known.len().max(name.len()) / 3
                || is_beginning(known, name)
                || is_beginning(name, known)
        })
        .min()
        .map_or(String::new(), |(_, known)| format!(": did you mean `{known}`?"))
}

/// Whether a name goes on as another one, such as `am.demodulator` as `am.demod`.
fn is_beginning(short: &str, long: &str) -> bool {
    const LEAST: usize = 4;
    short.len() >= LEAST && long.starts_with(short)
}

/// Like [`nearest`], but returns "" for long names.
pub(crate) fn near<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    // The cost of the distance is quadratic in the length, for each known name.
    if name.len() <= 100 { nearest(name, known) } else { String::new() }
}

/// Returns `name` in back quotes, shortened if it is long, with control characters escaped.
pub(crate) fn quoted(name: &str) -> String {
    let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    let more = if name.chars().nth(80).is_some() { "…" } else { "" };
    format!("`{shown}{more}`")
}

/// Returns the names as a list: `a`, `b`, `c`.
pub(crate) fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns a time in words.
pub(crate) fn time(ns: u64) -> String {
    onbeat_trace::words::time(ns as f64)
}

fn expected_words(expected: &str) -> String {
    let words = match expected {
        "f32" | "f64" => "a number",
        "bool" => "a boolean",
        "i8" => "a whole number from -128 to 127",
        "i16" => "a whole number from -32768 to 32767",
        "i32" => "a whole number from -2147483648 to 2147483647",
        "i64" | "i128" | "isize" => "a whole number",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "u128" | "usize" => "a whole number that is not negative",
        "a sequence" => "an array",
        "a map" => "a table",
        // A key that takes several types, none of which has that many digits.
        "any value" => "a smaller number",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    words.to_string()
}

fn found_words(found: &str) -> String {
    match found {
        "map" => "a table".to_string(),
        "sequence" => "an array".to_string(),
        other => {
            let other = other.strip_suffix(" as i128").unwrap_or(other);
            let shown: String = other.chars().take(80).collect();
            if shown.len() < other.len() { format!("{shown}…") } else { shown }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_as_people_do() {
        let (message, _) = plain("invalid type: string \"x, expected y\", expected f32");
        assert_eq!(message, "expected a number, found string \"x, expected y\"");
        let (message, _) = plain("invalid value: integer `300`, expected u8");
        assert_eq!(message, "expected a whole number from 0 to 255, found integer `300`");
    }

    #[test]
    fn words_are_compared() {
        let (message, _) = plain("unknown variant `fasst`, expected `real` or `fast`");
        assert_eq!(message, "`fasst` is none of `real`, `fast`: did you mean `fast`?");
    }

    #[test]
    fn what_is_long_or_not_printable_is_shown_short() {
        assert!(quoted(&"x".repeat(1 << 20)).len() < 100);
        assert_eq!(quoted("a\u{1b}[1m"), "`a\\u{1b}[1m`");
    }
}
