//! What a feed of frames consists of, and what of it is skipped.

use crate::mode_s::Frame;

/// One message of a feed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FeedUnit {
    /// A frame of 7 or 14 bytes.
    Frame(FeedFrame),
    /// A message that is not a Mode S frame: Mode A/C, a heartbeat, a status.
    Other,
    /// A frame of another length.
    Odd,
}

/// A frame with what a feed says of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct FeedFrame {
    pub bytes: [u8; 14],
    pub length: usize,
    /// Counter of the receiver, at 12 MHz.
    pub ticks: Option<u64>,
    /// Level as 255 times the amplitude of full scale.
    pub level: Option<u8>,
}

impl FeedUnit {
    /// Makes a frame of these bytes, if there are 7 or 14.
    pub fn frame(bytes: &[u8], ticks: Option<u64>, level: Option<u8>) -> Self {
        let mut all = [0; 14];
        match all.get_mut(..bytes.len()) {
            Some(place) if matches!(bytes.len(), 7 | 14) => place.copy_from_slice(bytes),
            _ => return FeedUnit::Odd,
        }
        FeedUnit::Frame(FeedFrame { bytes: all, length: bytes.len(), ticks, level })
    }
}

impl FeedFrame {
    /// Returns the frame if its length and its parity are right, as far as they can be checked.
    pub fn checked(&self, time_s: f64, skipped: &mut Skipped) -> Option<Frame> {
        let level_db = match self.level {
            Some(level @ 1..) => 20.0 * (f32::from(level) / 255.0).log10(),
            _ => f32::NAN,
        };
        let is_long = self.bytes[0] >= 0x80;
        let frame = Frame::new(&self.bytes[..self.length], time_s, level_db)?;
        if is_long != (self.length == 14) {
            skipped.odd += 1;
            return None;
        }
        let is_right = match frame.downlink_format() {
            17 | 18 => frame.remainder() == 0,
            11 => frame.remainder() < 128,
            _ => true,
        };
        skipped.parity += u64::from(!is_right);
        is_right.then_some(frame)
    }
}

/// Counts of what was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Skipped {
    /// Bytes outside of messages.
    pub bytes: u64,
    /// Messages that end too early.
    pub cut: u64,
    /// Frames whose length does not fit their format.
    pub odd: u64,
    /// Frames with a wrong parity.
    pub parity: u64,
    /// Messages that are not Mode S frames.
    pub other: u64,
}

impl Skipped {
    /// Lists the counts; `None` if nothing was skipped.
    pub fn list(&self) -> Option<String> {
        let all = [
            (self.bytes, "bytes outside of messages"),
            (self.cut, "messages that were cut off"),
            (self.odd, "frames of a wrong length"),
            (self.parity, "frames with a wrong parity"),
            (self.other, "messages that are not Mode S (Mode A/C, heartbeats, status)"),
        ];
        let some = all.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = some.map(|(count, what)| format!("{count} {what}")).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}
