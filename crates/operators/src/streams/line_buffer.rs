//! Bytes that arrive in pieces of any length, split into lines.

/// Bytes per read.
const BLOCK: usize = 16 << 10;

/// Splits bytes into lines. A line ends with `\n` or `\r\n`, which are not part of it.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    bytes: Vec<u8>,
    /// Start of the next line, and the position up to which there is no line break.
    at: usize,
    searched: usize,
    /// Longest line in bytes.
    longest: usize,
    /// Whether the bytes up to the next line break belong to a line that is too long.
    skipping: bool,
    ended: bool,
}

/// A line is longer than the buffer permits. Its rest is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

impl LineBuffer {
    /// Makes an empty buffer for lines of at most this many bytes.
    pub fn new(longest: usize) -> Self {
        LineBuffer { bytes: Vec::new(), at: 0, searched: 0, longest, skipping: false, ended: false }
    }

    /// Returns the next complete line, or the rest after the end.
    pub fn next(&mut self) -> Option<Result<&[u8], TooLong>> {
        loop {
            let found = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n');
            let end = match found {
                Some(offset) => self.searched + offset,
                None if self.ended && self.at < self.bytes.len() => self.bytes.len(),
                None => {
                    self.searched = self.bytes.len();
                    // A line break of two bytes may be cut.
                    if self.bytes.len() - self.at <= self.longest + 1 {
                        return None;
                    }
                    self.at = self.bytes.len();
                    return (!std::mem::replace(&mut self.skipping, true)).then_some(Err(TooLong));
                }
            };
            let begin = self.at;
            self.at = (end + 1).min(self.bytes.len());
            self.searched = self.at;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            let line = &self.bytes[begin..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.len() > self.longest {
                return Some(Err(TooLong));
            }
            return Some(Ok(line));
        }
    }

    /// Reads more bytes by `read`, which returns how many it has put into its argument.
    pub fn fill<E>(&mut self, read: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<usize, E> {
        self.bytes.drain(..self.at);
        self.searched -= self.at;
        self.at = 0;
        let begin = self.bytes.len();
        self.bytes.resize(begin + BLOCK, 0);
        let count = read(&mut self.bytes[begin..]);
        self.bytes.truncate(begin + *count.as_ref().unwrap_or(&0));
        count
    }

    /// Ends the stream: the bytes after the last line break are a line.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Number of bytes that were read and are in no line that was returned.
    pub fn rest(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Forgets what was read. Returns the number of bytes.
    pub fn clear(&mut self) -> usize {
        let rest = self.rest();
        *self = LineBuffer { bytes: std::mem::take(&mut self.bytes), ..LineBuffer::new(self.longest) };
        self.bytes.clear();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All lines of these pieces; `None` is a line that is too long.
    fn lines(pieces: &[&[u8]], longest: usize, ends: bool) -> Vec<Option<Vec<u8>>> {
        let (mut buffer, mut lines) = (LineBuffer::new(longest), Vec::new());
        for piece in pieces {
            for part in piece.chunks(BLOCK) {
                let put = |bytes: &mut [u8]| {
                    bytes[..part.len()].copy_from_slice(part);
                    Ok::<_, ()>(part.len())
                };
                buffer.fill(put).unwrap();
                while let Some(line) = buffer.next() {
                    lines.push(line.ok().map(<[u8]>::to_vec));
                }
            }
        }
        if ends {
            buffer.end();
            lines.extend(buffer.next().map(|line| line.ok().map(<[u8]>::to_vec)));
        }
        lines
    }

    #[test]
    fn a_line_that_is_too_long_is_one_loss() {
        let (a, b) = (Some(b"a".to_vec()), Some(b"b".to_vec()));
        assert_eq!(lines(&[b"a\nxxxx\nb\n"], 3, false), [a.clone(), None, b.clone()]);
        assert_eq!(lines(&[b"a\nxxxx", b"xxxxxxxx", b"x\nb"], 3, true), [a, None, b]);
        let three = Some(b"xxx".to_vec());
        assert_eq!(lines(&[b"xxx\r", b"\nxxx\n"], 3, false), [three.clone(), three]);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_pieces(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..400),
            cuts in proptest::collection::vec(1..60usize, 1..9),
            longest in 1..40usize,
        ) {
            let (mut pieces, mut rest, mut at) = (Vec::new(), &text[..], 0);
            while !rest.is_empty() {
                let (piece, others) = rest.split_at(cuts[at % cuts.len()].min(rest.len()));
                pieces.push(piece);
                (rest, at) = (others, at + 1);
            }
            prop_assert_eq!(lines(&pieces, longest, true), lines(&[&text], longest, true));
            // The reference is the standard library's.
            let mut expected: Vec<_> = text.split(|byte| *byte == b'\n').map(|line| {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                (line.len() <= longest).then(|| line.to_vec())
            }).collect();
            if text.is_empty() || text.ends_with(b"\n") {
                expected.pop();
            }
            prop_assert_eq!(lines(&pieces, longest, true), expected);
        }
    }
}
