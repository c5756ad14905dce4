//! Finds frames in samples of a magnitude.

use super::Frame;
use super::frame::remainder;
use super::known::Known;
use super::slicer::{PHASES, first_bytes, slice};

/// Samples per second that it works at: each pulse is as long as a sample.
pub const RATE_HZ: f64 = 2e6;

/// Samples of the preamble, 8 µs.
const PREAMBLE: usize = 16;

/// Samples that one look may need: preamble, 112 bits of two samples, and one for positions after the sample.
const WINDOW: usize = PREAMBLE + 2 * 112 + 1;

/// Places whose preambles are compared at a time.
const BLOCK: usize = 512;

/// Samples kept, beside those that a look may need.
const ROOM: usize = 16 << 10;

// The limits below were tuned on a real recording of 0.18 s with one aircraft. Without any of them the search
// finds 150 distinct DF 17 there in place of 141, and takes seventeen times as long.

/// Pulses of a preamble hold this many times as much as its gaps.
const PULSES_TO_GAPS: f32 = 1.1;

/// The last but one of four pulses is at least this part of their mean. The least may be missing.
const LEAST_PULSE: f32 = 0.4;

/// A preamble stands out at least as clearly as this part of what it would a sample earlier or later.
const PEAK: f32 = 0.8;

/// The power of the first byte that pulses do not explain is at most this part of it.
const UNEXPLAINED: f32 = 0.25;

/// Positions are looked at further that explain as much of the first byte as the best one, but for this part
/// of it.
const NEARLY: f32 = 0.06;

/// The search for frames in a stream of magnitudes at 2 MS/s. Plain state: samples in, frames out.
///
/// A frame (ICAO Annex 10, volume IV, 3.1.2.2) is a preamble of four pulses of half a microsecond, at 0, 1,
/// 3.5 and 4.5 µs, and after 8 µs its 56 or 112 bits, one microsecond each: a pulse in the first half is a 1,
/// in the second a 0. At this rate a pulse is one sample long and, as transmitter and receiver share no
/// clock, falls on two of them. So a look is taken at four positions from one sample to the next, and the
/// bits of each are those that explain the samples best, all together.
///
/// What a look gives is believed when the parity says so, and never mended: DF 17 and 18 with remainder 0, DF
/// 11 too, or with an interrogator's code for an aircraft that was heard before; and of such aircraft also DF
/// 0, 4, 5, 16, 20 and 21, whose remainder is the address. (Among 24 bits of noise the code of an
/// interrogator is found every 131,072nd time, which would be an aircraft out of nothing every few minutes.)
///
/// What is found at a sample depends on the samples around it and on the frames before, never on how samples
/// were handed in.
#[derive(Debug, Clone)]
pub struct Search {
    /// Samples from number `first` on, after one that is only there to be compared with.
    samples: Vec<f32>,
    first: u64,
    /// The next place in `samples` to look at; at least 1.
    at: usize,
    known: Known,
}

/// A look that gave a frame.
#[derive(Clone, Copy)]
struct Found {
    /// Its bytes, then zeros.
    bytes: [u8; 16],
    /// How many.
    len: usize,
    /// How far from the samples its pulses are at this position.
    distance: f32,
}

impl Search {
    /// A search that believes in an aircraft for `age` samples after it was heard.
    pub fn new(age: u64) -> Self {
        let mut samples = Vec::with_capacity(ROOM + WINDOW);
        samples.push(0.0);
        Search { samples, first: 0, at: 1, known: Known::new(age) }
    }

    /// Takes samples, as many as it has place for, and says how many. Ask for [`next`](Search::next) until
    /// there is none, and it has place again.
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

    /// The stream has ended: frames that end with it can be found as well.
    pub fn finish(&mut self) {
        self.take(&[0.0; WINDOW], |x| x);
    }

    /// The next frame in the samples that were taken.
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
                    && let Some(frame) = self.look(begin + n)
                {
                    return Some(frame);
                }
            }
            self.at = begin + places;
        }
        None
    }

    /// Looks for a frame that begins at this place or less than a sample later.
    fn look(&mut self, at: usize) -> Option<Frame> {
        let (mut phase, mut best) = self.best(at)?;
        let mut begin = at;
        // Close to the next sample that one sees it as well, and perhaps better.
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

    /// The frame at this place at the position where it fits best, and that position.
    fn best(&self, at: usize) -> Option<(usize, Found)> {
        let samples = self.samples.get(at..at + WINDOW)?;
        let (preamble, data) = samples.split_at(PREAMBLE);
        let first: &[f32; 16] = data.first_chunk()?;
        // Of the preamble four pulses, of eight bits eight.
        let pulse = (pulses(preamble) + first.iter().sum::<f32>()) / 12.0;
        let power: f32 = first.iter().map(|x| x * x).sum();
        let (starts, distances) = first_bytes(first, pulse);
        let least = distances.into_iter().fold(f32::MAX, less);
        let limit = less(least + NEARLY * power, (UNEXPLAINED - 1.0) * power);
        let mut best: Option<(usize, Found)> = None;
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
            let found = Found { bytes, len, distance };
            if best.is_none_or(|(_, best)| distance < best.distance)
                && self.believes(&bytes[..len], self.first + at as u64)
            {
                best = Some((phase, found));
            }
        }
        best
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

/// What the pulses of a preamble hold, wherever between two samples it begins.
#[inline(always)]
fn pulses(x: &[f32]) -> f32 {
    (x[0] + x[2] + x[7] + x[9]) + (x[1] + x[3] + x[8] + x[10])
}

/// What as many samples between and after them hold.
#[inline(always)]
fn gaps(x: &[f32]) -> f32 {
    (x[4] + x[5] + x[6]) + (x[11] + x[12] + x[13] + x[14] + x[15])
}

/// How far the pulses of a preamble at each place stand out of its gaps; at 0 and below there is none.
fn preambles(samples: &[f32], clear: &mut [f32]) {
    // Sixteen slices of one length, so that the compiler makes vector code of it.
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

/// The smaller one, in one instruction: there is no NaN here.
fn less(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// The larger one.
fn more(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}
