//! Finds frames in magnitude samples.

use super::Frame;
use super::frame::remainder;
use super::known::Known;
use super::slicer::{PHASES, first_bytes, slice};

/// Sample rate of the search: each pulse is as long as a sample.
pub const RATE_HZ: f64 = 2e6;

/// Samples of the preamble, 8 µs.
const PREAMBLE: usize = 16;

/// Samples that one attempt may need: the preamble, 112 bits of two samples, and one for positions after the
/// sample.
const WINDOW: usize = PREAMBLE + 2 * 112 + 1;

/// Samples whose preambles are compared at once.
const BLOCK: usize = 512;

/// Samples kept in addition to those that an attempt may need.
const ROOM: usize = 16 << 10;

// The limits below were tuned on a real recording of 0.18 s with one aircraft. Without any of them, the
// search finds 150 distinct DF 17 frames there instead of 141, and takes seventeen times as long.

/// Minimum ratio of the magnitudes in a preamble's pulses to those in its gaps.
const PULSES_TO_GAPS: f32 = 1.1;

/// The second weakest of the four pulses must have at least this share of their mean. The weakest may be
/// missing.
const LEAST_PULSE: f32 = 0.4;

/// A preamble must stand out at least this share as clearly as it would one sample earlier or later.
const PEAK: f32 = 0.8;

/// Highest share of the first byte's power that its pulses do not explain.
const UNEXPLAINED: f32 = 0.25;

/// Positions are examined further if they explain the first byte as well as the best one, within this share.
const NEARLY: f32 = 0.06;

/// The search for frames in a stream of magnitudes at 2 MS/s. Plain state: samples in, frames out.
///
/// A frame (ICAO Annex 10, volume IV, 3.1.2.2) starts with a preamble of four pulses of half a microsecond,
/// at 0, 1, 3.5 and 4.5 µs. Its 56 or 112 bits follow after 8 µs, one microsecond each: a pulse in the first
/// half is a 1, in the second a 0. At this rate a pulse is one sample long. Transmitter and receiver share no
/// clock, so a pulse is spread over two samples. The search therefore tries four positions from one sample to
/// the next. The bits of each are those that explain the samples best, all together.
///
/// A candidate is accepted if its parity is right; bits are never corrected. DF 17 and 18 need remainder 0.
/// DF 11 needs remainder 0 too, or an interrogator's code from an aircraft that was heard before. DF 0, 4, 5,
/// 16, 20 and 21, whose remainder is the address, are accepted from such aircraft only. (Among 24 bits of
/// noise, an interrogator's code appears every 131,072nd time: that would be a false aircraft every few
/// minutes.)
///
/// The frames found at a sample depend on the samples around it and on earlier frames, never on how the
/// samples were divided into calls.
#[derive(Debug, Clone)]
pub struct FrameSearch {
    /// Samples from number `first` on, after one that only serves for comparison.
    samples: Vec<f32>,
    first: u64,
    /// Next index of `samples` to examine; at least 1.
    at: usize,
    known: Known,
}

/// A frame candidate.
#[derive(Clone, Copy)]
struct FrameCandidate {
    /// The bytes, then zeros.
    bytes: [u8; 16],
    /// Number of bytes.
    len: usize,
    /// Distance between the samples and the pulses of these bits at this position.
    distance: f32,
}

impl FrameSearch {
    /// Creates a search in which an aircraft counts as known for `age` samples after its last frame.
    pub fn new(age: u64) -> Self {
        let mut samples = Vec::with_capacity(ROOM + WINDOW);
        samples.push(0.0);
        FrameSearch { samples, first: 0, at: 1, known: Known::new(age) }
    }

    /// Takes as many samples as there is room for, and returns their number. Call [`next`](FrameSearch::next)
    /// until it returns `None`; then there is room again.
    pub fn take<T: Copy>(&mut self, samples: &[T], mut magnitude: impl FnMut(T) -> f32) -> usize {
        if self.samples.capacity() - self.samples.len() < samples.len() {
            let done = self.at - 1;
            self.samples.copy_within(done.., 0);
            self.samples.truncate(self.samples.len() - done);
            self.first += done as u64;
            self.at = 1;
        }
        let count = samples.len().min(self.samples.capacity() - self.samples.len());
        self.samples.extend(samples[..count].iter().map(|x| magnitude(*x)));
        count
    }

    /// Marks the end of the stream, so that frames that end with it are found too.
    pub fn finish(&mut self) {
        self.take(&[0.0; WINDOW], |x| x);
    }

    /// Returns the next frame in the samples taken.
    #[allow(clippy::should_implement_trait, reason = "there may be another one after none")]
    pub fn next(&mut self) -> Option<Frame> {
        while self.at + WINDOW < self.samples.len() {
            let places = (self.samples.len() - WINDOW - self.at).min(BLOCK);
            let mut clear = [0.0; BLOCK + 2];
            let clear = &mut clear[..places + 2];
            preambles(&self.samples[self.at - 1..], clear);
            let begin = self.at;
            for (n, near) in clear.windows(3).enumerate() {
                if near[1] > 0.0
                    && near[1] >= PEAK * near[0].max(near[2])
                    && let Some(frame) = self.attempt(begin + n)
                {
                    return Some(frame);
                }
            }
            self.at = begin + places;
        }
        None
    }

    /// Searches for a frame that begins at this index or less than a sample later.
    fn attempt(&mut self, at: usize) -> Option<Frame> {
        let (mut phase, mut best) = self.best(at)?;
        let mut begin = at;
        // Close to the next sample, the attempt there finds the frame too, and perhaps better.
        if let Some((next, found)) = self.best(at + 1)
            && found.bytes == best.bytes
            && found.distance < best.distance
        {
            (begin, phase, best) = (at + 1, next, found);
        }
        let end = begin + PREAMBLE + 16 * best.len;
        let now = self.first + begin as u64 - 1;
        let time_s = (now as f64 + phase as f64 / PHASES as f64) / RATE_HZ;
        let power: f32 = self.samples[begin..end].iter().map(|x| x * x).sum();
        let level_db = 10.0 * (power / (end - begin) as f32).max(1e-20).log10();
        let frame = Frame::new(&best.bytes[..best.len], time_s, level_db)?;
        if matches!(frame.downlink_format(), 11 | 17 | 18) && frame.remainder() == 0 {
            self.known.hear(frame.address(), now);
        }
        self.at = end;
        Some(frame)
    }

    /// Returns the frame at this index at its best position, and that position.
    fn best(&self, at: usize) -> Option<(usize, FrameCandidate)> {
        let samples = self.samples.get(at..at + WINDOW)?;
        let (preamble, data) = samples.split_at(PREAMBLE);
        let first: &[f32; 16] = data.first_chunk()?;
        // The preamble has four pulses, eight bits have eight.
        let pulse = (pulses(preamble) + first.iter().sum::<f32>()) / 12.0;
        let power: f32 = first.iter().map(|x| x * x).sum();
        let (starts, distances) = first_bytes(first, pulse);
        let least = distances.into_iter().fold(f32::MAX, less);
        let limit = less(least + NEARLY * power, (UNEXPLAINED - 1.0) * power);
        let mut best: Option<(usize, FrameCandidate)> = None;
        for (phase, (byte, distance)) in starts.into_iter().zip(distances).enumerate() {
            if distance > limit {
                continue;
            }
            let len = match byte >> 3 {
                0 | 4 | 5 | 11 => 7,
                16 | 17 | 18 | 20 | 21 => 14,
                _ => continue,
            };
            let (bits, distance) = slice(&data[..16 * len], phase as f32 / PHASES as f32, pulse);
            let bytes = (bits << (128 - 8 * len)).to_be_bytes();
            let found = FrameCandidate { bytes, len, distance };
            if best.is_none_or(|(_, best)| distance < best.distance)
                && self.accepts(&bytes[..len], self.first + at as u64)
            {
                best = Some((phase, found));
            }
        }
        best
    }

    fn accepts(&self, bytes: &[u8], now: u64) -> bool {
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

/// Sum of the magnitudes in the pulses of a preamble, independent of where between two samples it begins.
#[inline(always)]
fn pulses(x: &[f32]) -> f32 {
    (x[0] + x[2] + x[7] + x[9]) + (x[1] + x[3] + x[8] + x[10])
}

/// Sum of the same number of magnitudes between and after the pulses.
#[inline(always)]
fn gaps(x: &[f32]) -> f32 {
    (x[4] + x[5] + x[6]) + (x[11] + x[12] + x[13] + x[14] + x[15])
}

/// How far the pulses of a preamble at each index stand out from its gaps; at 0 and below there is no
/// preamble.
fn preambles(samples: &[f32], clear: &mut [f32]) {
    // Sixteen slices of one length, so that the compiler vectorises the loop.
    let len = clear.len();
    let x: [&[f32]; PREAMBLE] = std::array::from_fn(|n| &samples[n..n + len]);
    for (n, clear) in clear.iter_mut().enumerate() {
        let x: [f32; PREAMBLE] = std::array::from_fn(|k| x[k][n]);
        let (pulses, gaps) = (pulses(&x), gaps(&x));
        let [a, b, c, d] = [x[0] + x[1], x[2] + x[3], x[7] + x[8], x[9] + x[10]];
        let last_but_one = less(more(less(a, b), less(c, d)), less(more(a, b), more(c, d)));
        let stands_out = pulses - PULSES_TO_GAPS * gaps;
        *clear = if last_but_one > LEAST_PULSE / 4.0 * pulses { stands_out } else { 0.0 };
    }
}

/// The smaller number, in one instruction: there is no NaN here.
fn less(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// The larger number.
fn more(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}
