//! The binary format of Beast receivers. A message is 0x1a, a type, a counter of 6 bytes, a level and the
//! frame; 0x1a within it is sent twice.

use super::ticks::ticks;
use super::unit::{FeedUnit, Skipped};
use crate::mode_s::Frame;

const ESCAPE: u8 = 0x1a;
/// Bytes before the frame: counter and level.
const HEAD: usize = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum BeastState {
    /// Outside of messages.
    #[default]
    Outside,
    /// After the first byte of a message.
    Begun,
    Inside,
    /// After 0x1a within a message.
    Escaped,
}

/// Reads messages byte by byte.
#[derive(Debug, Default)]
pub(super) struct BeastReader {
    state: BeastState,
    kind: u8,
    bytes: [u8; HEAD + 14],
    have: usize,
    needed: usize,
}

impl BeastReader {
    /// Takes a byte. Returns a message if it was its last one.
    pub fn take(&mut self, byte: u8, skipped: &mut Skipped) -> Option<FeedUnit> {
        match (self.state, byte) {
            (BeastState::Outside, ESCAPE) => self.state = BeastState::Begun,
            (BeastState::Outside, _) => skipped.bytes += 1,
            (BeastState::Begun, _) => self.begin(byte, skipped),
            (BeastState::Inside, ESCAPE) => self.state = BeastState::Escaped,
            (BeastState::Escaped, kind) if kind != ESCAPE => {
                skipped.cut += 1;
                self.begin(kind, skipped);
            }
            (BeastState::Inside | BeastState::Escaped, _) => return self.push(byte),
        }
        None
    }

    /// Whether a message has begun.
    pub fn is_inside(&self) -> bool {
        self.state != BeastState::Outside
    }

    /// Begins a message of this type.
    fn begin(&mut self, kind: u8, skipped: &mut Skipped) {
        let frame = match kind {
            b'1' => 2,
            b'2' => 7,
            b'3' | b'4' => 14,
            _ => {
                skipped.bytes += 2;
                self.state = BeastState::Outside;
                return;
            }
        };
        (self.state, self.kind, self.have, self.needed) = (BeastState::Inside, kind, 0, HEAD + frame);
    }

    fn push(&mut self, byte: u8) -> Option<FeedUnit> {
        self.state = BeastState::Inside;
        *self.bytes.get_mut(self.have)? = byte;
        self.have += 1;
        if self.have < self.needed {
            return None;
        }
        self.state = BeastState::Outside;
        if !matches!(self.kind, b'2' | b'3') {
            return Some(FeedUnit::Other);
        }
        let ticks = self.bytes[..6].iter().fold(0, |ticks, byte| ticks << 8 | u64::from(*byte));
        Some(FeedUnit::frame(&self.bytes[HEAD..self.needed], Some(ticks), Some(self.bytes[6])))
    }
}

/// Appends a frame as a message.
pub(super) fn write(frame: &Frame, out: &mut Vec<u8>) {
    let kind = if frame.bytes().len() == 7 { b'2' } else { b'3' };
    out.extend_from_slice(&[ESCAPE, kind]);
    let ticks = ticks(frame.time_s).to_be_bytes();
    let head = ticks[2..].iter().copied().chain([level(frame.level_db)]);
    for byte in head.chain(frame.bytes().iter().copied()) {
        out.push(byte);
        if byte == ESCAPE {
            out.push(ESCAPE);
        }
    }
}

/// Returns 255 times the amplitude: 0 only if the level is not known.
fn level(level_db: f32) -> u8 {
    if level_db.is_nan() {
        return 0;
    }
    // A cast saturates.
    ((255.0 * 10f32.powf(level_db / 20.0)).round() as u8).max(1)
}
