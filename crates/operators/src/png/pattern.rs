//! Numbers in file names: `{n}`, with six digits, or `%05d` as other programs write it.

use onbeat_runtime::Error;
use std::path::{Path, PathBuf};

/// The usual placeholder, and its digits.
const NUMBER: &str = "{n}";
const DIGITS: usize = 6;
/// Most digits of a number.
const MOST: usize = 18;

/// A path with a place for a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberedPath {
    folder: PathBuf,
    before: String,
    after: String,
    /// Fewest digits; smaller numbers begin with zeros.
    digits: usize,
}

impl NumberedPath {
    /// Finds the place; `None` for a path without one.
    ///
    /// # Errors
    /// If the place is in the name of a folder, or there are two.
    pub fn find(path: &Path) -> Result<Option<Self>, Error> {
        let wrong = |text: &str| Error::new(format!("{}: {text}", path.display()));
        let folder = path.parent().unwrap_or(Path::new(""));
        if split(&folder.to_string_lossy()).is_some() {
            return Err(wrong("the number is in the name of a folder: put it into the file name"));
        }
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(None) };
        let Some((before, digits, after)) = split(name) else { return Ok(None) };
        if split(after).is_some() {
            return Err(wrong("there are two places for the number: keep one"));
        }
        let [before, after] = [before, after].map(str::to_string);
        Ok(Some(NumberedPath { folder: folder.to_path_buf(), before, after, digits }))
    }

    /// The path with this number.
    pub fn with(&self, number: u64) -> PathBuf {
        let NumberedPath { folder, before, after, digits } = self;
        folder.join(format!("{before}{number:0digits$}{after}"))
    }

    /// The number in the name of a file of the folder, if the name fits.
    pub fn number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        let fits = (self.digits..=MOST).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_digit());
        let number: u64 = digits.parse().ok().filter(|_| fits)?;
        // Only what `with` would write: "007" is not a number of one digit.
        (format!("{number:0width$}", width = self.digits) == digits).then_some(number)
    }

    /// The folder of the files.
    pub fn folder(&self) -> &Path {
        if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder }
    }
}

/// Splits a name at the first place, and returns the fewest digits of the number, too.
fn split(name: &str) -> Option<(&str, usize, &str)> {
    if let Some((before, after)) = name.split_once(NUMBER) {
        return Some((before, DIGITS, after));
    }
    name.match_indices('%').find_map(|(at, _)| {
        let (width, after) = name[at + 1..].split_once('d')?;
        let digits = match width.strip_prefix('0') {
            None if width.is_empty() => 1,
            Some(digits) if width.len() <= 3 => digits.parse().ok().filter(|n| (1..=MOST).contains(n))?,
            _ => return None,
        };
        Some((&name[..at], digits, after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_numbers() {
        let find = |path: &str| NumberedPath::find(Path::new(path));
        for (path, number, expected) in [
            ("a/frame-{n}.png", 7, "a/frame-000007.png"),
            ("f%05d.png", 123_456, "f123456.png"),
            ("%d", 0, "0"),
            ("100%-%03d.png", 42, "100%-042.png"),
        ] {
            let pattern = find(path).unwrap().unwrap();
            assert_eq!(pattern.with(number), Path::new(expected));
            let name = Path::new(expected).file_name().unwrap().to_str().unwrap();
            assert_eq!(pattern.number(name), Some(number), "{path}");
        }
        for path in ["a.png", "%x.png", "%00d", "%0d", "%099d", "%5d.png", ""] {
            assert_eq!(find(path).unwrap(), None, "{path}");
        }
        for path in ["{n}/a.png", "a/%02d/b.png", "{n}-%05d.png"] {
            assert!(find(path).is_err(), "{path}");
        }
        let pattern = find("f%03d.png").unwrap().unwrap();
        for name in ["f1.png", "f0001.png", "g001.png", "f001.jpg", "f-01.png", "f99999999999999999999.png"] {
            assert_eq!(pattern.number(name), None, "{name}");
        }
        assert_eq!(pattern.number("f1000.png"), Some(1000));
        assert_eq!(pattern.folder(), Path::new("."));
    }
}
