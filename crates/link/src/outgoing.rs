//! What the producer is about to write.

use std::os::fd::OwnedFd;

/// Bytes on their way into the socket.
#[derive(Debug, Default)]
pub(crate) struct OutgoingFrames {
    pub bytes: Vec<u8>,
    /// Goes with the first byte.
    pub file: Option<OwnedFd>,
    /// Whether the samples of the next message to send come after `bytes`.
    pub has_samples: bool,
    pub done: usize,
}

impl OutgoingFrames {
    /// Whether more can be put behind it, up to this many bytes.
    pub fn has_room(&self, most: usize) -> bool {
        self.bytes.len() < most && !self.has_samples && self.file.is_none()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.file = None;
        (self.has_samples, self.done) = (false, 0);
    }

    /// The parts that were not written.
    pub fn rest<'a>(&'a self, samples: &'a [u8]) -> [&'a [u8]; 2] {
        let samples = if self.has_samples { samples } else { &[] };
        match self.done.checked_sub(self.bytes.len()) {
            None => [&self.bytes[self.done..], samples],
            Some(done) => [&[], &samples[done..]],
        }
    }
}
