//! The end of what a program writes to stderr.

/// Bytes that are kept, and lines and characters of a line that are shown.
const KEPT: usize = 4096;
const LINES: usize = 5;
const CHARACTERS: usize = 200;

/// Keeps the last bytes of a text.
#[derive(Default)]
pub(super) struct LastLines {
    bytes: Vec<u8>,
}

impl LastLines {
    pub fn add(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(KEPT)..];
        let surplus = (self.bytes.len() + bytes.len()).saturating_sub(KEPT);
        self.bytes.drain(..surplus.min(self.bytes.len()));
        self.bytes.extend_from_slice(bytes);
    }

    /// The last lines in one, without control characters; `None` if there are none.
    pub fn text(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.bytes);
        // A progress display goes back to the start of its line.
        let mut lines: Vec<&str> =
            text.rsplit(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).take(LINES).collect();
        lines.reverse();
        let short =
            |line: &&str| line.chars().take(CHARACTERS).filter(|c| !c.is_control()).collect::<String>();
        let lines: Vec<String> = lines.iter().map(short).collect();
        (!lines.is_empty()).then(|| lines.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let mut lines = LastLines::default();
        assert_eq!(lines.text(), None);
        for n in 0..10_000 {
            lines.add(format!("line {n}\n\n").as_bytes());
        }
        lines.add(b"1 %\r2 %\r\x1b[31mred\xff\n");
        assert_eq!(lines.text().unwrap(), "line 9998 | line 9999 | 1 % | 2 % | [31mred\u{fffd}");
        lines.add(&[b'x'; 100_000]);
        assert_eq!(lines.text().unwrap(), "x".repeat(CHARACTERS));
        assert_eq!(lines.bytes.len(), KEPT);
    }
}
