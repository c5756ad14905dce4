//! Finds frames in samples of a magnitude.

use super::Frame;
use super::frame::remainder;
use super::known::Known;

/// Samples per second that it works at: each pulse is as long as a sample.
pub const RATE_HZ: f64 = 2e6;

/// Samples of the preamble, 8 µs.
const PREAMBLE: usize = 16;

/// Samples that one look may need: preamble, 112 bits of two samples, and two more for positions between samples.
const WINDOW: usize = PREAMBLE + 2 * 112 + 2;

/// Positions looked at between two samples.
const PHASES: usize = 5;

/// Positions whose preambles are compared at a time.
const BLOCK: usize = 512;

/// Samples kept, beside those that a look may need.
const ROOM: usize = 16 << 10;

/// The search for frames in a stream of magnitudes at 2 MS/s. Plain state: samples in, frames out.
///
/// A frame (ICAO Annex 10, volume IV, 3.1.2.2) is a preamble of four pulses of half a microsecond, at 0, 1, 3.5 and
/// 4.5 µs, and after 8 µs its 56 or 112 bits, one microsecond each: a pulse in the first half is a 1, in the second a 0.
/// At this rate a pulse is one sample long and, as transmitter and receiver share no clock, falls on two of them: of
/// a pulse that begins the part `f` of a sample late, `1 - f` is in one sample and `f` in the next. So each position is
/// looked at with several `f`, and a bit is the sign of what the two halves correlate to:
///
/// ```text
/// d = (1 - f) x[n] + (2f - 1) x[n+1] - f x[n+2]
/// ```
///
/// A look is worth while where the pulses of the preamble stand out of its gaps. What it gives is believed when the
/// parity says so, and never mended: DF 17 and 18 with remainder 0, DF 11 too, or with an interrogator's code for an
/// aircraft that was heard before; and of such aircraft also DF 0, 4, 5, 16, 20 and 21, whose remainder is the address.
///
/// What is found at a sample depends on the samples around it and on the frames before, never on how samples were
/// handed in.
#[derive(Debug, Clone)]
pub struct Search {
    /// The samples from number `first` on.
    samples: Vec<f32>,
    first: u64,
    /// The next place in `samples` to look at.
    at: usize,
    known: Known,
}

/// A look that gave a frame.
#[derive(Clone, Copy)]
struct Found {
    bytes: [u8; 14],
    /// Bytes of it.
    len: usize,
    /// How clearly the pulses stand out at this position.
    strength: f32,
}

impl Search {
    /// A search that believes in an aircraft for `age` samples after it was heard.
    pub fn new(age: u64) -> Self {
        let samples = Vec::with_capacity(ROOM + WINDOW);
        Search { samples, first: 0, at: 0, known: Known::new(age) }
    }

    /// Takes samples, as many as it has place for, and says how many. Ask for [`next`](Search::next) until there is
    /// none, and it has place again.
    pub fn take<T: Copy>(&mut self, samples: &[T], magnitude: impl Fn(T) -> f32) -> usize {
        if self.samples.capacity() - self.samples.len() < samples.len() {
            self.samples.copy_within(self.at.., 0);
            self.samples.truncate(self.samples.len() - self.at);
            self.first += self.at as u64;
            self.at = 0;
        }
        let count = samples.len().min(self.samples.capacity() - self.samples.len());
        self.samples.extend(samples[..count].iter().map(|x| magnitude(*x)));
        count
    }

    /// The stream has ended: frames that end with it can be found as well.
    pub fn finish(&mut self) {
        self.take(&[0.0; WINDOW], |x| x);
    }

    /// The next frame in the samples that were taken.
    #[allow(clippy::should_implement_trait, reason = "there may be another one after none")]
    pub fn next(&mut self) -> Option<Frame> {
        while self.at + WINDOW <= self.samples.len() {
            let places = (self.samples.len() + 1 - WINDOW - self.at).min(BLOCK);
            let mut clear = [0.0; BLOCK];
            preambles(&self.samples[self.at..], &mut clear[..places]);
            let begin = self.at;
            for (n, _) in clear[..places].iter().enumerate().filter(|(_, clear)| **clear > 0.0) {
                if let Some(frame) = self.look(begin + n) {
                    return Some(frame);
                }
            }
            self.at = begin + places;
        }
        None
    }

    /// Looks for a frame that begins at this place or less than a sample later.
    fn look(&mut self, at: usize) -> Option<Frame> {
        let fine = at * PHASES;
        let (first, mut best) = (fine..fine + PHASES).find_map(|fine| Some((fine, self.try_at(fine)?)))?;
        // Its neighbours see it as well. Where it is strongest it is.
        let mut place = first;
        for fine in first + 1..=first + PHASES {
            match self.try_at(fine) {
                Some(found) if found.bytes == best.bytes => {
                    if found.strength > best.strength {
                        (place, best) = (fine, found);
                    }
                }
                _ => break,
            }
        }
        let begin = place / PHASES;
        let end = begin + PREAMBLE + 16 * best.len;
        let now = self.first + begin as u64;
        let time_s = (self.first as f64 + place as f64 / PHASES as f64) / RATE_HZ;
        let power: f32 = self.samples[begin..end].iter().map(|x| x * x).sum();
        let level_db = 10.0 * (power / (end - begin) as f32).max(1e-20).log10();
        let frame = Frame::new(&best.bytes[..best.len], time_s, level_db)?;
        if matches!(frame.downlink_format(), 11 | 17 | 18) && frame.remainder() == 0 {
            self.known.hear(frame.address(), now);
        }
        self.at = end;
        Some(frame)
    }

    /// What is at a position, in parts of a sample.
    fn try_at(&self, fine: usize) -> Option<Found> {
        let (at, f) = (fine / PHASES, (fine % PHASES) as f32 / PHASES as f32);
        let samples = self.samples.get(at + PREAMBLE..at + WINDOW)?;
        let mut bytes = [0; 14];
        let mut strength = 0.0;
        let mut slice = |bytes: &mut [u8], samples: &[f32]| {
            for (byte, x) in bytes.iter_mut().zip(samples.windows(18).step_by(16)) {
                let mut d = [0.0f32; 8];
                for (n, d) in d.iter_mut().enumerate() {
                    *d = (1.0 - f) * x[2 * n] + (2.0 * f - 1.0) * x[2 * n + 1] - f * x[2 * n + 2];
                }
                strength += d.iter().map(|d| d.abs()).sum::<f32>();
                *byte = d.iter().fold(0, |byte, d| byte << 1 | u8::from(*d > 0.0));
            }
        };
        slice(&mut bytes[..1], samples);
        let len = match bytes[0] >> 3 {
            0 | 4 | 5 | 11 => 7,
            16 | 17 | 18 | 20 | 21 => 14,
            _ => return None,
        };
        slice(&mut bytes[1..len], &samples[16..]);
        self.believes(&bytes[..len], self.first + at as u64).then_some(Found { bytes, len, strength })
    }

    fn believes(&self, bytes: &[u8], now: u64) -> bool {
        let rest = remainder(bytes);
        match bytes[0] >> 3 {
            17 | 18 => rest == 0,
            11 => {
                let address = u32::from_be_bytes([0, bytes[1], bytes[2], bytes[3]]);
                rest == 0 || rest < 128 && self.known.has(address, now)
            }
            _ => self.known.has(rest, now),
        }
    }
}

/// How far the pulses of a preamble at each place stand out of its gaps; above 0 it is worth a look.
fn preambles(samples: &[f32], clear: &mut [f32]) {
    for (n, clear) in clear.iter_mut().enumerate() {
        let x = &samples[n..n + PREAMBLE];
        let pulses = (x[0] + x[2] + x[7] + x[9]) + (x[1] + x[3] + x[8] + x[10]);
        let gaps = (x[4] + x[5] + x[6]) + (x[11] + x[12] + x[13] + x[14] + x[15]);
        *clear = pulses - gaps * GATE;
    }
}
const GATE: f32 = 1.3;
